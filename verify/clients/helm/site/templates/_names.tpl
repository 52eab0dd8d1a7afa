{{- define "site.labels" -}}
app.kubernetes.io/name: site
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}
{{- define "site.selector" -}}
app.kubernetes.io/name: site
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
