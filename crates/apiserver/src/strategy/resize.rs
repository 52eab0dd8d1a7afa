//! Validates a write of the subresource `resize` of a pod, which changes the resources of running containers.
//!
//! Guarantees: the errors and their order are those of `ValidatePodResize` in Kubernetes.

use serde_json::{Map, Value, json};

use super::field::Field;
use super::pod_change::restore;
use super::quality_of_service::{self, COMPUTE};
use super::report::Report;
use super::unchanged::is_unchanged;
use crate::object::Object;
use crate::quote::Quoted;

/// The lists of containers whose resources can change.
const LISTS: [&str; 2] = ["containers", "initContainers"];

const QUANTITIES: [&str; 2] = ["requests", "limits"];

const ONLY_COMPUTE: &str = "only cpu and memory resources are mutable";

const ONLY_COMPUTE_OF_INIT: &str =
    "only cpu and memory resources for init or sidecar containers are mutable";

const RESTARTS: &str =
    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";

/// Returns the `spec` after a write of the subresource: the old one with the new resources.
///
/// Returns `None` if the number of containers differs.
pub(super) fn changed(old: &Value, new: &Value) -> Option<Value> {
    let mut spec = old.clone();
    restore(&mut spec, new, "resources");
    for list in LISTS {
        let items = |spec: &Value| spec[list].as_array().cloned().unwrap_or_default();
        let (new, old) = (items(new), items(old));
        if new.len() != old.len() {
            return None;
        }
        if new.is_empty() {
            continue;
        }
        let mut pairs = new.iter().zip(&old);
        // Other names are an error.
        let is_same = pairs.all(|(new, old)| new["name"] == old["name"]);
        spec[list] = if is_same {
            let pairs = old.into_iter().zip(&new);
            pairs.map(|(old, new)| resized(old, new)).collect()
        } else {
            json!(new)
        };
    }
    Some(spec)
}

fn resized(mut container: Value, new: &Value) -> Value {
    for name in ["resources", "resizePolicy"] {
        restore(&mut container, new, name);
    }
    container
}

/// Checks that a write of the subresource changes only the CPU and the memory of containers.
pub(super) fn check_change(new: &Object, old: &Object, report: &mut Report) {
    let status = old.part("status");
    let spec = Field::of(new, "spec");
    let old_class = status["qosClass"]
        .as_str()
        .filter(|class| !class.is_empty());
    if old_class.unwrap_or_else(|| quality_of_service::of(old)) != quality_of_service::of(new) {
        let shown = new.part("status")["qosClass"].take();
        let shown = Quoted(shown.as_str().unwrap_or_default()).to_string();
        let why = "Pod QOS Class may not change as a result of resizing";
        report.invalid(&spec.path, shown, why);
    }
    if !can_resize(&status) {
        spec.forbidden(report, "Pod running on node without support for resize");
    }
    let old = Field::of(old, "spec");
    check_pod_resources(&spec, old.value, report);
    if status["nodeAllocatableResourceClaimStatuses"].is_array() {
        let why = "pods with node allocatable resource claims cannot be resized";
        spec.forbidden(report, why);
    }
    if !keeps_order(&spec, &old, report) {
        return;
    }
    for list in ["initContainers", "containers"] {
        for (new, old) in pairs(&spec.at(list), &old.at(list)) {
            let resources = new.at("resources");
            check_removed(&resources, &old["resources"], "resource", report);
        }
    }
    for (new, old) in pairs(&spec.at("containers"), &old.at("containers")) {
        if !changes_only_compute(new.value, old) {
            spec.forbidden(report, ONLY_COMPUTE);
        }
    }
    for (new, old) in pairs(&spec.at("initContainers"), &old.at("initContainers")) {
        check_init_container(&new, old, report);
    }
}

