//! Parts of a ReplicaSet's status that need no other object.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};

use super::wanted;
use crate::{clock::Clock, object::message_of};

/// Condition of a ReplicaSet whose pods can't be created or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Returns the conditions of the status after a reconciliation that changed pods, or failed to.
///
/// An existing failure stays as it is, as in Kubernetes.
pub(super) fn conditions(
    set: &ReplicaSet,
    failure: Option<&anyhow::Error>,
    (has, clock): (i32, Clock),
) -> Vec<ReplicaSetCondition> {
    let status = set.status.as_ref();
    let mut conditions = status
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    let is_failure = |condition: &ReplicaSetCondition| condition.type_ == REPLICA_FAILURE;
    match failure {
        None => conditions.retain(|condition| !is_failure(condition)),
        Some(_) if conditions.iter().any(is_failure) => {}
        Some(error) => {
            let is_missing = has < wanted(set);
            let reason = if is_missing {
                "FailedCreate"
            } else {
                "FailedDelete"
            };
            conditions.push(ReplicaSetCondition {
                type_: REPLICA_FAILURE.to_owned(),
                status: "True".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message_of(error)),
                last_transition_time: Some(clock.time()),
            });
        }
    }
    conditions
}

/// Returns the status as the server stores it: without counts of zero and empty lists.
pub(super) fn normalized(status: &ReplicaSetStatus) -> ReplicaSetStatus {
    let count = |count: Option<i32>| count.filter(|count| *count != 0);
    ReplicaSetStatus {
        available_replicas: count(status.available_replicas),
        fully_labeled_replicas: count(status.fully_labeled_replicas),
        ready_replicas: count(status.ready_replicas),
        conditions: status
            .conditions
            .clone()
            .filter(|conditions| !conditions.is_empty()),
        ..status.clone()
    }
}
