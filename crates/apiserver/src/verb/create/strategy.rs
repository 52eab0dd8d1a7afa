//! What a kind's strategy makes of an object: the status it starts with, generations, and a secret's texts.
//!
//! Guarantees:
//! - a new object's `status` is what a Kubernetes API server gives it: that of the request for nodes, and the kind's first one for all others that have the subresource;
//! - nothing else is defaulted, but what `kubectl` shows by it: a pod's quality of service, and a secret's type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::object::Object;
use crate::resource::Resource;

/// Kinds whose built-in strategies count generations.
const COUNTING_GENERATIONS: [&str; 27] = [
    "customresourcedefinitions.apiextensions.k8s.io",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "cronjobs.batch",
    "jobs.batch",
    "ingresses.networking.k8s.io",
    "ingressclasses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "poddisruptionbudgets.policy",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "priorityclasses.scheduling.k8s.io",
    "endpointslices.discovery.k8s.io",
    "deviceclasses.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
];

/// The status that new objects of built-in kinds have: what Go writes for the empty one, or what the strategy puts there.
///
/// Pods and persistent volumes have more, and nodes keep what they bring; a custom kind starts without.
const FIRST_STATUS: [(&str, &str); 24] = [
    ("apiservices.apiregistration.k8s.io", "{}"),
    ("certificatesigningrequests.certificates.k8s.io", "{}"),
    ("cronjobs.batch", "{}"),
    (
        "daemonsets.apps",
        r#"{"currentNumberScheduled":0,"desiredNumberScheduled":0,"numberMisscheduled":0,"numberReady":0}"#,
    ),
    ("deployments.apps", "{}"),
    ("flowschemas.flowcontrol.apiserver.k8s.io", "{}"),
    (
        "horizontalpodautoscalers.autoscaling",
        r#"{"currentMetrics":null,"desiredReplicas":0}"#,
    ),
    ("ingresses.networking.k8s.io", r#"{"loadBalancer":{}}"#),
    ("jobs.batch", "{}"),
    ("namespaces", r#"{"phase":"Active"}"#),
    ("persistentvolumeclaims", r#"{"phase":"Pending"}"#),
    ("persistentvolumes", r#"{"phase":"Pending"}"#),
    (
        "poddisruptionbudgets.policy",
        r#"{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0}"#,
    ),
    ("pods", r#"{"phase":"Pending"}"#),
    (
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "{}",
    ),
    ("replicasets.apps", r#"{"replicas":0}"#),
    ("replicationcontrollers", r#"{"replicas":0}"#),
    ("resourceclaims.resource.k8s.io", "{}"),
    ("resourcequotas", "{}"),
    ("servicecidrs.networking.k8s.io", "{}"),
    ("services", r#"{"loadBalancer":{}}"#),
    (
        "statefulsets.apps",
        r#"{"availableReplicas":0,"replicas":0}"#,
    ),
    (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "{}",
    ),
    ("volumeattachments.storage.k8s.io", r#"{"attached":false}"#),
];

/// What a pod's quality of service looks at.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// Whether the server counts this kind's generations.
pub(crate) fn counts_generations(resource: &Resource) -> bool {
    resource.kind.custom || COUNTING_GENERATIONS.contains(&resource.kind.group_resource().as_str())
}

/// Whether the status that a client sends with a new object is stored: a kubelet registers its node with one.
pub(super) fn keeps_status(resource: &Resource) -> bool {
    !resource.has_status || resource.is_core("nodes")
}

/// The status that a new object has if it brings none; `now` is the moment of its creation.
pub(super) fn first_status(resource: &Resource, object: &Object, now: &str) -> Option<Value> {
    let name = resource.kind.group_resource();
    let (_, text) = FIRST_STATUS.iter().find(|(known, _)| *known == name)?;
    if resource.kind.custom {
        return None;
    }
    let mut status: Value = serde_json::from_str(text).expect("the table of statuses is JSON");
    if resource.is_core("pods") {
        status["qosClass"] = json!(quality_of_service(object));
    } else if resource.is_core("persistentvolumes") {
        status["lastPhaseTransitionTime"] = json!(now);
    }
    Some(status)
}

/// Stores a secret's texts as data, and says its type; done by every write.
pub(in crate::verb) fn fold_secret(resource: &Resource, secret: &mut Object) {
    if !resource.is_core("secrets") {
        return;
    }
    if secret.get("type").is_none_or(|it| it.is_null() || it == "") {
        secret.set("type", Some(json!("Opaque")));
    }
    let Some(Value::Object(texts)) = secret.get("stringData").cloned() else {
        return;
    };
    secret.set("stringData", None);
    let data = secret.get("data").and_then(Value::as_object);
    let mut data: Map<String, Value> = data.cloned().unwrap_or_default();
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, json!(STANDARD.encode(text)));
    }
    if !data.is_empty() {
        secret.set("data", Some(Value::Object(data)));
    }
}

/// As Kubernetes classifies pods by the CPU and memory that their containers ask for; quantities are compared as they are written.
fn quality_of_service(pod: &Object) -> &'static str {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let containers = ["initContainers", "containers"]
        .into_iter()
        .filter_map(|list| spec[list].as_array())
        .flatten();
    let (mut asks, mut guaranteed) = (false, true);
    for container in containers {
        let resources = &container["resources"];
        for name in COMPUTE {
            let (limit, request) = (&resources["limits"][name], &resources["requests"][name]);
            asks |= !limit.is_null() || !request.is_null();
            guaranteed &= !limit.is_null() && (request.is_null() || request == limit);
        }
    }
    match (asks, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
