// Server-side apply with the generated clients of client-go and their apply configurations.

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv1 "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
)

// owners returns one line for each entry of the object's managed fields, without its time.
func owners(object metav1.Object) string {
	var lines []string
	for _, entry := range object.GetManagedFields() {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, entry.Subresource, entry.FieldsV1.Raw))
	}
	return strings.Join(lines, "\n")
}

func TestApplyClientsOwnWhatTheyApply(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := s.client()
	maps := client.CoreV1().ConfigMaps("default")
	by := func(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
	force := func(manager string) metav1.ApplyOptions {
		return metav1.ApplyOptions{FieldManager: manager, Force: true}
	}

	colors := core.ConfigMap("colors", "default").WithData(map[string]string{"sky": "blue", "grass": "green"})
	made, err := maps.Apply(t.Context(), colors, by("one"))
	must(t, err)
	s.wrote()
	equal(t, "data", made.Data, map[string]string{"sky": "blue", "grass": "green"})
	again, err := maps.Apply(t.Context(), colors, by("one"))
	must(t, err)
	equal(t, "revision of an equal configuration", again.ResourceVersion, made.ResourceVersion)

	grey := core.ConfigMap("colors", "default").WithData(map[string]string{"sky": "grey"})
	_, err = maps.Apply(t.Context(), grey, by("two"))
	equal(t, "conflict", apierrors.IsConflict(err), true)
	equal(t, "message", err.Error(), `Apply failed with 1 conflict: conflict with "one": .data.sky`)
	taken, err := maps.Apply(t.Context(), grey, force("two"))
	must(t, err)
	s.wrote()
	equal(t, "owners", owners(taken), `one Apply  {"f:data":{"f:grass":{}}}`+"\n"+`two Apply  {"f:data":{"f:sky":{}}}`)

	// The extracted configuration has the fields of its manager only.
	extracted, err := core.ExtractConfigMap(taken, "one")
	must(t, err)
	equal(t, "extracted", extracted.Data, map[string]string{"grass": "green"})
	delete(extracted.Data, "grass")
	removed, err := maps.Apply(t.Context(), extracted, by("one"))
	must(t, err)
	s.wrote()
	equal(t, "data", removed.Data, map[string]string{"sky": "grey"})

	deployments := client.AppsV1().Deployments("default")
	labels := map[string]string{"app": "shop"}
	shop := appsv1.Deployment("shop", "default").WithSpec(appsv1.DeploymentSpec().
		WithReplicas(2).
		WithSelector(meta.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(core.PodTemplateSpec().WithLabels(labels).WithSpec(core.PodSpec().
			WithContainers(core.Container().WithName("main").WithImage("shop:1")))))
	_, err = deployments.Apply(t.Context(), shop, by("one"))
	must(t, err)
	scale := autoscalingv1.Scale().WithSpec(autoscalingv1.ScaleSpec().WithReplicas(5))
	_, err = deployments.ApplyScale(t.Context(), "shop", scale, by("scaler"))
	equal(t, "message", err.Error(), `Apply failed with 1 conflict: conflict with "one": .spec.replicas`)
	scaled, err := deployments.ApplyScale(t.Context(), "shop", scale, force("scaler"))
	must(t, err)
	equal(t, "replicas", scaled.Spec.Replicas, int32(5))
	progressing := appsv1.Deployment("shop", "default").WithStatus(appsv1.DeploymentStatus().
		WithConditions(appsv1.DeploymentCondition().WithType("Progressing").WithStatus(corev1.ConditionTrue).WithReason("Tested")))
	reported, err := deployments.ApplyStatus(t.Context(), progressing, by("reporter"))
	must(t, err)
	equal(t, "replicas", *reported.Spec.Replicas, int32(5))
	lines := strings.Split(owners(reported), "\n")
	// Entries are ordered by their times first.
	slices.Sort(lines)
	equal(t, "owners", len(lines), 3)
	equal(t, "owner of the scale", lines[2], `scaler Apply scale {"f:spec":{"f:replicas":{}}}`)
	status := `{"f:status":{"f:conditions":{"k:{\"type\":\"Progressing\"}":{".":{},"f:reason":{},"f:status":{},"f:type":{}}}}}`
	equal(t, "owner of the status", lines[1], "reporter Apply status "+status)

	// The dynamic client applies without types.
	dynamicClient, err := dynamic.NewForConfig(s.config())
	must(t, err)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(colors)
	must(t, err)
	resource := dynamicClient.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	_, err = resource.Apply(t.Context(), "colors", &unstructured.Unstructured{Object: object}, by("three"))
	equal(t, "conflict", apierrors.IsConflict(err), true)
	applied, err := resource.Apply(t.Context(), "colors", &unstructured.Unstructured{Object: object}, force("three"))
	must(t, err)
	s.wrote()
	equal(t, "owners", owners(applied), `three Apply  {"f:data":{"f:grass":{},"f:sky":{}}}`)
}
