//! Reads from a pod's annotations how the node agent simulates its containers.

use std::{fmt, time::Duration};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;

/// Time from the start of a pod until its containers run, such as `2s`. Default: zero.
const START_DELAY: &str = "kubectl-informer/start-delay";

/// Time from the start of the containers until they are ready, or `never`. Default: zero.
const READY_DELAY: &str = "kubectl-informer/ready-delay";

/// Time from the start of the containers until they end. Default: they do not end.
const RUN_TIME: &str = "kubectl-informer/run-time";

/// Exit code of the containers, if they end. Default: 0.
const EXIT_CODE: &str = "kubectl-informer/exit-code";

/// Time from the deletion of the pod until it is removed, at most its grace period. Default: zero.
const STOP_DELAY: &str = "kubectl-informer/stop-delay";

/// Text that each container logs when it starts.
const LOG: &str = "kubectl-informer/log";

/// How the containers of one pod are simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) start_delay: Duration,
    /// `None` if the containers never become ready.
    pub(super) ready_delay: Option<Duration>,
    pub(super) stop_delay: Duration,
    /// When the containers end, and with which exit code.
    pub(super) end: Option<(Duration, i32)>,
    pub(super) restart: Restart,
    pub(super) log: String,
}

/// Whether ended containers are started again: `spec.restartPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Always,
    OnFailure,
    Never,
}

/// Error for an annotation with a value that the node agent can't use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadAnnotation {
    key: &'static str,
    value: String,
    expected: &'static str,
}

impl Plan {
    /// # Errors
    /// Returns an error if an annotation of the simulation is neither missing nor valid.
    pub(super) fn of(pod: &Pod) -> Result<Self, BadAnnotation> {
        let never = pod
            .annotations()
            .get(READY_DELAY)
            .is_some_and(|value| value == "never");
        let ready_delay = if never {
            None
        } else {
            Some(duration(pod, READY_DELAY)?.unwrap_or_default())
        };
        let code = exit_code(pod)?;
        let spec = pod.spec.as_ref();
        let restart = match spec.and_then(|spec| spec.restart_policy.as_deref()) {
            Some("Never") => Restart::Never,
            Some("OnFailure") => Restart::OnFailure,
            _ => Restart::Always,
        };
        Ok(Self {
            start_delay: duration(pod, START_DELAY)?.unwrap_or_default(),
            ready_delay,
            stop_delay: duration(pod, STOP_DELAY)?.unwrap_or_default(),
            end: duration(pod, RUN_TIME)?.map(|after| (after, code)),
            restart,
            log: pod.annotations().get(LOG).cloned().unwrap_or_default(),
        })
    }
}

impl Restart {
    pub(super) fn is_due(self, exit_code: i32) -> bool {
        match self {
            Restart::Always => true,
            Restart::OnFailure => exit_code != 0,
            Restart::Never => false,
        }
    }
}

fn duration(pod: &Pod, key: &'static str) -> Result<Option<Duration>, BadAnnotation> {
    let Some(value) = pod.annotations().get(key) else {
        return Ok(None);
    };
    let parsed = value.parse::<SignedDuration>().ok();
    match parsed.and_then(|parsed| Duration::try_from(parsed).ok()) {
        Some(duration) => Ok(Some(duration)),
        None => Err(BadAnnotation {
            key,
            value: value.clone(),
            expected: "a duration such as 1m30s or 500ms",
        }),
    }
}

fn exit_code(pod: &Pod) -> Result<i32, BadAnnotation> {
    let Some(value) = pod.annotations().get(EXIT_CODE) else {
        return Ok(0);
    };
    match value.parse::<u8>() {
        Ok(code) => Ok(code.into()),
        Err(_) => Err(BadAnnotation {
            key: EXIT_CODE,
            value: value.clone(),
            expected: "a number from 0 to 255",
        }),
    }
}

impl fmt::Display for BadAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadAnnotation {
            key,
            value,
            expected,
        } = self;
        write!(f, "annotation {key}: {value:?} is not {expected}")
    }
}

impl std::error::Error for BadAnnotation {}
