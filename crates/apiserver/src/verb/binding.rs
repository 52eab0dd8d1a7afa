//! Handles POST on `pods/binding`: binds a pod to a node.
//!
//! Guarantees: a pod is bound at most once. A request to bind a pod that is already bound is rejected with a
//! 409 error that names the pod's current node.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::change;
use super::write::{How, Subject};
use crate::object::Object;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};
use crate::storage::Entry;

/// Sets the pod's `spec.nodeName` to the node in `binding`, and adds the condition `PodScheduled`.
///
/// # Errors
///
/// Returns a 422 error if `binding` has no node name, and a 409 error if the pod can't be bound.
pub(crate) fn bind(
    shared: &Shared,
    subject: Subject<'_>,
    binding: &Value,
    how: How,
) -> Result<Arc<Entry>, ApiError> {
    let kind = &subject.resource.kind;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    if node.is_empty() {
        let error = FieldError::required("target.name", "");
        return Err(ApiError::invalid(kind, subject.name, &[error]));
    }
    let now = shared.settings.clock.now().to_string();
    let uid = binding["metadata"]["uid"].as_str().unwrap_or_default();
    change(shared, subject, how, |pod| {
        let conflict = |why: String| {
            let error = ApiError::conflict(kind, subject.name, &why);
            Err(error.on_subresource(kind, "binding"))
        };
        if !uid.is_empty() && uid != pod.text("uid") {
            return conflict(format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                pod.text("uid")
            ));
        }
        if pod.is_deleting() {
            return conflict(format!(
                "pod {} is being deleted, cannot be assigned to a host",
                subject.name
            ));
        }
        let bound = pod
            .get("spec")
            .and_then(|spec| spec["nodeName"].as_str())
            .unwrap_or_default();
        if !bound.is_empty() {
            return conflict(format!(
                "pod {} is already assigned to node {bound:?}",
                subject.name
            ));
        }
        Ok(bound_to(pod, node, &now))
    })
}

fn bound_to(pod: &Object, node: &str, now: &str) -> Object {
    let mut bound = pod.clone();
    let mut spec = pod.part("spec");
    spec["nodeName"] = json!(node);
    bound.set("spec", Some(spec));
    let mut status = pod.part("status");
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}));
    status["conditions"] = json!(conditions);
    bound.set("status", Some(status));
    bound
}
