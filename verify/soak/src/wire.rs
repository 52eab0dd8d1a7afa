//! Observes the HTTP requests that an informer sends for one collection, such as the pods of one namespace.
//! The observer is between the library and the connection. Each collection that an informer lists and watches
//! is called a source of the informer.
//!
//! The module does not use what the informer reports about itself. It reads the query of each request and the
//! status of each response. It also searches the response bodies for the errors after which an informer must
//! list again.
//!
//! Guarantees: each request has an audit id that contains the name of the source and the number of the
//! request, so that the server's audit log can be compared with [`Wire::requests`]. [`Wire::unjustified`]
//! reports each list that the informer had no reason to request.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube_client::{Client, client::Body};
use memchr::memmem;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::service_fn;

/// Start of all audit ids of this program.
pub(crate) const AUDIT_PREFIX: &str = "soak-";

/// Header with which a client selects the id of its request in the audit log.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Reason of an error event or response with code 410.
const EXPIRED: &[u8] = b"Expired";

/// Text in the error message for a requested revision that the server has not reached.
const TOO_LARGE: &[u8] = b"Too large resource version";

/// Name of the annotation of the bookmark that ends a streaming list.
const STREAM_END: &[u8] = b"k8s.io/initial-events-end";

/// Length in bytes of the longest of [`EXPIRED`], [`TOO_LARGE`] and [`STREAM_END`].
///
/// Such a text can be split between two consecutive chunks of a response body.
const LONGEST: usize = TOO_LARGE.len();

/// The kinds of an informer's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The first page of a list, or the whole list.
    List,
    /// A further page of a list.
    Page,
    /// A streaming list: a watch that sends all objects first.
    Stream,
    /// A list of one object, which shows whether the server still has a revision.
    Probe,
    Watch,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::List,
        Self::Page,
        Self::Stream,
        Self::Probe,
        Self::Watch,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Page => "page",
            Self::Stream => "stream",
            Self::Probe => "probe",
            Self::Watch => "watch",
        }
    }

    /// Returns the kind of the request with this query.
    pub(crate) fn of(query: &str) -> Self {
        let has = |parameter: &str| query.split('&').any(|each| each == parameter);
        if has("sendInitialEvents=true") {
            Self::Stream
        } else if has("watch=1") || has("watch=true") {
            Self::Watch
        } else if query.split('&').any(|each| each.starts_with("continue=")) {
            Self::Page
        } else if has("limit=1") && has("resourceVersionMatch=NotOlderThan") {
            Self::Probe
        } else {
            Self::List
        }
    }
}

/// The error of a response after which an informer must request a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// 410, as the status of a response or inside a watch.
    Expired,
    /// The error "Too large resource version": the server was restored to a state before the requested
    /// revision.
    TooLarge,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) kind: Kind,
    pub(crate) at: Instant,
    /// Status of the response; 0 without one.
    pub(crate) status: u16,
    pub(crate) reason: Option<Reason>,
    /// Whether the informer has dropped the response.
    pub(crate) ended: bool,
}

/// The requests of one source of an informer.
#[derive(Debug)]
pub(crate) struct Wire {
    /// Name of the source, without `-`.
    name: String,
    observed: Mutex<Observed>,
}

#[derive(Debug, Default)]
struct Observed {
    requests: Vec<Sent>,
    lists: Lists,
    unjustified: Vec<String>,
}

/// Whether a source (one list and watch of an informer) may request a list.
///
/// A list is permitted at the start and after each [`Reason`], until a list is complete.
#[derive(Debug)]
struct Lists {
    justified: bool,
    /// Whether the source has requested a list since its last complete list, or since the last response with
    /// an error that requires a list ([`Reason`]).
    requested: bool,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            justified: true,
            requested: false,
        }
    }
}

