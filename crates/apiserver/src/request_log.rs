//! Records the requests that the server receives, for assertions in tests.
//!
//! Guarantees:
//! - HTTP requests are recorded in order of arrival, including requests for unknown paths and requests whose
//!   response a fault replaces;
//! - refused connections, requests to the fault endpoint, and direct calls on [`crate::Server`] are not
//!   recorded;
//! - the log holds at most [`LOG_MAX`] requests and [`LOG_BYTES_MAX`] bytes. A full log drops its oldest
//!   requests and counts them;
//! - the log contains no bodies, and no header except `User-Agent`;
//! - a request has no status until the server returns the response;
//! - arrival times never decrease, and are deterministic in paused time.

mod shown;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::route::{ListOptions, Verb};

/// Maximum number of requests in the log.
///
/// A full log of typical requests needs some tens of megabytes.
pub const LOG_MAX: usize = 100_000;

/// Maximum size of the log in bytes. With requests of typical length, the log reaches [`LOG_MAX`] first.
const LOG_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A request that the server received, with the status and revision of its response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// Number of the request in order of arrival, starting at 1.
    ///
    /// [`RequestLog::clear`] does not reset the numbers.
    pub sequence: u64,
    /// Time from the creation of the server to the arrival of the request.
    ///
    /// The times of successive requests never decrease. They are measured with tokio's clock. In a test with
    /// paused time, the difference between two consecutive attempts is therefore the client's exact backoff.
    pub arrived: Duration,
    /// Value of the `User-Agent` header. Empty if the request has no such header.
    pub user_agent: String,
    /// Kubernetes verb of the request.
    pub verb: Verb,
    /// Path of the URL as the client sent it, without the query.
    pub path: String,
    /// Plural name of the resource. Empty for discovery and health requests.
    pub resource: String,
    /// Namespace in the path. `None` if the path contains no namespace.
    pub namespace: Option<String>,
    /// Name of the object in the path. `None` if the path contains no name.
    pub name: Option<String>,
    /// Path segment after the object's name, such as `status` or `binding`. `None` if there is no such
    /// segment.
    pub subresource: Option<String>,
    /// The query parameters that are options of a list or watch.
    ///
    /// The parameters are recorded for all verbs, although only lists and watches use them.
    /// If the parameters can't be parsed, the options have their defaults.
    pub options: ListOptions,
    /// HTTP status of the response. `None` until the server returns the response.
    ///
    /// The status remains `None` if a fault resets the connection.
    pub status: Option<u16>,
    /// Resource version of the list or object in the response.
    ///
    /// If the response to a deletion contains no object, the value is the resource version of the deleted
    /// object. After a POST on `pods/binding`, the value is the resource version of the pod.
    /// `None` for every other response without a list or an object.
    pub revision: Option<u64>,
    /// Faults that have affected the request or its response, without duplicates, in order of their first
    /// effect.
    ///
    /// For example, a fault that ends the response body after 3 events is included only after it has ended
    /// the body.
    pub faults: Vec<String>,
}

/// A copy of the server's request log.
///
/// The filter methods, such as [`RequestLog::lists`], return copies with only the matching requests.
#[derive(Clone)]
pub struct RequestLog {
    requests: Vec<LoggedRequest>,
    dropped: u64,
    /// Time from the creation of the server to this copy.
    copied: Duration,
    recorder: Arc<Recorder>,
}

/// Log of the requests to a server.
pub(crate) struct Recorder {
    started: Instant,
    inner: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    requests: VecDeque<LoggedRequest>,
    bytes: usize,
    last: u64,
    dropped: u64,
}

// === impl RequestLog ===

impl RequestLog {
    /// Returns the list requests for a resource, such as `pods`.
    #[must_use]
    pub fn lists(&self, resource: &str) -> RequestLog {
        self.filter(|request| request.verb == Verb::List && request.resource == resource)
    }

    /// Returns the watch requests for a resource, such as `pods`.
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

    /// Returns the requests that arrived in the last `time` before this copy was made.
    ///
    /// A failed test can print them: the log's `Display` has one line per request.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let server = kube_informer_apiserver::Server::builder().build();
    /// println!("{}", server.requests().last(Duration::from_secs(10)));
    /// ```
    #[must_use]
    pub fn last(&self, time: Duration) -> RequestLog {
        let start = self.copied.saturating_sub(time);
        self.filter(|request| request.arrived >= start)
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
            copied: self.copied,
            recorder: Arc::clone(&self.recorder),
        }
    }

    /// Returns the number of requests in this copy.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns whether this copy has no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Iterates over the requests in order of arrival.
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedRequest> {
        self.requests.iter()
    }

    /// Returns the number of requests that the server dropped because its log was full.
    ///
    /// The count starts at the creation of the server, and ends when this copy of the log was made.
    /// Filter methods do not change this number, and [`RequestLog::clear`] does not reset it.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Removes all requests from the server's log.
    ///
    /// This `RequestLog` is a copy of the server's log and keeps its requests. The numbering of requests
    /// continues.
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

    /// Records an arriving request, and returns the request with its number and arrival time.
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

    /// Records the status and revision of the response to a logged request.
    ///
    /// Does nothing if the log no longer contains the request.
    pub(crate) fn answered(&self, sequence: u64, status: u16, revision: Option<u64>) {
        if let Some(request) = self.inner.lock().find(sequence) {
            request.status = Some(status);
            request.revision = revision;
        }
    }

    /// Adds a fault to a logged request, unless the request already has this fault.
    ///
    /// Does nothing if the log no longer contains the request.
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
            copied: recorder.started.elapsed(),
            recorder: Arc::clone(recorder),
        }
    }
}

// === impl LoggedRequest ===

impl LoggedRequest {
    /// Returns the memory size of the logged request in bytes, without its `faults`.
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
