//! What was asked of the server, for tests to assert on.
//!
//! Guarantees:
//! - every HTTP request is recorded in order of arrival, also one that a fault answers or that no path serves; refused connections and calls on [`crate::Server`] itself are not;
//! - the log is bounded by [`LOG_MAX`], and by [`LOG_BYTES_MAX`] where requests are long: the oldest are dropped, and counted;
//! - no body and no header but `User-Agent` is in it;
//! - a request whose answer is still being made has no status yet;
//! - times of arrival never decrease, and are deterministic in paused time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::route::{ListOptions, Verb};

/// Requests remembered at most: an hour of a busy demo, in some tens of megabytes.
pub const LOG_MAX: usize = 100_000;

/// What the remembered requests may take: above what [`LOG_MAX`] of the usual size do, and far below as many with the longest heads there can be.
const LOG_BYTES_MAX: usize = 128 * 1024 * 1024;

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// Counts up from 1 in order of arrival; not reset by [`RequestLog::clear`].
    pub sequence: u64,
    /// When the request arrived, as the time since the server was built; never less than that of the request before.
    ///
    /// It is measured with tokio's clock, so paused time moves it: the difference of two requests is the client's backoff to the nanosecond.
    /// A server that is opened again on its data directory starts at zero.
    pub arrived: Duration,
    /// The `User-Agent` header; empty without one.
    pub user_agent: String,
    /// What was asked.
    pub verb: Verb,
    /// The path, undecoded, without the query.
    pub path: String,
    /// The resource's plural; empty for discovery and health.
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The object's name in the path.
    pub name: Option<String>,
    /// What follows the name, such as `status` or `binding`.
    pub subresource: Option<String>,
    /// The options of a list or watch.
    pub options: ListOptions,
    /// The HTTP status answered; `None` while the answer is being made, and if a fault resets the connection.
    pub status: Option<u16>,
    /// The revision answered: a list's, or an object's.
    pub revision: Option<u64>,
    /// The faults that have hit it, each once, in the order in which they did; one that waits for its event or byte is not among them yet.
    pub faults: Vec<String>,
}

/// A copy of the log at one moment; its filters give smaller copies.
#[derive(Clone)]
pub struct RequestLog {
    requests: Vec<LoggedRequest>,
    dropped: u64,
    recorder: Arc<Recorder>,
}

/// The log while it is written.
pub(crate) struct Recorder {
    /// When the server was built.
    started: Instant,
    inner: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    requests: VecDeque<LoggedRequest>,
    /// What they take.
    bytes: usize,
    last: u64,
    dropped: u64,
}

// === impl RequestLog ===

impl RequestLog {
    /// The lists of a resource, such as `pods`.
    #[must_use]
    pub fn lists(&self, resource: &str) -> RequestLog {
        self.filter(|request| request.verb == Verb::List && request.resource == resource)
    }

    /// The watches of a resource, such as `pods`.
    #[must_use]
    pub fn watches(&self, resource: &str) -> RequestLog {
        self.filter(|request| request.verb == Verb::Watch && request.resource == resource)
    }

    /// Whatever may change the store.
    #[must_use]
    pub fn writes(&self) -> RequestLog {
        self.filter(|request| request.verb.is_write())
    }

    /// The requests of one verb.
    #[must_use]
    pub fn verb(&self, verb: Verb) -> RequestLog {
        self.filter(|request| request.verb == verb)
    }

    /// The requests whose `User-Agent` is exactly this.
    #[must_use]
    pub fn by_user_agent(&self, user_agent: &str) -> RequestLog {
        self.filter(|request| request.user_agent == user_agent)
    }

    /// The requests that a closure wants.
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

    /// How many requests there are in this copy.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests in order of arrival.
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedRequest> {
        self.requests.iter()
    }

    /// How many older requests the server no longer remembers.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Empties the server's log; this copy stays as it is, and numbering goes on.
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

    /// Records a request at its arrival and returns it with its number and time.
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

    /// Adds the answer, unless the request has been dropped or cleared meanwhile.
    pub(crate) fn answered(&self, sequence: u64, status: u16, revision: Option<u64>) {
        if let Some(request) = self.inner.lock().find(sequence) {
            request.status = Some(status);
            request.revision = revision;
        }
    }

    /// Adds a fault, unless it is there or the request is not.
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
    /// What its head takes: faults and answer come later, and are short.
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
    fn long_requests_are_remembered_by_their_bytes_and_short_ones_by_their_number() {
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
