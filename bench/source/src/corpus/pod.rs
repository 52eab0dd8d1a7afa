//! Generates pods that belong to a Deployment in a cluster with a service mesh.
//!
//! The result is JSON with a placeholder for each value that differs between the pods of the Deployment.
//!
//! Guarantees: a pod has about 8.1 KB of JSON and 5.4 KB of protobuf. It has two containers, ten environment
//! variables per container, and two managedFields entries of about 1.1 KB each.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::workload::{Workload, hex, one_of};
use crate::slot::{Slot, Slots};

const REGISTRIES: [&str; 3] = [
    "registry.example.com/shop",
    "ghcr.io/example-shop",
    "123456789012.dkr.ecr.eu-central-1.amazonaws.com/shop",
];

const SETTINGS: [(&str, &[&str]); 12] = [
    ("LOG_LEVEL", &["debug", "info", "warn"]),
    ("LOG_FORMAT", &["json", "logfmt"]),
    ("HTTP_PORT", &["8080", "8443", "9000"]),
    ("GOMAXPROCS", &["1", "2", "4"]),
    (
        "JAVA_OPTS",
        &[
            "-XX:MaxRAMPercentage=75.0 -XX:+UseG1GC",
            "-Xms512m -Xmx1536m -XX:+ExitOnOutOfMemoryError",
        ],
    ),
    ("DB_POOL_SIZE", &["5", "10", "20", "50"]),
    ("CACHE_TTL_SECONDS", &["30", "300", "3600"]),
    (
        "FEATURE_FLAGS_URL",
        &["http://flags.platform-prod.svc.cluster.local:8080"],
    ),
    ("KAFKA_BROKERS", &["kafka.data-prod.svc:9092"]),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        &["http://otel-collector.platform-prod.svc.cluster.local:4317"],
    ),
    ("REQUEST_TIMEOUT", &["2s", "5s", "30s"]),
    ("REGION", &["eu-central-1", "eu-west-1", "us-east-1"]),
];

/// Returns a pod of `workload`, with a placeholder for each value that differs between the workload's pods.
///
/// Adds a [`Slot`] for each of these values to `slots`.
pub(super) fn pod(workload: &Workload, rng: &mut Rng, slots: &mut Slots) -> Value {
    let name = &workload.name;
    let image = format!(
        "{}/{name}:v{}.{}.{}",
        one_of(rng, &REGISTRIES),
        rng.u32(1..9),
        rng.u32(..40),
        rng.u32(..20)
    );
    let proxy = format!(
        "docker.io/istio/proxyv2:1.{}.{}",
        rng.u32(20..24),
        rng.u32(..6)
    );
    let port = one_of(rng, &[8080, 8443, 9000]);
    let mut app = container(name, &image, rng);
    app["ports"] = json!([{"name": "http", "containerPort": port, "protocol": "TCP"}] );
    app["env"] = app_env(name, rng);
    app["livenessProbe"] = probe("/healthz", rng);
    app["readinessProbe"] = probe("/readyz", rng);
    app["volumeMounts"] = json!([
        {"name": "config", "mountPath": format!("/etc/{name}"), "readOnly": true},
        {"name": "tmp", "mountPath": "/tmp"},
        account_mount(slots),
    ]);
    let mut mesh = container("istio-proxy", &proxy, rng);
    mesh["env"] = mesh_env(workload);
    mesh["volumeMounts"] =
        json!([{"name": "istio-envoy", "mountPath": "/etc/istio/proxy"}, account_mount(slots)]);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(workload, rng, slots),
        "spec": {
            "volumes": volumes(name, slots),
            "containers": [app, mesh],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": one_of(rng, &[30, 60, 90]),
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": name,
            "serviceAccount": name,
            "nodeName": node(slots),
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "priority": 0,
        },
        "status": status(&[(name, &image), ("istio-proxy", &proxy)], rng, slots),
    })
}

