//! Computes the status of a Deployment, as `progress.go` and `sync.go` do in kube-controller-manager.

use std::time::Duration;

use k8s_openapi::{
    api::apps::v1::{
        Deployment, DeploymentCondition, DeploymentStatus, ReplicaSetCondition, ReplicaSetStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube_core::ResourceExt;

use super::{
    Set,
    size::{self, Limits},
};
use crate::clock::Clock;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// `status` and `reason` of a condition.
type Verdict = (&'static str, &'static str);

const PROGRESSED: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
const CREATED: Verdict = ("True", "NewReplicaSetCreated");
const FOUND: Verdict = ("True", "FoundNewReplicaSet");
const NOT_CREATED: Verdict = ("False", "ReplicaSetCreateError");
const UPDATED: Verdict = ("True", "ReplicaSetUpdated");

/// The ReplicaSets of a Deployment that count for its status.
#[derive(Clone, Copy)]
pub(super) struct Sets<'a> {
    pub(super) new: Option<&'a Set>,
    /// All other ReplicaSets, the oldest first.
    pub(super) old: &'a [Set],
}

impl<'a> Sets<'a> {
    fn all(self) -> impl Iterator<Item = &'a Set> {
        self.old.iter().chain(self.new)
    }

    fn sum(self, number: impl Fn(&ReplicaSetStatus) -> i32) -> i32 {
        self.all()
            .filter_map(|set| set.status.as_ref())
            .map(number)
            .sum()
    }
}

/// Returns the deadline for progress, or `None` if the Deployment has none.
fn progress_deadline(deployment: &Deployment) -> Option<Duration> {
    let spec = deployment.spec.as_ref()?;
    let seconds = spec
        .progress_deadline_seconds
        .filter(|seconds| *seconds != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Returns whether all pods have the current template and are available, and no others exist.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = size::wanted(deployment);
    let counts = [
        status.updated_replicas,
        status.replicas,
        status.available_replicas,
    ];
    counts.iter().all(|count| count.unwrap_or(0) == wanted)
        && status.observed_generation >= deployment.metadata.generation
}

/// Returns the status without an estimate of the progress.
pub(super) fn counted(deployment: &Deployment, sets: Sets<'_>, clock: Clock) -> DeploymentStatus {
    let of = deployment.status.clone().unwrap_or_default();
    let available = sets.sum(|status| status.available_replicas.unwrap_or(0));
    let wanted: i32 = sets.all().map(|set| size::size(set)).sum();
    let new = sets.new.and_then(|set| set.status.as_ref());
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sets.sum(|status| status.replicas)),
        updated_replicas: some(new.map_or(0, |status| status.replicas)),
        ready_replicas: some(sets.sum(|status| status.ready_replicas.unwrap_or(0))),
        available_replicas: some(available),
        unavailable_replicas: some((wanted - available).max(0)),
        terminating_replicas: terminating(sets),
        ..of
    };
    let limits = Limits::of(deployment);
    let condition = if available >= limits.min_available() {
        let text = "Deployment has minimum availability.";
        condition(AVAILABLE, ("True", "MinimumReplicasAvailable"), text, clock)
    } else {
        let text = "Deployment does not have minimum availability.";
        condition(
            AVAILABLE,
            ("False", "MinimumReplicasUnavailable"),
            text,
            clock,
        )
    };
    set(&mut status, condition);
    status
}

/// Returns the status of a Deployment whose current template is rolled out or scaled.
pub(super) fn rolled_out(
    deployment: &Deployment,
    sets: Sets<'_>,
    clock: Clock,
) -> DeploymentStatus {
    let mut status = counted(deployment, sets, clock);
    match progress_deadline(deployment) {
        None => remove(&mut status, PROGRESSING),
        Some(deadline) => judge_progress(deployment, sets, &mut status, (deadline, clock)),
    }
    match failure(sets) {
        Some(condition) => set(&mut status, condition),
        None => remove(&mut status, REPLICA_FAILURE),
    }
    status
}

fn judge_progress(
    deployment: &Deployment,
    sets: Sets<'_>,
    status: &mut DeploymentStatus,
    (deadline, clock): (Duration, Clock),
) {
    let before = deployment.status.clone().unwrap_or_default();
    let current = find(&before, PROGRESSING).cloned();
    let has_progressed = current
        .as_ref()
        .is_some_and(|it| is_because(it, PROGRESSED));
    if has_progressed && status.replicas == status.updated_replicas {
        return;
    }
    let who = sets.new.map_or_else(
        || format!("Deployment {:?}", deployment.name_any()),
        |set| format!("ReplicaSet {:?}", set.name_any()),
    );
    if is_complete(deployment, status) {
        let text = format!("{who} has successfully progressed.");
        set(
            status,
            condition(PROGRESSING, ("True", PROGRESSED), &text, clock),
        );
    } else if is_progress(&before, status) {
        let text = format!("{who} is progressing.");
        let mut new = condition(PROGRESSING, UPDATED, &text, clock);
        if let Some(current) = current.filter(|current| current.status == "True") {
            new.last_transition_time = current.last_transition_time;
        }
        // Also with an equal reason, so that the time of the update shows the progress.
        remove(status, PROGRESSING);
        set(status, new);
    } else if current.is_some_and(|current| is_late(&current, deadline, clock)) {
        let text = format!("{who} has timed out progressing.");
        set(
            status,
            condition(PROGRESSING, ("False", TIMED_OUT), &text, clock),
        );
    }
}

