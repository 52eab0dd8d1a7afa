//! Counts the pods of a Job, and moves their ends into the Job's status.

use std::{cmp, collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus, UncountedTerminatedPods},
    core::v1::Pod,
};
use kube_core::ResourceExt;

use super::{
    FINALIZER,
    indexes::{self, index_of, is_indexed},
};
use crate::{
    clock::Clock,
    node_agent::{has_ended, is_ready, ready_since},
    object::is_leaving,
};

/// Maximum number of uids in the status; `MaxUncountedPods` in Kubernetes.
const UNCOUNTED_MAX: usize = 500;

/// Delay of a new pod after the first failure, which each further failure doubles, and its maximum;
/// `DefaultJobPodFailureBackOff` and `MaxJobPodFailureBackOff` in Kubernetes.
const BACK_OFF: Duration = Duration::from_secs(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(600);

/// The pods of a Job, and the status that counts their ends.
pub(super) struct Tally {
    /// The Job's status with the counts of the pods that have ended, and nothing else changed.
    pub(super) status: JobStatus,
    /// The pods that are neither ended nor being deleted.
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) ready: i32,
    pub(super) terminating: i32,
    /// Number of pods that succeeded; with indexes, the number of these.
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) succeeded_indexes: BTreeSet<i32>,
    /// The pods whose finalizers must be removed after the status is written.
    pub(super) counted: Vec<Arc<Pod>>,
}

pub(super) fn has_finalizer(pod: &Pod) -> bool {
    pod.finalizers()
        .iter()
        .any(|finalizer| finalizer == FINALIZER)
}

fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// Returns whether the pod counts as failed.
///
/// A pod that is being deleted does, unless the Job waits for the ends of its pods (`podReplacementPolicy: Failed`).
fn is_failed(pod: &Pod, waits: bool) -> bool {
    phase(pod) == "Failed" || (!waits && is_leaving(pod) && phase(pod) != "Succeeded")
}

/// Returns whether a pod is only replaced after it has ended.
pub(super) fn waits_for_ends(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    spec.and_then(|spec| spec.pod_replacement_policy.as_deref()) == Some("Failed")
}

impl Tally {
    /// Counts `pods`. `fails` tells that the Job has failed, so that every pod that is being deleted counts.
    pub(super) fn of(job: &Job, pods: &[Arc<Pod>], fails: bool) -> Self {
        let mut status = job.status.clone().unwrap_or_default();
        let completions = job
            .spec
            .as_ref()
            .and_then(|spec| spec.completions)
            .unwrap_or(0);
        let completed = status.completed_indexes.as_deref().unwrap_or_default();
        let mut tally = Self {
            active: pods
                .iter()
                .filter(|pod| !has_ended(pod) && !is_leaving(&***pod))
                .cloned()
                .collect(),
            ready: 0,
            terminating: count(
                pods.iter()
                    .filter(|pod| is_leaving(&***pod) && !has_ended(pod)),
            ),
            succeeded: 0,
            failed: 0,
            succeeded_indexes: indexes::parse(completed, completions),
            counted: Vec::new(),
            status: JobStatus::default(),
        };
        tally.ready = count(tally.active.iter().filter(|pod| is_ready(pod)));
        let held: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| has_finalizer(pod))
            .filter_map(|pod| uid(pod))
            .collect();
        let mut uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
        let is_indexed = is_indexed(job);
        if !is_indexed {
            move_released(&mut uncounted.succeeded, &mut status.succeeded, &held);
        }
        move_released(&mut uncounted.failed, &mut status.failed, &held);
        let waits = waits_for_ends(job) && !fails;
        for pod in pods.iter().filter(|pod| has_finalizer(pod)) {
            let Some(uid) = uid(pod) else { continue };
            if length(&uncounted) >= UNCOUNTED_MAX {
                break;
            }
            if phase(pod) == "Succeeded" {
                tally.counted.push(Arc::clone(pod));
                if is_indexed {
                    tally.succeeded_indexes.extend(index_of(pod, completions));
                } else {
                    add(&mut uncounted.succeeded, uid);
                }
            } else if is_failed(pod, waits) {
                tally.counted.push(Arc::clone(pod));
                add(&mut uncounted.failed, uid);
            } else if is_leaving(job) {
                tally.counted.push(Arc::clone(pod));
            }
        }
        let listed = |uids: &Option<Vec<String>>| count(uids.iter().flatten());
        tally.failed = status.failed.unwrap_or(0) + listed(&uncounted.failed);
        tally.succeeded = status.succeeded.unwrap_or(0) + listed(&uncounted.succeeded);
        if is_indexed {
            tally.succeeded = count(tally.succeeded_indexes.iter());
            status.succeeded = some(tally.succeeded);
            let text = indexes::print(&tally.succeeded_indexes);
            status.completed_indexes = Some(text).filter(|text| !text.is_empty());
        }
        // An empty object says that the Job's pods have finalizers.
        status.uncounted_terminated_pods = Some(uncounted);
        tally.status = status;
        tally
    }

    /// Returns whether `status` counts all pods that have ended.
    pub(super) fn is_settled(&self, status: &JobStatus) -> bool {
        let uncounted = status.uncounted_terminated_pods.as_ref();
        self.counted.is_empty() && uncounted.is_none_or(|uncounted| length(uncounted) == 0)
    }
}

/// Returns how long the creation of pods must wait because of the failures since the last success.
pub(super) fn back_off(pods: &[Arc<Pod>], clock: Clock) -> Duration {
    let ended = |want: &'static str| {
        pods.iter()
            .filter(move |pod| phase(pod) == want)
            .filter_map(|pod| end_of(pod))
    };
    let success = ended("Succeeded").max();
    let failures: Vec<Timestamp> = ended("Failed").filter(|at| Some(*at) > success).collect();
    let Some(latest) = failures.iter().max() else {
        return Duration::ZERO;
    };
    let doublings = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX);
    let delay = BACK_OFF.saturating_mul(2_u32.saturating_pow(doublings));
    let latest = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(*latest);
    clock.left(&latest, cmp::min(delay, BACK_OFF_MAX))
}

/// Returns when the last container of an ended pod ended.
fn end_of(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let ends = containers.filter_map(|container| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        terminated.finished_at.as_ref().map(|at| at.0)
    });
    let created = pod.metadata.creation_timestamp.as_ref().map(|at| at.0);
    ends.max()
        .or_else(|| ready_since(pod).map(|at| at.0))
        .or(created)
}

/// Counts the pods whose finalizers are gone, and drops their uids.
fn move_released(uids: &mut Option<Vec<String>>, counter: &mut Option<i32>, held: &BTreeSet<&str>) {
    let Some(list) = uids else { return };
    let before = list.len();
    list.retain(|uid| held.contains(uid.as_str()));
    let moved = i32::try_from(before - list.len()).unwrap_or(i32::MAX);
    *counter = some(counter.unwrap_or(0).saturating_add(moved));
    if list.is_empty() {
        *uids = None;
    }
}

fn add(uids: &mut Option<Vec<String>>, uid: &str) {
    let uids = uids.get_or_insert_default();
    if !uids.iter().any(|it| it == uid) {
        uids.push(uid.to_owned());
    }
}

fn length(uncounted: &UncountedTerminatedPods) -> usize {
    uncounted.succeeded.iter().flatten().count() + uncounted.failed.iter().flatten().count()
}

fn uid(pod: &Pod) -> Option<&str> {
    pod.metadata.uid.as_deref()
}

fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

// Counts of zero are left out, as in Kubernetes.
fn some(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}