fn metadata(workload: &Workload, rng: &mut Rng, slots: &mut Slots) -> Value {
    let Workload { name, hash, .. } = workload;
    json!({
        "name": format!("{name}-{hash}-{}", slots.mark(Slot::Suffix)),
        "generateName": format!("{name}-{hash}-"),
        "namespace": workload.namespace,
        "uid": slots.mark(Slot::Uid),
        "resourceVersion": slots.mark(Slot::Revision),
        "creationTimestamp": slots.mark(Slot::Time(0)),
        "labels": {
            "app.kubernetes.io/name": name,
            "app.kubernetes.io/part-of": workload.domain,
            "app.kubernetes.io/component": workload.component,
            "environment": workload.stage,
            "team": workload.team,
            "pod-template-hash": hash,
        },
        "annotations": {
            "bench/ts": slots.mark(Slot::Stamp),
            "checksum/config": hex(rng, 64),
            "kubectl.kubernetes.io/default-container": name,
            "prometheus.io/port": "9090",
            "prometheus.io/scrape": "true",
        },
        "ownerReferences": [{
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": format!("{name}-{hash}"),
            "uid": uid(rng),
            "controller": true,
            "blockOwnerDeletion": true,
        }],
        "managedFields": [
            {
                "manager": "kube-controller-manager",
                "operation": "Update",
                "apiVersion": "v1",
                "time": slots.mark(Slot::Time(0)),
                "fieldsType": "FieldsV1",
                "fieldsV1": template_fields(name),
            },
            {
                "manager": "kubelet",
                "operation": "Update",
                "apiVersion": "v1",
                "time": slots.mark(Slot::Time(19)),
                "fieldsType": "FieldsV1",
                "fieldsV1": status_fields(slots),
                "subresource": "status",
            },
        ],
    })
}

fn uid(rng: &mut Rng) -> String {
    let mut part = |len| hex(rng, len);
    format!(
        "{}-{}-4{}-a{}-{}",
        part(8),
        part(4),
        part(3),
        part(3),
        part(12)
    )
}

/// Returns a container with the fields that the application and proxy containers share.
fn container(name: &str, image: &str, rng: &mut Rng) -> Value {
    let (cpu, memory) = (
        one_of(rng, &["50m", "100m", "250m", "500m", "1"]),
        one_of(rng, &["64Mi", "128Mi", "256Mi", "1Gi"]),
    );
    json!({
        "name": name,
        "image": image,
        "resources": {"limits": {"memory": memory}, "requests": {"cpu": cpu, "memory": memory}},
        "imagePullPolicy": "IfNotPresent",
    })
}