fn check_init_container(new: &Field<'_, '_>, old: &Value, report: &mut Report) {
    if !changes_only_compute(new.value, old) {
        new.forbidden(report, ONLY_COMPUTE_OF_INIT);
    }
    if new.at("restartPolicy").is("Always") || is_unchanged(new.value, old) {
        return;
    }
    for policy in new.at("resizePolicy").items() {
        if policy.at("restartPolicy").is("RestartContainer") {
            new.forbidden(report, RESTARTS);
        }
    }
}

/// Returns whether the node of a pod can resize it.
///
/// A kubelet that can reports the resources of running containers.
fn can_resize(status: &Value) -> bool {
    let statuses = status["containerStatuses"].as_array();
    let mut statuses = statuses.into_iter().flatten();
    let running = statuses.find(|status| !status["state"]["running"].is_null());
    running.is_none_or(|status| !status["resources"].is_null())
}

fn pairs<'b, 'v>(
    new: &'b Field<'_, 'v>,
    old: &Field<'_, 'v>,
) -> impl Iterator<Item = (Field<'b, 'v>, &'v Value)> {
    let old: &'v Value = old.value;
    new.items().zip(old.as_array().into_iter().flatten())
}

/// Checks that the containers and their order are the same.
fn keeps_order(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) -> bool {
    let before = report.found();
    for list in LISTS {
        let (containers, old) = (new.at(list), old.at(list));
        if containers.items().count() != old.items().count() {
            let why = format_args!("{list} may not be added or removed on resize");
            containers.forbidden(report, why);
            continue;
        }
        for (container, old) in pairs(&containers, &old) {
            let name = container.at("name");
            if *name.value != old["name"] {
                let why = format_args!("{list} may not be renamed or reordered on resize");
                name.forbidden(report, why);
            }
        }
    }
    report.found() == before
}

/// Checks that no request and no limit is removed.
fn check_removed(new: &Field<'_, '_>, old: &Value, what: &str, report: &mut Report) {
    for name in QUANTITIES {
        let quantities = new.at(name);
        let is_removed = |(of, _): (&String, &Value)| quantities.value[of].is_null();
        if old[name].as_object().into_iter().flatten().any(is_removed) {
            let why = format_args!("{what} {name} cannot be removed");
            quantities.forbidden(report, why);
        }
    }
}

/// Checks the resources of the pod itself.
fn check_pod_resources(spec: &Field<'_, '_>, old: &Value, report: &mut Report) {
    let (new, old) = (spec.at("resources"), &old["resources"]);
    let is_set = |resources: &Value| {
        let sizes = QUANTITIES.map(|name| resources[name].as_object().map_or(0, Map::len));
        sizes != [0, 0]
    };
    if !is_set(new.value) && !is_set(old) {
        return;
    }
    if old.is_object() && !new.exists() {
        return new.forbidden(report, "pod-level resources cannot be removed");
    }
    check_removed(&new, old, "pod-level resource", report);
    if !is_unchanged(&fixed(new.value), &fixed(old)) {
        spec.forbidden(report, format_args!("{ONLY_COMPUTE} at pod-level"));
    }
}

/// Returns the part of resources that can't change.
fn fixed(resources: &Value) -> Value {
    let others = |name: &str| {
        let quantities = resources[name].as_object().into_iter().flatten();
        let others = quantities.filter(|(name, _)| !COMPUTE.contains(&name.as_str()));
        let others = others.map(|(name, quantity)| (name.clone(), quantity.clone()));
        others.collect::<Map<_, _>>()
    };
    json!({
        "limits": others("limits"),
        "requests": others("requests"),
        "claims": resources["claims"],
    })
}

/// Returns whether at most the CPU and the memory of a container differ.
///
/// As in Kubernetes, that is not so for a container with resource claims.
fn changes_only_compute(new: &Value, old: &Value) -> bool {
    let mut resources = fixed(&new["resources"]);
    resources["claims"] = Value::Null;
    is_unchanged(&resources, &fixed(&old["resources"]))
        && is_unchanged(&new["resizePolicy"], &old["resizePolicy"])
}
