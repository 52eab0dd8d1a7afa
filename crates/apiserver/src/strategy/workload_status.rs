//! Validates the `status` of workloads: counts of pods.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/apps/validation` in Kubernetes.

use super::field::Field;
use super::report::Report;
use crate::object::Object;

/// The counts in a `status`, in the order in which Kubernetes validates them.
struct Counts {
    /// Counts that must not be negative.
    all: &'static [&'static str],
    /// Counts that must not exceed `replicas`.
    limited: &'static [&'static str],
    /// The error about more available replicas than ready ones.
    unready: &'static str,
}

const DEPLOYMENT: Counts = Counts {
    all: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    limited: &["updatedReplicas", "readyReplicas", "availableReplicas"],
    unready: "cannot be greater than readyReplicas",
};
const REPLICA_SET: Counts = Counts {
    all: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    limited: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    unready: "cannot be greater than readyReplicas",
};
const STATEFUL_SET: Counts = Counts {
    all: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    limited: &[
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ],
    unready: "cannot be greater than status.readyReplicas",
};
const DAEMON_SET: Counts = Counts {
    all: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    limited: &[],
    unready: "",
};

pub(super) fn of_deployment(new: &Object, old: Option<&Object>, report: &mut Report) {
    check(&DEPLOYMENT, new, report);
    check_collisions(new, old, report);
}

/// Validates the status of a `ReplicaSet` or a `ReplicationController`.
pub(super) fn of_replica_set(new: &Object, _old: Option<&Object>, report: &mut Report) {
    check(&REPLICA_SET, new, report);
}

pub(super) fn of_stateful_set(new: &Object, old: Option<&Object>, report: &mut Report) {
    check(&STATEFUL_SET, new, report);
    check_collisions(new, old, report);
}

pub(super) fn of_daemon_set(new: &Object, old: Option<&Object>, report: &mut Report) {
    check(&DAEMON_SET, new, report);
    check_collisions(new, old, report);
}

fn check(counts: &Counts, object: &Object, report: &mut Report) {
    let status = Field::of(object, "status");
    for name in counts.all {
        status.at(name).check_not_negative(report);
    }
    let replicas = status.at("replicas").number();
    for name in counts.limited {
        let count = status.at(name);
        if count.number() > replicas {
            let why = "cannot be greater than status.replicas";
            report.invalid(&count.path, count.number(), why);
        }
    }
    let available = status.at("availableReplicas");
    if available.number() > status.at("readyReplicas").number() {
        report.invalid(&available.path, available.number(), counts.unready);
    }
}

fn check_collisions(new: &Object, old: Option<&Object>, report: &mut Report) {
    let status = Field::of(new, "status");
    let count = status.at("collisionCount");
    let old = old.map(|old| Field::of(old, "status"));
    let is_less = old.is_some_and(|old| {
        let old = old.at("collisionCount");
        old.exists() && (!count.exists() || count.number() < old.number())
    });
    if is_less {
        report.invalid(&count.path, count.number(), "cannot be decremented");
    }
}