fn app_env(name: &str, rng: &mut Rng) -> Value {
    let mut settings = SETTINGS;
    rng.shuffle(&mut settings);
    let mut env = vec![
        field_env("POD_NAME", "metadata.name"),
        json!({"name": "TZ", "value": "UTC"}),
    ];
    env.extend(
        settings[..6]
            .iter()
            .map(|(key, values)| json!({"name": key, "value": one_of(rng, values)})),
    );
    env.push(json!({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": format!("{name}-db"), "key": "password"}}}));
    env.push(json!({"name": "DB_HOST", "value": "db.data-prod.svc"}));
    Value::Array(env)
}

fn mesh_env(workload: &Workload) -> Value {
    let Workload {
        name, namespace, ..
    } = workload;
    json!([
        {"name": "PROXY_XDS_VIA_AGENT", "value": "true"},
        {"name": "POD_NAMESPACE", "value": namespace},
        {"name": "ISTIO_META_NETWORK", "value": "main"},
        {"name": "ISTIO_META_CLUSTER_ID", "value": "Kubernetes"},
        {"name": "ISTIO_META_MESH_ID", "value": "cluster.local"},
        {"name": "PILOT_CERT_PROVIDER", "value": "istiod"},
        {"name": "CA_ADDR", "value": "istiod.istio-system.svc:15012"},
        {"name": "ISTIO_META_WORKLOAD_NAME", "value": name},
        {"name": "ISTIO_META_OWNER", "value": format!("kubernetes://apis/apps/v1/namespaces/{namespace}/deployments/{name}")},
        {"name": "TRUST_DOMAIN", "value": "cluster.local"},
    ])
}

fn field_env(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
}

fn probe(path: &str, rng: &mut Rng) -> Value {
    json!({
        "httpGet": {"path": path, "port": one_of(rng, &[json!("http"), json!(8080), json!(15021)].each_ref()), "scheme": "HTTP"},
        "initialDelaySeconds": one_of(rng, &[1, 5, 10]),
        "timeoutSeconds": one_of(rng, &[1, 3]),
        "periodSeconds": one_of(rng, &[2, 10, 15]),
    })
}

fn account_volume(slots: &mut Slots) -> String {
    format!("kube-api-access-{}", slots.mark(Slot::Letters))
}

fn account_mount(slots: &mut Slots) -> Value {
    json!({"name": account_volume(slots), "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true})
}

fn volumes(name: &str, slots: &mut Slots) -> Value {
    json!([
        {"name": "config", "configMap": {"name": format!("{name}-config"), "defaultMode": 420}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
        {"name": "istio-envoy", "emptyDir": {"medium": "Memory"}},
        {"name": account_volume(slots), "projected": {"sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ], "defaultMode": 420}},
    ])
}

fn node(slots: &mut Slots) -> String {
    format!(
        "ip-10-{}.eu-central-1.compute.internal",
        slots.mark(Slot::Node)
    )
}

fn status(containers: &[(&str, &str)], rng: &mut Rng, slots: &mut Slots) -> Value {
    let (address, host) = (
        pod_address(slots),
        format!("10.{}", slots.mark(Slot::NodeAddress)),
    );
    let conditions = [
        ("PodReadyToStartContainers", 3),
        ("Initialized", 1),
        ("Ready", 19),
        ("ContainersReady", 19),
        ("PodScheduled", 0),
    ];
    let conditions: Vec<_> = conditions
        .into_iter()
        .map(|(condition, after)| json!({"type": condition, "observedGeneration": 1, "status": "True", "lastProbeTime": null, "lastTransitionTime": slots.mark(Slot::Time(after))}))
        .collect();
    let mut statuses = Vec::new();
    for (which, (name, image)) in (0..).zip(containers) {
        let repository = image
            .rsplit_once(':')
            .map_or(*image, |(repository, _)| repository);
        statuses.push(json!({
            "name": name,
            "state": {"running": {"startedAt": slots.mark(Slot::Time(5 + which))}},
            "lastState": {},
            "ready": true,
            "restartCount": 0,
            "image": image,
            "imageID": format!("{repository}@sha256:{}", hex(rng, 64)),
            "containerID": format!("containerd://{}", slots.mark(Slot::Hex(which, 64))),
            "started": true,
        }));
    }
    json!({

        "phase": "Running",
        "conditions": conditions,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": slots.mark(Slot::Time(1)),
        "containerStatuses": statuses,
        "qosClass": "Burstable",
    })
}

fn pod_address(slots: &mut Slots) -> String {
    format!("10.{}", slots.mark(Slot::Address))
}

/// Returns the `fieldsV1` of kube-controller-manager for a pod with the container `name`.
fn template_fields(name: &str) -> Value {
    let container = fields(&["f:image", "f:imagePullPolicy", "f:name", "f:resources"]);
    let mut containers = Map::new();
    containers.insert(key("name", name), container.clone());
    containers.insert(key("name", "istio-proxy"), container);
    json!({
        "f:metadata": {
            "f:annotations": fields(&[".", "f:checksum/config", "f:prometheus.io/port", "f:prometheus.io/scrape"]),
            "f:generateName": {},
            "f:labels": fields(&[".", "f:app.kubernetes.io/component", "f:app.kubernetes.io/name", "f:app.kubernetes.io/part-of", "f:environment", "f:pod-template-hash", "f:team"]),
            "f:ownerReferences": fields(&["."]),
        },
        "f:spec": {
            "f:containers": containers,
            "f:dnsPolicy": {},
            "f:enableServiceLinks": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
            "f:securityContext": {},
            "f:serviceAccountName": {},
            "f:terminationGracePeriodSeconds": {},
            "f:volumes": {key("name", "config"): fields(&[".", "f:configMap", "f:name"]), key("name", "tmp"): fields(&[".", "f:emptyDir", "f:name"])},
        },
    })
}

fn status_fields(slots: &mut Slots) -> Value {
    let condition = fields(&[
        ".",
        "f:lastProbeTime",
        "f:lastTransitionTime",
        "f:observedGeneration",
        "f:status",
        "f:type",
    ]);
    let kinds = [
        "ContainersReady",
        "Initialized",
        "PodReadyToStartContainers",
        "PodScheduled",
        "Ready",
    ];
    let conditions: Map<_, _> = kinds
        .iter()
        .map(|kind| (key("type", kind), condition.clone()))
        .collect();
    let mut addresses = Map::new();
    addresses.insert(".".to_owned(), json!({}));
    addresses.insert(key("ip", &pod_address(slots)), fields(&[".", "f:ip"]));
    json!({"f:status": {
        "f:conditions": conditions,
        "f:containerStatuses": {},
        "f:hostIP": {},
        "f:hostIPs": {},
        "f:phase": {},
        "f:podIP": {},
        "f:podIPs": addresses,
        "f:startTime": {},
    }})
}

fn fields(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!({})))
        .collect()
}

/// Returns the managedFields key of a list item, such as `k:{"name":"proxy"}`.
fn key(member: &str, value: &str) -> String {
    format!("k:{}", json!({ member: value }))
}
