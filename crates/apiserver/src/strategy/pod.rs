//! Defines the strategy of pods.
//!
//! The strategy sets the QoS class, keeps what an update of the status omits, validates, and computes grace periods.
//!
//! Guarantees: the grace period is computed as in Kubernetes' `CheckGracefulDelete` and `BeforeDelete`.

use std::cmp::max;
use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::field::Field;
use super::pod_change::check_pod_change;
use super::pod_spec::{Place, check_pod_spec};
use super::report::Report;
use super::{
    Grace, GracePeriod, Hooks, Part, RESET_METADATA, ephemeral_container, quality_of_service,
    resize, value_errors, warnings,
};
use crate::object::Object;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_status,
    check,
    warn: Some(warnings::of_pod),
    prepare_update,
    validate_update,
    grace_period,
    ..Hooks::NONE
};

/// The annotation of a pod that represents a static pod of a kubelet.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Default grace period of a pod in seconds: Kubernetes' `DefaultTerminationGracePeriodSeconds`.
const GRACE_SECONDS: i64 = 30;

fn check(pod: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(pod, "spec");
    check_values(&spec, report);
    match old {
        Some(old) => check_pod_change(&spec, &Field::of(old, "spec"), report),
        None => check_new_spec(&spec, report),
    }
}

/// Checks the `spec` without its change.
fn check_values(spec: &Field<'_, '_>, report: &mut Report) {
    check_pod_spec(spec, Place::Pod, report);
    check_only_in_pods(spec, report);
}

/// Returns the errors of a write of a subresource that changes the `spec`.
fn validate_update(old: &Object, new: &Object, part: Part) -> Vec<FieldError> {
    let check_change = match part {
        Part::EphemeralContainers => ephemeral_container::check_change,
        Part::Resize => resize::check_change,
        _ => return Vec::new(),
    };
    if let Some(error) = refused(old, part) {
        return vec![error];
    }
    let check = |pod: &Object, _: Option<&Object>, report: &mut Report| {
        check_values(&Field::of(pod, "spec"), report);
    };
    let mut errors = value_errors(check, Some(old), new);
    let mut report = Report::default();
    check_change(new, old, &mut report);
    errors.extend(report.into_errors());
    errors
}

/// Returns the error about a pod that has no such subresource.
fn refused(pod: &Object, part: Part) -> Option<FieldError> {
    let annotations = pod.meta("annotations");
    let is_static = annotations.is_some_and(|all| !all[MIRROR].is_null());
    let is_windows = pod.part("spec")["os"]["name"] == "windows";
    let why = match part {
        Part::EphemeralContainers if is_static => "static pods do not support ephemeral containers",
        Part::Resize if is_static => "static pods cannot be resized",
        Part::Resize if is_windows => "windows pods cannot be resized",
        _ => return None,
    };
    // Kubernetes writes a path of one empty name so.
    Some(FieldError::forbidden("[]", why))
}

/// Checks what is valid in a template, but not in a pod.
fn check_only_in_pods(spec: &Field<'_, '_>, report: &mut Report) {
    for list in ["containers", "initContainers"] {
        for container in spec.at(list).items() {
            let image = container.at("image");
            if image.text().trim() != image.text() {
                image.invalid(report, "must not have leading or trailing whitespace");
            }
        }
    }
}

/// Checks what only a new pod can't have (`ValidatePodCreate`).
fn check_new_spec(spec: &Field<'_, '_>, report: &mut Report) {
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        ephemeral.forbidden(report, "cannot be set on create");
    }
    let node = spec.at("nodeName");
    if !node.is_empty() && !spec.at("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        node.forbidden(report, why);
    }
}

