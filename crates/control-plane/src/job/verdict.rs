//! Decides whether a Job has succeeded or failed, and sets its conditions.
//!
//! A Job that succeeds or fails first gets the condition `SuccessCriteriaMet` or `FailureTarget`. When its last pod
//! has ended, `Complete` or `Failed` follows.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    batch::v1::{Job, JobCondition, JobStatus},
    core::v1::Pod,
};

use super::tally::Tally;
use crate::{clock::Clock, node_agent::has_ended};

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
const FAILURE_TARGET: &str = "FailureTarget";
const SUSPENDED: &str = "Suspended";

/// Why a Job succeeds or fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) is_success: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Verdict {
    fn failure(reason: &str, message: &str) -> Self {
        Self {
            is_success: false,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }
}

fn find<'a>(status: &'a JobStatus, type_: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == type_)
}

fn find_true<'a>(job: &'a Job, type_: &str) -> Option<&'a JobCondition> {
    find(job.status.as_ref()?, type_).filter(|condition| condition.status == "True")
}

pub(super) fn is_finished(job: &Job) -> bool {
    find_true(job, COMPLETE).is_some() || find_true(job, FAILED).is_some()
}

/// Returns when a finished Job must be deleted, relative to now, or `None` if it stays.
pub(super) fn expires(job: &Job, clock: Clock) -> Option<Duration> {
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let finished = find_true(job, COMPLETE).or_else(|| find_true(job, FAILED))?;
    let period = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some(clock.left(finished.last_transition_time.as_ref()?, period))
}

/// Returns the verdict that an earlier reconciliation has written.
pub(super) fn written(job: &Job) -> Option<Verdict> {
    let success = find_true(job, SUCCESS_CRITERIA_MET);
    let condition = success.or_else(|| find_true(job, FAILURE_TARGET))?;
    Some(Verdict {
        is_success: success.is_some(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
    })
}

/// Returns why the Job has failed, or `None` if it has not.
pub(super) fn failure(job: &Job, tally: &Tally, clock: Clock) -> Option<Verdict> {
    let spec = job.spec.as_ref()?;
    let limit = spec.backoff_limit.unwrap_or(6);
    if tally.failed > limit || restarts_exceed(job, &tally.active, limit) {
        let text = "Job has reached the specified backoff limit";
        return Some(Verdict::failure("BackoffLimitExceeded", text));
    }
    if deadline(job, clock).is_some_and(|left| left.is_zero()) {
        let text = "Job was active longer than specified deadline";
        return Some(Verdict::failure("DeadlineExceeded", text));
    }
    None
}

/// Returns how long the Job may still be active, or `None` if it has no deadline or does not run.
pub(super) fn deadline(job: &Job, clock: Clock) -> Option<Duration> {
    let spec = job.spec.as_ref()?;
    let seconds = spec
        .active_deadline_seconds
        .filter(|_| !is_suspended(job))?;
    let period = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let started = job.status.as_ref()?.start_time.as_ref()?;
    Some(clock.left(started, period))
}

/// Returns whether the containers were restarted too often. Only with `restartPolicy: OnFailure`, they count.
fn restarts_exceed(job: &Job, active: &[Arc<Pod>], limit: i32) -> bool {
    let template = job
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let restarts = |pod: &Pod| -> i32 {
        let status = pod.status.clone().unwrap_or_default();
        let init = status.init_container_statuses.into_iter().flatten();
        let all = init.chain(status.container_statuses.into_iter().flatten());
        all.map(|container| container.restart_count).sum()
    };
    let sum: i32 = active
        .iter()
        .filter(|pod| !has_ended(pod))
        .map(|pod| restarts(pod))
        .sum();
    if limit == 0 { sum > 0 } else { sum >= limit }
}

/// Returns the verdict of a Job with enough successes, after its last active pod has ended.
pub(super) fn success(job: &Job, tally: &Tally, active: i32) -> Option<Verdict> {
    let completions = job.spec.as_ref()?.completions;
    let enough = match completions {
        Some(completions) => tally.succeeded >= completions,
        None => tally.succeeded > 0,
    };
    (enough && active == 0).then(|| Verdict {
        is_success: true,
        reason: "CompletionsReached".to_owned(),
        message: "Reached expected number of succeeded pods".to_owned(),
    })
}

pub(super) fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
}

/// Records a verdict before the Job's last pods have ended.
pub(super) fn announce(status: &mut JobStatus, verdict: &Verdict, clock: Clock) {
    let type_ = if verdict.is_success {
        SUCCESS_CRITERIA_MET
    } else {
        FAILURE_TARGET
    };
    set(status, (type_, "True"), verdict, clock);
}

/// Records that the Job has ended.
pub(super) fn finish(status: &mut JobStatus, verdict: &Verdict, clock: Clock) {
    let type_ = if verdict.is_success { COMPLETE } else { FAILED };
    set(status, (type_, "True"), verdict, clock);
    if verdict.is_success {
        status.completion_time = Some(clock.time());
    }
}

/// Records that the Job is suspended, or no longer is. Returns whether that is a change.
pub(super) fn record_suspension(job: &Job, status: &mut JobStatus, clock: Clock) -> bool {
    let was = find(status, SUSPENDED).map(|condition| condition.status == "True");
    let (value, reason, message) = match (is_suspended(job), was) {
        (true, None | Some(false)) => ("True", "JobSuspended", "Job suspended"),
        (false, Some(true)) => ("False", "JobResumed", "Job resumed"),
        _ => return false,
    };
    // The deadline counts from the time of the resumption.
    status.start_time = (value == "False").then(|| clock.time());
    set(
        status,
        (SUSPENDED, value),
        &Verdict::failure(reason, message),
        clock,
    );
    true
}

/// Sets a condition, unless the status has it with the same value.
fn set(status: &mut JobStatus, (type_, value): (&str, &str), why: &Verdict, clock: Clock) {
    if find(status, type_).is_some_and(|condition| condition.status == value) {
        return;
    }
    let now = clock.time();
    let condition = JobCondition {
        type_: type_.to_owned(),
        status: value.to_owned(),
        reason: Some(why.reason.clone()),
        message: Some(why.message.clone()),
        last_probe_time: Some(now.clone()),
        last_transition_time: Some(now),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions
        .iter_mut()
        .find(|condition| condition.type_ == type_)
    {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}
