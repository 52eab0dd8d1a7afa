//! Validates the ephemeral containers of a pod, and a write of the subresource that adds them.
//!
//! Guarantees: the errors and their order are those of `validateEphemeralContainers` and
//! `ValidatePodEphemeralContainersUpdate` in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::container::{PodContext, check_container};
use super::field::Field;
use super::internal::shown_difference;
use super::pod_change::restore;
use super::report::Report;
use super::unchanged::is_unchanged;
use crate::object::Object;
use crate::quote::Quoted;

/// The member of the `spec` with the ephemeral containers.
const LIST: &str = "ephemeralContainers";

const UNSUITABLE: &str = "cannot be set for an Ephemeral Container";

/// The members that an ephemeral container can't have, because it is no part of the workload.
const UNSUITABLE_MEMBERS: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks the ephemeral containers of a pod.
pub(super) fn check_ephemeral_containers(
    spec: &Field<'_, '_>,
    pod: &PodContext<'_>,
    report: &mut Report,
) {
    let mut others = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        let list = spec.value[list].as_array().into_iter().flatten();
        others.extend(list.filter_map(|container| container["name"].as_str()));
    }
    let mut names = others.clone();
    for container in spec.at(LIST).items() {
        check_container(&container, pod, report);
        let image = container.at("image");
        if image.text().trim() != image.text() {
            image.invalid(report, "must not have leading or trailing whitespace");
        }
        let (name, target) = (container.at("name"), container.at("targetContainerName"));
        if !names.insert(name.text()) {
            report.duplicate(&name.path, Quoted(name.text()));
        }
        if !target.is_empty() && !others.contains(target.text()) {
            report.not_found(&target.path, target.shown());
        }
        check_members(&container, report);
    }
}

fn check_members(container: &Field<'_, '_>, report: &mut Report) {
    for name in UNSUITABLE_MEMBERS {
        let member = container.at(name);
        let is_set = match name {
            "resources" => !member.is_empty(),
            _ => member.exists(),
        };
        if is_set {
            member.forbidden(report, UNSUITABLE);
        }
    }
    for mount in container.at("volumeMounts").items() {
        for name in ["subPath", "subPathExpr"] {
            let path = mount.at(name);
            if !path.is_empty() {
                path.forbidden(report, UNSUITABLE);
            }
        }
    }
}

/// Returns the `spec` after a write of the subresource: the old one with the new ephemeral containers.
pub(super) fn changed(old: &Value, new: &Value) -> Value {
    let mut spec = old.clone();
    restore(&mut spec, new, LIST);
    spec
}

/// Checks that a write of the subresource neither removes nor changes an ephemeral container.
pub(super) fn check_change(new: &Object, old: &Object, report: &mut Report) {
    let (new, old) = (Field::of(new, "spec"), Field::of(old, "spec"));
    let containers = new.at(LIST);
    let name_of = |container: &Field<'_, '_>| container.at("name").text().to_owned();
    let by_name: BTreeMap<String, &Value> = containers
        .items()
        .map(|container| (name_of(&container), container.value))
        .collect();
    for old in old.at(LIST).items() {
        let name = name_of(&old);
        let about = format!("existing ephemeral containers {}", Quoted(&name));
        match by_name.get(&name) {
            None => containers.forbidden(report, format_args!("{about} may not be removed\n")),
            Some(new) if is_unchanged(new, old.value) => {}
            Some(new) => {
                let difference = shown_difference("EphemeralContainer", old.value, new);
                let why = format_args!("{about} may not be changed\n{difference}");
                containers.forbidden(report, why);
            }
        }
    }
}
