//! Builds the pods of a ReplicaSet, and chooses among them.

use std::{cmp::Reverse, sync::Arc};

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube_client::api::ObjectMeta;
use kube_core::{Resource, ResourceExt};
use kube_informer::Object;

use crate::node_agent::{is_ready, ready_since};

/// Annotation of a pod; pods with lower numbers are deleted first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Returns the ready pod with the highest resource version.
pub(super) fn newest_ready(pods: &[Object<Pod>]) -> Option<&Object<Pod>> {
    let ready = pods.iter().filter(|pod| pod.live().is_some_and(is_ready));
    ready.reduce(|newest, pod| {
        if pod.revision() > newest.revision() {
            pod
        } else {
            newest
        }
    })
}

/// Selects `number` pods to delete: first pods without a node, then pods that are not ready, then ready pods.
///
/// Of equal ones, those with the lowest cost of deletion go first, then those that are ready for the shortest time,
/// then the newest.
pub(super) fn least_useful(mut pods: Vec<Arc<Pod>>, number: usize) -> Vec<Arc<Pod>> {
    let has_node = |pod: &Pod| {
        let spec = pod.spec.as_ref();
        spec.is_some_and(|spec| spec.node_name.is_some())
    };
    let cost = |pod: &Pod| -> i32 {
        let cost = pod.annotations().get(DELETION_COST);
        cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
    };
    let ready = |pod: &Pod| ready_since(pod).map(|since| Reverse(since.0));
    let created = |pod: &Pod| {
        pod.metadata
            .creation_timestamp
            .as_ref()
            .map(|it| Reverse(it.0))
    };
    pods.sort_by_key(|pod| {
        (
            has_node(pod),
            is_ready(pod),
            cost(pod),
            ready(pod),
            created(pod),
        )
    });
    pods.truncate(number);
    pods
}

/// Returns the pod to create for the ReplicaSet, built from the ReplicaSet's template.
pub(super) fn pod_of(set: &ReplicaSet) -> Pod {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone());
    let template = template.unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let name = set.metadata.name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: set.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: set.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        ..Pod::default()
    }
}