/// Returns whether more pods are updated, ready or available than before, or fewer pods are old.
fn is_progress(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| {
        status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0)
    };
    let counts = |status: &DeploymentStatus| {
        [
            status.updated_replicas,
            status.ready_replicas,
            status.available_replicas,
        ]
        .map(|count| count.unwrap_or(0))
    };
    let more = counts(after)
        .iter()
        .zip(counts(before))
        .any(|(after, before)| *after > before);
    more || old(after) < old(before)
}

fn is_late(progress: &DeploymentCondition, deadline: Duration, clock: Clock) -> bool {
    let reason = progress.reason.as_deref();
    let since = progress.last_update_time.as_ref();
    let is_over = since.is_some_and(|since| clock.left(since, deadline).is_zero());
    reason == Some(TIMED_OUT) || (reason != Some(PROGRESSED) && is_over)
}

/// Returns when the progress must be judged again, or `None` if no deadline is running.
pub(super) fn next_judgement(deployment: &Deployment, clock: Clock) -> Option<Duration> {
    let deadline = progress_deadline(deployment)?;
    let status = deployment.status.as_ref()?;
    let progress = find(status, PROGRESSING)?;
    let is_final = is_because(progress, TIMED_OUT) || is_because(progress, PROGRESSED);
    if is_final || is_complete(deployment, status) {
        return None;
    }
    let left = clock.left(progress.last_update_time.as_ref()?, deadline);
    // The times of conditions have no fractions of a second.
    Some(left + Duration::from_secs(1))
}

/// Records that the Deployment is paused, or no longer is. Returns whether the condition has changed.
pub(super) fn record_pause(deployment: &mut Deployment, clock: Clock) -> bool {
    if progress_deadline(deployment).is_none() {
        return false;
    }
    let pauses = deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true);
    let status = deployment.status.get_or_insert_default();
    let current = find(status, PROGRESSING);
    if current.is_some_and(|it| is_because(it, TIMED_OUT)) {
        return false;
    }
    let was_paused = current.is_some_and(|it| is_because(it, PAUSED));
    let (reason, text) = match (pauses, was_paused) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return false,
    };
    set(
        status,
        condition(PROGRESSING, ("Unknown", reason), text, clock),
    );
    true
}

/// What has happened to the ReplicaSet of the current template.
pub(super) enum New<'a> {
    Created(&'a str),
    Found(&'a str),
    NotCreated(&'a str),
}

/// Records in the condition `Progressing` what has happened. Returns whether the status has changed.
///
/// A ReplicaSet that was found is only recorded if the Deployment has no such condition yet.
pub(super) fn record_new(deployment: &mut Deployment, new: &New<'_>, clock: Clock) -> bool {
    if progress_deadline(deployment).is_none() {
        return false;
    }
    let status = deployment.status.get_or_insert_default();
    let (verdict, text) = match new {
        New::Created(name) => (CREATED, format!("Created new replica set {name:?}")),
        New::Found(_) if find(status, PROGRESSING).is_some() => return false,
        New::Found(name) => (FOUND, format!("Found new replica set {name:?}")),
        New::NotCreated(text) => (NOT_CREATED, (*text).to_owned()),
    };
    set(status, condition(PROGRESSING, verdict, &text, clock));
    true
}

/// Returns the number of pods that are being deleted, or `None` if a ReplicaSet does not report it.
fn terminating(sets: Sets<'_>) -> Option<i32> {
    let mut sum = 0;
    for set in sets.all() {
        let status = set.status.clone().unwrap_or_default();
        match status.terminating_replicas {
            Some(number) => sum += number,
            None if status.observed_generation.unwrap_or(0) == 0 => {}
            None => return None,
        }
    }
    Some(sum)
}

/// Returns the failure of the new ReplicaSet, or else that of an old one.
fn failure(sets: Sets<'_>) -> Option<DeploymentCondition> {
    let failure = |set: &Set| {
        let status = set.status.as_ref()?;
        let mut conditions = status.conditions.iter().flatten();
        conditions
            .find(|condition| condition.type_ == REPLICA_FAILURE)
            .cloned()
    };
    let found: Option<ReplicaSetCondition> = sets
        .new
        .and_then(failure)
        .or_else(|| sets.old.iter().find_map(failure));
    let found = found?;
    Some(DeploymentCondition {
        last_update_time: found.last_transition_time.clone(),
        last_transition_time: found.last_transition_time,
        message: found.message,
        reason: found.reason,
        status: found.status,
        type_: found.type_,
    })
}

// Counts of zero are left out, as in Kubernetes.
fn some(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}

fn condition(
    type_: &str,
    (status, reason): Verdict,
    message: &str,
    clock: Clock,
) -> DeploymentCondition {
    let now: Time = clock.time();
    DeploymentCondition {
        last_transition_time: Some(now.clone()),
        last_update_time: Some(now),
        message: Some(message.to_owned()),
        reason: Some(reason.to_owned()),
        status: status.to_owned(),
        type_: type_.to_owned(),
    }
}

fn is_because(condition: &DeploymentCondition, reason: &str) -> bool {
    condition.reason.as_deref() == Some(reason)
}

fn find<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == type_)
}

fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}

/// Sets a condition, unless the status has one with the same status and reason.
fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(current) = find(status, &condition.type_)
        && current.status == condition.status
    {
        if current.reason == condition.reason {
            return;
        }
        condition
            .last_transition_time
            .clone_from(&current.last_transition_time);
    }
    remove(status, &condition.type_.clone());
    status.conditions.get_or_insert_default().push(condition);
}