impl Lists {
    /// Records a request. Returns `false` if the request starts a list that the source had no reason to
    /// request.
    fn sent(&mut self, kind: Kind) -> bool {
        match kind {
            Kind::List | Kind::Stream => {
                self.requested = true;
                return self.justified;
            }
            // An informer watches only after a complete list.
            Kind::Watch if self.requested => self.complete(),
            Kind::Watch | Kind::Page | Kind::Probe => {}
        }
        true
    }

    fn complete(&mut self) {
        *self = Self {
            justified: false,
            requested: false,
        };
    }

    fn reason(&mut self) {
        *self = Self::default();
    }
}

impl Wire {
    pub(crate) fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            observed: Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns all requests so far. The index of a request is the number at the end of its audit id.
    pub(crate) fn requests(&self) -> Vec<Sent> {
        self.observed.lock().requests.clone()
    }

    /// Returns the request with this number in its audit id.
    pub(crate) fn request(&self, number: usize) -> Option<Sent> {
        self.observed.lock().requests.get(number).copied()
    }

    /// Returns the audit id of the request with this number.
    pub(crate) fn audit_id(&self, number: usize) -> String {
        format!("{AUDIT_PREFIX}{}-{number}", self.name)
    }

    /// Returns the number of requests so far.
    pub(crate) fn count(&self) -> usize {
        self.observed.lock().requests.len()
    }

    /// Returns whether a watch that the server has accepted is still open.
    pub(crate) fn is_watching(&self) -> bool {
        let observed = self.observed.lock();
        // A probe can follow an open watch.
        let mut requests = observed.requests.iter().rev();
        let watch = requests.find(|sent| matches!(sent.kind, Kind::Watch | Kind::Stream));
        watch.is_some_and(|sent| sent.status == 200 && !sent.ended)
    }

    /// Returns one line per list that the informer had no reason to request, and clears these lines.
    pub(crate) fn unjustified(&self) -> Vec<String> {
        std::mem::take(&mut self.observed.lock().unjustified)
    }

    /// Returns a client that sends its requests with `shared`, and observes them.
    pub(crate) fn client(self: &Arc<Self>, shared: &Client) -> Client {
        let (wire, shared) = (Arc::clone(self), shared.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (wire, shared) = (Arc::clone(&wire), shared.clone());
            async move { wire.send(&shared, request).await }
        });
        Client::new(service, "default")
    }

    async fn send(
        self: Arc<Self>,
        shared: &Client,
        mut request: Request<Body>,
    ) -> Result<Response<Watched>, kube_client::Error> {
        let kind = Kind::of(request.uri().query().unwrap_or(""));
        let number = self.record(kind);
        if let Ok(id) = HeaderValue::try_from(self.audit_id(number)) {
            request.headers_mut().insert(AUDIT_ID, id);
        }
        let response = shared.send(request).await?;
        let status = response.status();
        self.answered(number, status);
        Ok(response.map(|inner| Watched {
            inner,
            wire: self,
            number,
            kind,
            status,
            tail: Vec::new(),
        }))
    }

    pub(crate) fn record(&self, kind: Kind) -> usize {
        let mut observed = self.observed.lock();
        let number = observed.requests.len();
        if !observed.lists.sent(kind) {
            let last = observed.requests.iter().rev().take(3).collect::<Vec<_>>();
            let line = format!(
                "{}: request {number} is a {} without a reason; the requests before it, newest first: {}",
                self.name,
                kind.name(),
                described(&last)
            );
            observed.unjustified.push(line);
        }
        observed.requests.push(Sent {
            kind,
            at: Instant::now(),
            status: 0,
            reason: None,
            ended: false,
        });
        number
    }

    pub(crate) fn answered(&self, number: usize, status: StatusCode) {
        let mut observed = self.observed.lock();
        observed.requests[number].status = status.as_u16();
        drop(observed);
        if status == StatusCode::GONE {
            self.reason(number, Reason::Expired);
        }
    }

    fn reason(&self, number: usize, reason: Reason) {
        let mut observed = self.observed.lock();
        observed.requests[number].reason = Some(reason);
        observed.lists.reason();
    }

    fn stream_complete(&self) {
        self.observed.lock().lists.complete();
    }
}

