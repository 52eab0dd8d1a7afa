//! Defines the strategy of pods.
//!
//! The strategy sets the QoS class, rejects changes of `spec.nodeName`, and computes grace periods.
//!
//! Guarantees: the grace period is computed as in Kubernetes' `CheckGracefulDelete` and `BeforeDelete`.

use std::cmp::max;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::field::Field;
use super::pod_spec::check_pod_spec;
use super::report::Report;
use super::{Grace, GracePeriod, Hooks, Part};
use crate::object::Object;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_status,
    check,
    prepare_update,
    validate_update,
    grace_period,
    ..Hooks::NONE
};

/// Default grace period of a pod in seconds: Kubernetes' `DefaultTerminationGracePeriodSeconds`.
const GRACE_SECONDS: i64 = 30;

/// Names of the compute resources that determine a pod's QoS class.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

fn check(pod: &Object, _old: Option<&Object>, report: &mut Report) {
    check_pod_spec(&Field::of(pod, "spec"), report);
}

fn prepare_status(status: &mut Value, pod: &Object, _now: &str) {
    status["qosClass"] = json!(quality_of_service(pod));
}

/// Keeps the stored QoS class if an update of the status omits the class. Old kubelets send such updates.
fn prepare_update(new: &mut Object, old: &Object, part: Part) {
    if part != Part::Status {
        return;
    }
    let class = |pod: &Object| Some(pod.get("status")?.get("qosClass")?.clone());
    if let (None, Some(class), Some(mut status)) =
        (class(new), class(old), new.sound_part("status"))
    {
        status["qosClass"] = class;
        new.set("status", Some(status));
    }
}

fn validate_update(old: &Object, new: &Object, part: Part) -> Vec<FieldError> {
    let node = |pod: &Object| {
        pod.get("spec")
            .and_then(|spec| spec.get("nodeName"))
            .cloned()
    };
    if part != Part::Main || node(old) == node(new) {
        return Vec::new();
    }
    let body = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    vec![FieldError::forbidden("spec", body)]
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

/// Returns the QoS class of a pod.
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
