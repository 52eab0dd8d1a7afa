//! The logs of simulated containers, which the server reads for `kubectl logs`.
//!
//! A container logs the text of its pod's annotation when it starts, and its exit code when it ends. All containers
//! of a pod log the same. The logs of the present run and of the one before are kept until the pod is deleted.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures_util::stream;
use jiff::Timestamp;
use kube_informer::ObjectName;
use kube_informer_apiserver::{LogLine, LogOf, PodLog, PodLogs};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The logs of all simulated containers, for `Builder::pod_logs` of `kube-informer-apiserver` and for
/// [`Builder::pod_logs`](crate::Builder::pod_logs) of a control plane. All clones share them.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<BTreeMap<ObjectName, Runs>>>);

/// The last two runs of a pod's containers.
struct Runs {
    pod_uid: String,
    present: Arc<Run>,
    previous: Option<Arc<Run>>,
}

/// The log of one run.
struct Run {
    lines: Mutex<Vec<LogLine>>,
    progress: watch::Sender<Progress>,
}

/// How many lines a run has logged, and whether it has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    lines: usize,
    has_ended: bool,
}

// === impl Logs ===

impl fmt::Debug for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logs").finish_non_exhaustive()
    }
}

impl Logs {
    /// Begins the log of a new run with `text`.
    pub(super) fn start(&self, pod: &ObjectName, pod_uid: &str, (at, text): (Timestamp, &str)) {
        let run = Arc::new(Run {
            lines: Mutex::default(),
            progress: watch::Sender::default(),
        });
        for line in text.lines() {
            run.log(at, line);
        }
        let mut all = self.0.lock();
        let before = all.remove(pod);
        if let Some(before) = &before {
            // Of an earlier pod with this name, the agent may have missed the end.
            before.present.end();
        }
        let before = before.filter(|runs| runs.pod_uid == pod_uid);
        let runs = Runs {
            pod_uid: pod_uid.to_owned(),
            present: run,
            previous: before.map(|runs| runs.present),
        };
        all.insert(pod.clone(), runs);
    }

    /// Ends the log of the present run.
    pub(super) fn end(&self, pod: &ObjectName, (at, code): (Timestamp, i32)) {
        if let Some(runs) = self.0.lock().get(pod) {
            runs.present.log(at, &format!("exit code {code}"));
            runs.present.end();
        }
    }

    /// Drops the logs of a pod that is gone, but not those of a new pod with its name.
    pub(super) fn forget(&self, pod: &ObjectName, pod_uid: &str) {
        let mut all = self.0.lock();
        if let Some(runs) = all.get(pod).filter(|runs| runs.pod_uid == pod_uid) {
            runs.present.end();
            all.remove(pod);
        }
    }
}

impl PodLogs for Logs {
    fn open(&self, of: &LogOf) -> Result<PodLog, String> {
        let LogOf { pod, container, .. } = of;
        let all = self.0.lock();
        let runs = all.get(&ObjectName::new(Some(&of.namespace), pod));
        let runs = runs.filter(|runs| runs.pod_uid == of.uid);
        let run = match (runs, of.previous) {
            (Some(runs), false) => &runs.present,
            (None, false) => {
                return Err(format!(
                    "container {container:?} in pod {pod:?} is waiting to start: ContainerCreating"
                ));
            }
            (runs, true) => runs
                .and_then(|runs| runs.previous.as_ref())
                .ok_or_else(|| {
                    format!("previous terminated container {container:?} in pod {pod:?} not found")
                })?,
        };
        Ok(Arc::clone(run).read())
    }
}

// === impl Run ===

impl Run {
    fn log(&self, at: Timestamp, text: &str) {
        let mut lines = self.lines.lock();
        lines.push(LogLine {
            time: at.into(),
            text: text.to_owned(),
        });
        let length = lines.len();
        self.progress
            .send_modify(|progress| progress.lines = length);
    }

    fn end(&self) {
        self.progress
            .send_modify(|progress| progress.has_ended = true);
    }

    fn read(self: Arc<Self>) -> PodLog {
        let mut progress = self.progress.subscribe();
        let seen = *progress.borrow_and_update();
        let lines = self.lines.lock()[..seen.lines].to_vec();
        if seen.has_ended {
            return PodLog { lines, more: None };
        }
        let from = (self, progress, seen.lines);
        let more = stream::unfold(from, async |(run, mut progress, next)| {
            loop {
                let Progress { lines, has_ended } = *progress.borrow_and_update();
                if next < lines {
                    let line = run.lines.lock()[next].clone();
                    return Some((line, (run, progress, next + 1)));
                }
                if has_ended || progress.changed().await.is_err() {
                    return None;
                }
            }
        });
        PodLog {
            lines,
            more: Some(Box::pin(more)),
        }
    }
}
