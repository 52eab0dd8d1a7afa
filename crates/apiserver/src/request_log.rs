//! Log of the requests that the server received, for assertions in tests.
//!
//! Guarantees:
//! - every HTTP request is recorded in order of arrival, including those that a fault answers or that no path serves;
//! - refused connections and direct calls on [`crate::Server`] are not recorded;
//! - the log holds at most [`LOG_MAX`] requests and [`LOG_BYTES_MAX`]; the oldest are dropped, and the dropped ones are
//!   counted;
//! - it contains no bodies, and no header except `User-Agent`;
//! - a request has no status until its response is complete;
//! - arrival times never decrease, and are deterministic in paused time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::route::{ListOptions, Verb};

/// Maximum number of requests in the log.
///
/// It covers about an hour of a busy demo, in some tens of megabytes.
pub const LOG_MAX: usize = 100_000;

/// Maximum size of the log in bytes.
///
/// More than [`LOG_MAX`] requests of usual size need, and far less than as many requests with the longest possible
/// heads.
const LOG_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A request and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// Number of the request in order of arrival, starting at 1; [`RequestLog::clear`] does not reset it.
    pub sequence: u64,
    /// Arrival time since the server was built; never less than that of the previous request.
    ///
    /// It uses tokio's clock, including paused time: the difference of two requests is the client's exact backoff.
    /// It starts at zero again when a server is reopened on its data directory.
    pub arrived: Duration,
    /// The `User-Agent` header; empty without one.
    pub user_agent: String,
    /// The verb of the request.
    pub verb: Verb,
    /// The path, not decoded and without the query.
    pub path: String,
    /// The resource's plural; empty for discovery and health.
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The object's name in the path.
    pub name: Option<String>,
    /// The path segment after the name, such as `status` or `binding`.
    pub subresource: Option<String>,
    /// The options of a list or watch.
    pub options: ListOptions,
    /// The HTTP status of the response; `None` until it is complete, and if a fault resets the connection.
    pub status: Option<u16>,
    /// The revision of the returned list or object.
    pub revision: Option<u64>,
    /// The faults that have affected the request, without duplicates, in order of their first effect.
    ///
    /// A fault that still waits for its event or byte is not included.
    pub faults: Vec<String>,
}

/// A copy of the log at one moment; filters return smaller copies.
#[derive(Clone)]
pub struct RequestLog {
    requests: Vec<LoggedRequest>,
    dropped: u64,
    recorder: Arc<Recorder>,
}

/// The log as the server writes it.
pub(crate) struct Recorder {
    /// When the server was built.
    started: Instant,
    inner: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    requests: VecDeque<LoggedRequest>,
    /// Size of the requests in bytes.
    bytes: usize,
    last: u64,
    dropped: u64,
}

// === impl RequestLog ===

impl RequestLog {
    /// Returns the lists of a resource, such as `pods`.
    #[must_use]
    pub fn lists(&self, resource: &str) -> RequestLog {
        self.filter(|request| request.verb == Verb::List && request.resource == resource)
    }

    /// Returns the watches of a resource, such as `pods`.
    #[must_use]
    pub fn watches(&self, resource: &str) -> RequestLog {
        self.filter(|request| request.verb == Verb::Watch && request.resource == resource)
    }

    /// Returns the requests that can change stored objects.
    #[must_use]
    pub fn writes(&self) -> RequestLog {
        self.filter(|request| request.verb.is_write())
    }

    /// Returns the requests with this verb.
    #[must_use]
    pub fn verb(&self, verb: Verb) -> RequestLog {
        self.filter(|request| request.verb == verb)
    }

    /// Returns the requests with exactly this `User-Agent`.
    #[must_use]
    pub fn by_user_agent(&self, user_agent: &str) -> RequestLog {
        self.filter(|request| request.user_agent == user_agent)
    }

    /// Returns the requests for which the closure returns true.
    #[must_use]
    pub fn filter(&self, wanted: impl Fn(&LoggedRequest) -> bool) -> RequestLog {
        RequestLog {
            requests: self
                .requests
                .iter()
                .filter(|request| wanted(request))
                .cloned()
                .collect(),
            dropped: self.dropped,
            recorder: Arc::clone(&self.recorder),
        }
    }

    /// Number of requests in this copy.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether this copy has no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Iterates over the requests in order of arrival.
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedRequest> {
        self.requests.iter()
    }

