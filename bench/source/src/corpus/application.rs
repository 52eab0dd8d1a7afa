//! Generates templates of custom resources that resemble the kind `Application` of Argo CD.
//!
//! Guarantees: an object has 4 to 6 KB of JSON. Its keys are sorted, as in the custom resources that an API
//! server sends.

use fastrand::Rng;
use serde_json::{Value, json};

use super::workload::{Workload, hex, one_of};
use crate::slot::{Slot, Slots};

const RESOURCES: [(&str, &str, &str); 10] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "Deployment"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("policy", "v1", "PodDisruptionBudget"),
];

/// Returns the template of an Argo CD `Application` that deploys `workload`.
pub(super) fn application(workload: &Workload, rng: &mut Rng, slots: &mut Slots) -> Value {
    let Workload {
        name, namespace, ..
    } = workload;
    let source = json!({
        "helm": {"parameters": [
            {"name": "image.tag", "value": format!("v{}.{}.{}", rng.u32(1..9), rng.u32(..40), rng.u32(..20))},
            {"name": "replicaCount", "value": rng.u32(1..30).to_string()},
        ], "valueFiles": ["values.yaml", format!("values-{}.yaml", workload.stage)]},
        "path": format!("charts/{}/{name}", workload.domain),
        "repoURL": format!("https://git.example.com/{}/deployments.git", workload.team),
        "targetRevision": "main",
    });
    let destination = json!({"namespace": namespace, "server": "https://kubernetes.default.svc"});
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "annotations": {"bench/ts": slots.mark(Slot::Stamp), "notifications.argoproj.io/subscribe.on-sync-failed.slack": workload.team},
            "creationTimestamp": slots.mark(Slot::Time(0)),
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "generation": rng.u32(1..5_000),
            "labels": {"app.kubernetes.io/instance": name, "environment": workload.stage, "team": workload.team},
            "managedFields": [{
                "apiVersion": "argoproj.io/v1alpha1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:status": {".": {}, "f:health": {}, "f:history": {}, "f:operationState": {}, "f:reconciledAt": {}, "f:resources": {}, "f:sync": {}}},
                "manager": "argocd-application-controller",
                "operation": "Update",
                "time": slots.mark(Slot::Time(90)),
            }],
            "name": format!("{name}-{}", slots.mark(Slot::Suffix)),
            "namespace": namespace,
            "resourceVersion": slots.mark(Slot::Revision),
            "uid": slots.mark(Slot::Uid),
        },
        "spec": {
            "destination": destination,
            "project": workload.team,
            "source": source,
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "retry": {"backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m0s"}, "limit": 5}, "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]},
        },
        "status": status(workload, &source, &destination, rng, slots),
    })
}

fn status(
    workload: &Workload,
    source: &Value,
    destination: &Value,
    rng: &mut Rng,
    slots: &mut Slots,
) -> Value {
    let health = one_of(rng, &["Healthy", "Healthy", "Healthy", "Progressing"]);
    let resources: Vec<_> = RESOURCES
        .iter()
        .map(|(group, version, kind)| json!({"group": group, "health": {"status": health}, "kind": kind, "name": workload.name, "namespace": workload.namespace, "status": "Synced", "version": version}))
        .collect();
    let history: Vec<_> = (0..rng.u32(1..4))
        .map(|id| json!({"deployStartedAt": "2026-01-12T09:30:00Z", "deployedAt": "2026-01-12T09:30:04Z", "id": id, "initiatedBy": {"automated": true}, "revision": hex(rng, 40), "source": source}))
        .collect();
    let revision = slots.mark(Slot::Hex(0, 40));
    json!({
        "health": {"lastTransitionTime": slots.mark(Slot::Time(60)), "status": health},
        "history": history,
        "operationState": {
            "finishedAt": slots.mark(Slot::Time(45)),
            "message": "successfully synced (all tasks run)",
            "operation": {"initiatedBy": {"automated": true}, "retry": {"limit": 5}, "sync": {"prune": true, "revision": revision}},
            "phase": "Succeeded",
            "startedAt": slots.mark(Slot::Time(40)),
            "syncResult": {"revision": revision, "source": source},
        },
        "reconciledAt": slots.mark(Slot::Time(90)),
        "resources": resources,
        "sourceType": "Helm",
        "summary": {"externalURLs": [format!("https://{}.{}.example.com/", workload.name, workload.stage)], "images": [format!("registry.example.com/shop/{}", workload.name)]},
        "sync": {"comparedTo": {"destination": destination, "source": source}, "revision": revision, "status": "Synced"},
    })
}
