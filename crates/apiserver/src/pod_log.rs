//! Defines the source of the logs of containers, which `kubectl logs` shows.
//!
//! In a cluster, the kubelet of a node has the logs. Here, whatever simulates the containers has them.
//!
//! The module does not select lines: the handler of the request does.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use futures_core::Stream;

/// A source of the logs of containers. [`Builder::pod_logs`](crate::Builder::pod_logs) registers it.
pub trait PodLogs: Send + Sync + 'static {
    /// Returns the log of a container of an existing pod with a node.
    ///
    /// # Errors
    ///
    /// Returns why there is no log, such as `container "main" in pod "web" is waiting to start: ContainerCreating`. The
    /// client receives a 400 error with this message, as for such an error of a kubelet.
    fn open(&self, of: &LogOf) -> Result<PodLog, String>;
}

/// The container whose log a request reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOf {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Uid of the pod.
    pub uid: String,
    /// Name of the container.
    pub container: String,
    /// Whether the log is that of the container's previous run.
    pub previous: bool,
}

/// The log of a container.
#[derive(Default)]
pub struct PodLog {
    /// The lines so far, the oldest first.
    pub lines: Vec<LogLine>,
    /// The lines that follow, or `None` if the container has ended. The stream ends with the container.
    pub more: Option<Pin<Box<dyn Stream<Item = LogLine> + Send>>>,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When the container wrote the line.
    pub time: SystemTime,
    /// The line, without its line break.
    pub text: String,
}

/// The source of logs of a server, if it has one.
#[derive(Clone, Default)]
pub(crate) struct LogSource(pub(crate) Option<Arc<dyn PodLogs>>);

impl fmt::Debug for PodLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodLog")
            .field("lines", &self.lines)
            .field("has_ended", &self.more.is_none())
            .finish()
    }
}