    /// Number of older requests that the server has dropped from its log.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Clears the server's log; this copy is unchanged, and numbering continues.
    pub fn clear(&self) {
        let mut inner = self.recorder.inner.lock();
        inner.requests.clear();
        inner.bytes = 0;
    }
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.requests).finish()
    }
}

impl<'a> IntoIterator for &'a RequestLog {
    type Item = &'a LoggedRequest;
    type IntoIter = std::slice::Iter<'a, LoggedRequest>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for RequestLog {
    type Item = LoggedRequest;
    type IntoIter = std::vec::IntoIter<LoggedRequest>;

    fn into_iter(self) -> Self::IntoIter {
        self.requests.into_iter()
    }
}

// === impl Recorder ===

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder {
            started: Instant::now(),
            inner: Mutex::default(),
        }
    }

    /// Records a request on arrival and returns it with its number and time.
    pub(crate) fn arrived(&self, mut request: LoggedRequest) -> Arc<LoggedRequest> {
        let mut inner = self.inner.lock();
        inner.last += 1;
        request.sequence = inner.last;
        request.arrived = self.started.elapsed();
        inner.bytes += request.bytes();
        inner.requests.push_back(request.clone());
        while inner.requests.len() > LOG_MAX || inner.bytes > LOG_BYTES_MAX {
            inner.drop_oldest();
        }
        Arc::new(request)
    }

    /// Records the response, unless the request was dropped or cleared meanwhile.
    pub(crate) fn answered(&self, sequence: u64, status: u16, revision: Option<u64>) {
        if let Some(request) = self.inner.lock().find(sequence) {
            request.status = Some(status);
            request.revision = revision;
        }
    }

    /// Records a fault, unless it is already recorded or the request was dropped.
    pub(crate) fn hit(&self, sequence: u64, fault: &str) {
        if let Some(request) = self.inner.lock().find(sequence)
            && !request.faults.iter().any(|known| known == fault)
        {
            request.faults.push(fault.to_owned());
        }
    }

    pub(crate) fn copy(recorder: &Arc<Recorder>) -> RequestLog {
        let inner = recorder.inner.lock();
        RequestLog {
            requests: inner.requests.iter().cloned().collect(),
            dropped: inner.dropped,
            recorder: Arc::clone(recorder),
        }
    }
}

// === impl LoggedRequest ===

impl LoggedRequest {
    /// Memory of the request without its faults and response, which are short.
    fn bytes(&self) -> usize {
        let ListOptions {
            resource_version,
            resource_version_match,
            continue_token,
            label_selector,
            field_selector,
            ..
        } = &self.options;
        let optional = [
            &self.namespace,
            &self.name,
            &self.subresource,
            resource_version,
            resource_version_match,
            continue_token,
            label_selector,
            field_selector,
        ];
        let optional = optional.into_iter().flatten();
        let texts = optional.chain([&self.user_agent, &self.path, &self.resource]);
        size_of::<LoggedRequest>() + texts.map(String::len).sum::<usize>()
    }
}

// === impl Recorded ===

impl Recorded {
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.requests.pop_front() {
            self.bytes -= oldest.bytes();
            self.dropped += 1;
        }
    }

    fn find(&mut self, sequence: u64) -> Option<&mut LoggedRequest> {
        let first = self.requests.front()?.sequence;
        let at = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.requests.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_limited_by_bytes_and_by_number() {
        let request = |bytes: usize| LoggedRequest {
            sequence: 0,
            arrived: Duration::ZERO,
            user_agent: "x".repeat(bytes),
            verb: Verb::List,
            path: String::new(),
            resource: String::new(),
            namespace: None,
            name: None,
            subresource: None,
            options: ListOptions {
                label_selector: Some("y".repeat(bytes)),
                ..ListOptions::default()
            },
            status: None,
            revision: None,
            faults: Vec::new(),
        };
        let recorder = Arc::new(Recorder::new());
        for _ in 0..20 {
            recorder.arrived(request(LOG_BYTES_MAX / 20));
        }
        let log = Recorder::copy(&recorder);
        assert_eq!((log.len(), log.dropped()), (9, 11));
        recorder.answered(20, 200, None);
        assert_eq!(log.iter().last().unwrap().sequence, 20);
        log.clear();
        for _ in 0..LOG_MAX {
            recorder.arrived(request(200));
        }
        assert_eq!(Recorder::copy(&recorder).len(), LOG_MAX);
    }
}
