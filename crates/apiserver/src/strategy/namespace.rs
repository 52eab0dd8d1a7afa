//! Defines the strategy of namespaces: sets the finalizer and the name label, and validates updates.
//!
//! The `verb::namespace` module deletes the contents of namespaces. This module does not.

use serde_json::{Value, json};

use super::{Hooks, Part};
use crate::metadata;
use crate::object::Object;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_create: Some(complete),
    validate,
    prepare_update: keep,
    validate_update: check_change,
    is_held,
    ..Hooks::NONE
};

/// Finalizer in the `spec` of a namespace until the namespace is empty.
pub(crate) const FINALIZER: &str = "kubernetes";

/// Key of the label whose value is the name of the namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Adds the finalizer and the name label to a new namespace.
fn complete(namespace: &mut Object) {
    let mut held_by = finalizers(namespace);
    if !held_by.iter().any(|finalizer| finalizer == FINALIZER) {
        held_by.push(FINALIZER.to_owned());
    }
    set_finalizers(namespace, &held_by);
    label(namespace);
}

/// Sets the name label of an updated namespace.
///
/// Copies `spec` from `old` if the request updates the namespace itself ([`Part::Main`]), not a subresource.
fn keep(new: &mut Object, old: &Object, part: Part) {
    if part == Part::Main {
        new.set("spec", old.get("spec").cloned());
    }
    if finalizers(new).is_empty() {
        set_finalizers(new, &[]);
    }
    label(new);
}

fn validate(namespace: &Object) -> Vec<FieldError> {
    metadata::check_namespace_finalizers(&finalizers(namespace))
}

fn is_held(namespace: &Object) -> bool {
    !finalizers(namespace).is_empty()
}

fn check_change(_old: &Object, namespace: &Object, part: Part) -> Vec<FieldError> {
    match part {
        Part::Finalize => {
            let names = finalizers(namespace);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            metadata::unqualified(&names, "spec.finalizers")
        }
        Part::Status => {
            let phase = namespace.get("status").map(|status| &status["phase"]);
            let phase = phase.and_then(Value::as_str).unwrap_or_default();
            let (expected, why) = if namespace.is_deleting() {
                (
                    "Terminating",
                    "may only be 'Terminating' if `deletionTimestamp` is not empty",
                )
            } else {
                (
                    "Active",
                    "may only be 'Active' if `deletionTimestamp` is empty",
                )
            };
            let wrong = (phase != expected)
                .then(|| FieldError::invalid("status.Phase", format!("{phase:?}"), why));
            wrong.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the finalizers in the `spec` of a namespace.
pub(crate) fn finalizers(namespace: &Object) -> Vec<String> {
    let spec = namespace.get("spec");
    let list = spec.and_then(|spec| spec["finalizers"].as_array());
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Sets `spec.finalizers` of a namespace, or removes the member if `finalizers` is empty.
pub(crate) fn set_finalizers(namespace: &mut Object, finalizers: &[String]) {
    let Some(mut spec) = namespace.sound_part("spec") else {
        return;
    };
    spec["finalizers"] = json!(finalizers);
    if let (true, Some(spec)) = (finalizers.is_empty(), spec.as_object_mut()) {
        spec.remove("finalizers");
    }
    namespace.set("spec", Some(spec));
}

fn label(namespace: &mut Object) {
    let mut labels = namespace.meta("labels").cloned().unwrap_or(json!({}));
    labels[NAME_LABEL] = json!(namespace.text("name"));
    namespace.set_meta("labels", Some(labels));
}