fn described(requests: &[&Sent]) -> String {
    let describe = |sent: &&Sent| {
        let ago = sent.at.elapsed();
        let (kind, status) = (sent.kind.name(), sent.status);
        format!("{kind} {ago:.1?} ago, status {status}, {:?}", sent.reason)
    };
    let each: Vec<String> = requests.iter().map(describe).collect();
    each.join("; ")
}

/// A response body whose chunks are searched for reasons.
pub(crate) struct Watched {
    inner: Body,
    wire: Arc<Wire>,
    number: usize,
    kind: Kind,
    status: StatusCode,
    /// The last bytes of the previous chunks.
    tail: Vec<u8>,
}

impl Watched {
    fn read(&mut self, chunk: &[u8]) {
        let searched = !self.status.is_success() || matches!(self.kind, Kind::Watch | Kind::Stream);
        if !searched {
            return;
        }
        let mut text = std::mem::take(&mut self.tail);
        text.extend_from_slice(&chunk[..chunk.len().min(LONGEST)]);
        let has = |what: &[u8]| {
            memmem::find(chunk, what).is_some() || memmem::find(&text, what).is_some()
        };
        if has(EXPIRED) {
            self.wire.reason(self.number, Reason::Expired);
        } else if has(TOO_LARGE) {
            self.wire.reason(self.number, Reason::TooLarge);
        } else if self.kind == Kind::Stream && has(STREAM_END) {
            self.wire.stream_complete();
        }
        text.extend_from_slice(&chunk[chunk.len().min(LONGEST)..]);
        let keep = text.len().saturating_sub(LONGEST);
        self.tail = text.split_off(keep);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.wire.observed.lock().requests[self.number].ended = true;
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = kube_client::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(chunk) = frame.data_ref()
        {
            self.read(&chunk.clone());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_determines_the_kind_of_a_request() {
        let kinds = [
            ("limit=500&resourceVersion=", Kind::List),
            ("limit=500&continue=abc", Kind::Page),
            (
                "limit=1&resourceVersion=7&resourceVersionMatch=NotOlderThan",
                Kind::Probe,
            ),
            ("watch=1&resourceVersion=7", Kind::Watch),
            ("watch=1&sendInitialEvents=true", Kind::Stream),
        ];
        for (query, kind) in kinds {
            assert_eq!(Kind::of(query), kind, "{query}");
        }
    }

    #[test]
    fn a_list_is_justified_at_the_start_and_after_a_reason() {
        let mut lists = Lists::default();
        assert!(lists.sent(Kind::List) && lists.sent(Kind::List));
        assert!(lists.sent(Kind::Watch) && lists.sent(Kind::Watch));
        assert!(lists.sent(Kind::Probe));
        assert!(!lists.sent(Kind::List), "nothing happened");
        assert!(lists.sent(Kind::Watch));
        lists.reason();
        assert!(lists.sent(Kind::Watch));
        assert!(lists.sent(Kind::List) && lists.sent(Kind::Stream));
        lists.complete();
        assert!(!lists.sent(Kind::Stream));
    }

    #[test]
    fn a_reason_that_is_split_between_chunks_is_found() {
        let wire = Wire::new("x");
        let number = wire.record(Kind::Watch);
        let mut body = Watched {
            inner: Body::empty(),
            wire: Arc::clone(&wire),
            number,
            kind: Kind::Watch,
            status: StatusCode::OK,
            tail: Vec::new(),
        };
        body.read(br#"{"type":"ERROR","object":{"reason":"Exp"#);
        assert_eq!(wire.requests()[0].reason, None);
        body.read(b"ir");
        body.read(br#"ed","code":410}}"#);
        assert_eq!(wire.requests()[0].reason, Some(Reason::Expired));
    }
}
