//! Handles POST on `pods/binding` and `bindings`: binds a pod to a node.
//!
//! Guarantees: a pod is bound at most once. A second binding is rejected with a 409 error that names the
//! pod's current node.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::update::{change, check_uid};
use super::write::{How, Subject, Tracking};
use crate::object::Object;
use crate::reply::Reply;
use crate::route::Target;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};
use crate::storage::Entry;
use crate::strategy::Part;

impl Call {
    pub(super) fn bind(
        &self,
        target: &Target,
        subject: Subject<'_>,
        binding: &Value,
    ) -> Result<Reply, ApiError> {
        // As in Kubernetes, the fields that a binding sets have no owner.
        let how = How {
            tracking: Tracking::Off,
            ..self.how(Part::Binding)?
        };
        let entry = bind(&self.shared, subject, binding, how)?;
        let status = Reply::success(StatusCode::CREATED, None);
        let mut reply = self.show_document(target, StatusCode::CREATED, &status)?;
        reply.revision = Some(entry.revision);
        Ok(reply)
    }

    /// Handles POST on the collection `bindings`. The request body names the pod.
    pub(super) fn bind_by_collection(&self, target: &Target) -> Result<Reply, ApiError> {
        // The parameters are judged before the body.
        self.how(Part::Binding)?;
        let binding = self.sent(&target.resource)?;
        let pods = self.shared.builtin.pods.as_ref();
        let subject = Subject {
            resource: pods.ok_or_else(ApiError::no_such_path)?,
            namespace: target.namespace.as_deref(),
            name: binding.text("name"),
        };
        self.bind(target, subject, &binding.clone().into_value())
    }
}

/// Sets the pod's `spec.nodeName`, adds the annotations of `binding`, and adds the condition `PodScheduled`.
///
/// # Errors
///
/// Returns a 400 or 500 error if `binding` is invalid, and a 409 error if the pod can't be bound.
fn bind(
    shared: &Shared,
    subject: Subject<'_>,
    binding: &Value,
    how: How<'_>,
) -> Result<Arc<Entry>, ApiError> {
    let kind = &subject.resource.kind;
    check(subject, binding)?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    let now = shared.settings.clock.now().to_string();
    let uid = binding["metadata"]["uid"].as_str().unwrap_or_default();
    change(shared, subject, how, |pod| {
        let conflict = |why: String| {
            let error = ApiError::conflict(kind, subject.name, &why);
            Err(error.on_subresource(kind, "binding"))
        };
        check_uid(subject, uid, pod.text("uid"), how)?;
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
        let mut bound = bound_to(pod, node, &now);
        let sent = binding["metadata"]["annotations"].as_object();
        if let Some(sent) = sent.filter(|sent| !sent.is_empty()) {
            let annotations = pod.meta("annotations").and_then(Value::as_object);
            let mut annotations = annotations.cloned().unwrap_or_default();
            annotations.extend(sent.clone());
            bound.set_meta("annotations", Some(Value::Object(annotations)));
        }
        Ok(bound)
    })
}

/// Checks the name and the target of a binding.
fn check(subject: Subject<'_>, binding: &Value) -> Result<(), ApiError> {
    if binding["metadata"]["name"].as_str().unwrap_or_default() != subject.name {
        let message = "name in URL does not match name in Binding object";
        return Err(ApiError::bad_request(message));
    }
    let target = &binding["target"];
    let mut errors = Vec::new();
    match target["kind"].as_str().unwrap_or_default() {
        "" | "Node" => {}
        other => {
            let supported = ["Node", "<empty>"];
            errors.push(FieldError::unsupported("target.kind", other, &supported));
        }
    }
    if target["name"].as_str().unwrap_or_default().is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // Kubernetes does not convert these errors to a 422 error.
    Err(ApiError::unexplained(&FieldError::list(&errors)))
}

fn bound_to(pod: &Object, node: &str, now: &str) -> Object {
    let mut bound = pod.clone();
    let mut spec = pod.part("spec");
    spec["nodeName"] = json!(node);
    bound.set("spec", Some(spec));
    let mut status = pod.part("status");
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    }));
    status["conditions"] = json!(conditions);
    bound.set("status", Some(status));
    bound
}