fn prepare_status(status: &mut Value, pod: &Object, now: &str) {
    status["qosClass"] = json!(quality_of_service::of(pod));
    // Kubernetes drops all other conditions of a new pod.
    if !Field::of(pod, "spec").at("schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
}

fn prepare_update(new: &mut Object, old: &Object, part: Part) {
    match part {
        Part::Status => keep_omitted(new, old),
        Part::EphemeralContainers => {
            let spec = ephemeral_container::changed(&old.part("spec"), &new.part("spec"));
            keep_all_but_spec(new, old);
            new.set("spec", Some(spec));
        }
        // Another number of containers is an error.
        Part::Resize => {
            if let Some(spec) = resize::changed(&old.part("spec"), &new.part("spec")) {
                keep_all_but_spec(new, old);
                new.set("spec", Some(spec));
            }
        }
        _ => {}
    }
}

/// Reverts the changes that a write of a subresource which changes the `spec` can't make.
fn keep_all_but_spec(new: &mut Object, old: &Object) {
    new.set("status", old.get("status").cloned());
    for member in RESET_METADATA {
        new.set_meta(member, old.meta(member).cloned());
    }
}

/// Keeps the stored QoS class and observed generations if an update of the status omits them.
///
/// Old kubelets send such updates.
fn keep_omitted(new: &mut Object, old: &Object) {
    let Some(stored) = old.get("status").filter(|status| status.is_object()) else {
        return;
    };
    let mut status = new.sound_part("status").unwrap_or_else(|| json!({}));
    for name in ["qosClass", "observedGeneration"] {
        keep(&mut status, stored, name);
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        keep_generations(conditions, &stored["conditions"]);
    }
    new.set("status", Some(status));
}

fn keep(new: &mut Value, old: &Value, name: &str) {
    if let (None | Some(Value::Null), Some(old)) = (new.get(name), old.get(name)) {
        new[name] = old.clone();
    }
}

/// Keeps the observed generations of conditions. Several conditions of one type keep them in their order.
fn keep_generations(new: &mut [Value], old: &Value) {
    let kind = |condition: &Value| condition["type"].as_str().unwrap_or_default().to_owned();
    let mut by_type: BTreeMap<String, VecDeque<&Value>> = BTreeMap::new();
    for condition in old.as_array().into_iter().flatten() {
        by_type
            .entry(kind(condition))
            .or_default()
            .push_back(condition);
    }
    for condition in new {
        let same = by_type.get_mut(&kind(condition));
        if let Some(same) = same.and_then(VecDeque::pop_front) {
            keep(condition, same, "observedGeneration");
        }
    }
}

/// Returns whether and how a deletion changes the grace period of a pod.
///
/// `asked` is the grace period that the client requests, in seconds.
fn grace_period(pod: &Object, asked: Option<i64>, now: Timestamp) -> GracePeriod {
    let until = |start: Timestamp, seconds: i64| {
        let end = start.checked_add(SignedDuration::from_secs(seconds));
        end.unwrap_or(Timestamp::MAX)
    };
    if let Some(due) = pod.deletion_time() {
        let running = pod.number("deletionGracePeriodSeconds").unwrap_or(0);
        return match asked {
            _ if running == 0 => GracePeriod::None,
            // A later deletion can only shorten the grace period.
            Some(seconds) if seconds < running => {
                let due = until(due, seconds.saturating_sub(running));
                let overdue = due < now && seconds != 0;
                GracePeriod::Until(Grace {
                    seconds: if overdue { 1 } else { seconds },
                    until: max(due, now),
                })
            }
            _ => GracePeriod::Running,
        };
    }
    let part = |part: &str, member: &str| pod.get(part).map(|part| part[member].clone());
    let is_assigned = part("spec", "nodeName").is_some_and(|node| node.as_str() > Some(""));
    let phase = part("status", "phase").unwrap_or_default();
    let own = part("spec", "terminationGracePeriodSeconds").and_then(|seconds| seconds.as_i64());
    let seconds = match asked.or(own).unwrap_or(GRACE_SECONDS) {
        _ if !is_assigned || phase == "Failed" || phase == "Succeeded" => 0,
        ..0 => 1,
        seconds => seconds,
    };
    GracePeriod::Until(Grace {
        seconds,
        until: until(now, seconds),
    })
}
