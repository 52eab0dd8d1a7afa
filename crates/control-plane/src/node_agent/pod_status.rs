//! Builds the status of a pod from the life of its containers.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Container, Pod, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use serde_json::{Value, json};

use super::{
    container::{End, Happening, Life, State},
    plan::Plan,
};

/// What a pod's status says about its containers, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) phase: &'static str,
    pub(super) is_ready: bool,
    restarts: i32,
    /// `running`, the reason why the containers wait, or their exit code.
    state: String,
}

/// The life of a pod's containers at a time, or why they can't be simulated.
pub(super) enum View<'a> {
    Life(&'a Life, Timestamp),
    Invalid(String, Timestamp),
}

impl View<'_> {
    pub(super) fn shown(&self) -> Shown {
        let View::Life(life, now) = self else {
            return Shown {
                phase: "Pending",
                is_ready: false,
                restarts: 0,
                state: INVALID.to_owned(),
            };
        };
        let (phase, state) = match &life.state {
            State::Starting { .. } => ("Pending", CREATING.to_owned()),
            State::Running { .. } => ("Running", "running".to_owned()),
            State::BackOff { .. } => ("Running", BACKING_OFF.to_owned()),
            State::Ended(end) if end.code == 0 => ("Succeeded", "0".to_owned()),
            State::Ended(end) => ("Failed", end.code.to_string()),
        };
        Shown {
            phase,
            is_ready: life.is_ready(*now),
            restarts: life.restarts,
            state,
        }
    }

    /// Returns the status to write, with the unchanged parts of the pod's present one.
    pub(super) fn status(&self, pod: &Pod) -> Value {
        let shown = self.shown();
        let now = match self {
            View::Life(_, now) | View::Invalid(_, now) => *now,
        };
        let mut status = json!({
            "phase": shown.phase,
            "conditions": conditions(pod, &shown, now),
            "containerStatuses": self.containers(pod, &shown),
            "startTime": start_time(pod, now),
        });
        if shown.phase == "Failed" {
            status["reason"] = "Error".into();
            status["message"] = "the container ended by itself".into();
        }
        status
    }

    fn containers(&self, pod: &Pod, shown: &Shown) -> Value {
        let (state, last) = match self {
            View::Life(life, _) => (state_of(life), life.last.as_ref().map(terminated)),
            View::Invalid(why, _) => {
                let waiting = json!({"waiting": {"reason": INVALID, "message": why}});
                (waiting, None)
            }
        };
        let spec = pod.spec.as_ref();
        let containers = spec.iter().flat_map(|spec| &spec.containers);
        let of = |container: &Container| {
            json!({
                "name": container.name,
                "image": container.image.as_deref().unwrap_or_default(),
                "imageID": "",
                "ready": shown.is_ready,
                "started": shown.state == "running",
                "restartCount": shown.restarts,
                "state": state,
                "lastState": last.clone().unwrap_or_else(|| json!({})),
            })
        };
        containers.map(of).collect()
    }
}

const CREATING: &str = "ContainerCreating";
const BACKING_OFF: &str = "CrashLoopBackOff";
const INVALID: &str = "CreateContainerConfigError";

fn state_of(life: &Life) -> Value {
    match &life.state {
        State::Starting { .. } => json!({"waiting": {"reason": CREATING}}),
        State::Running { since } => json!({"running": {"startedAt": seconds(*since)}}),
        State::BackOff { .. } => {
            let text = "the containers ended, and are started again after a pause";
            json!({"waiting": {"reason": BACKING_OFF, "message": text}})
        }
        State::Ended(end) => terminated(end),
    }
}

fn terminated(end: &End) -> Value {
    let reason = if end.code == 0 { "Completed" } else { "Error" };
    json!({"terminated": {
        "exitCode": end.code,
        "reason": reason,
        "startedAt": seconds(end.started),
        "finishedAt": seconds(end.at),
    }})
}

/// Returns the life of containers that the pod's status shows as running, or as about to be started again.
pub(super) fn life_of(pod: &Pod, plan: Plan, now: Timestamp) -> Option<Life> {
    let shown = shown_by(pod).filter(|shown| shown.phase == "Running")?;
    let mut containers = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    let container = containers.next()?;
    let running = container.state.as_ref()?.running.as_ref();
    let ended = container.last_state.as_ref();
    let ended = ended.and_then(|state| state.terminated.as_ref());
    let mut life = Life::new(plan, now);
    life.restarts = shown.restarts;
    life.last = ended.map(|ended| End {
        code: ended.exit_code,
        started: ended.started_at.as_ref().map_or(now, |at| at.0),
        at: ended.finished_at.as_ref().map_or(now, |at| at.0),
    });
    life.state = match running {
        // The clocks of the two agents may differ.
        Some(running) => State::Running {
            since: running.started_at.as_ref().map_or(now, |at| at.0.min(now)),
        },
        None => State::BackOff { until: now },
    };
    if let State::Running { since } = life.state {
        life.happened.push(Happening::Started(since));
    }
    Some(life)
}

/// Returns what the pod's present status says.
pub(super) fn shown_by(pod: &Pod) -> Option<Shown> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let first = containers.clone().next()?;
    let state = first.state.as_ref()?;
    let state = match (&state.waiting, &state.terminated) {
        (Some(waiting), _) => waiting.reason.clone().unwrap_or_default(),
        (_, Some(terminated)) => terminated.exit_code.to_string(),
        _ => "running".to_owned(),
    };
    let phases = ["Pending", "Running", "Succeeded", "Failed"];
    let phase = status.phase.as_deref().unwrap_or_default();
    Some(Shown {
        phase: phases.into_iter().find(|it| *it == phase)?,
        is_ready: containers.clone().all(|container| container.ready),
        restarts: first.restart_count,
        state,
    })
}

/// Returns all conditions for the pod's status, because a merge patch replaces the whole list.
fn conditions(pod: &Pod, shown: &Shown, now: Timestamp) -> Value {
    const OWN: [&str; 4] = [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
    ];
    let status = pod.status.clone().unwrap_or_default();
    let present = status.conditions.as_deref().unwrap_or_default();
    let others = present
        .iter()
        .filter(|condition| !OWN.contains(&condition.type_.as_str()));
    let reason = match shown.phase {
        "Failed" => Some("PodFailed"),
        "Succeeded" => Some("PodCompleted"),
        _ => Some("ContainersNotReady"),
    };
    let own = OWN.map(|kind| {
        let is_true = match kind {
            "PodReadyToStartContainers" => shown.phase == "Running",
            "Initialized" => true,
            _ => shown.is_ready,
        };
        let value = if is_true { "True" } else { "False" };
        let before = present
            .iter()
            .find(|it| it.type_ == kind && it.status == value);
        let since = before.and_then(|it| it.last_transition_time.clone());
        let since = since.map_or_else(|| seconds(now), |since| json!(since));
        let mut condition = json!({"type": kind, "status": value, "lastTransitionTime": since});
        if let (false, Some(reason)) = (is_true, reason.filter(|_| kind != OWN[0])) {
            condition["reason"] = reason.into();
        }
        condition
    });
    others
        .map(|condition| json!(condition))
        .chain(own)
        .collect()
}

fn start_time(pod: &Pod, now: Timestamp) -> Value {
    let status: Option<&PodStatus> = pod.status.as_ref();
    let started = status.and_then(|status| status.start_time.clone());
    started.map_or_else(|| seconds(now), |time| json!(time))
}

fn seconds(time: Timestamp) -> Value {
    json!(Time(
        Timestamp::from_second(time.as_second()).unwrap_or(time)
    ))
}
