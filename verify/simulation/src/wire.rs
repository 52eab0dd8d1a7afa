//! Records an informer's requests, and the response bodies that the informer reads.
//!
//! The module checks that each watch starts from a revision that occurred in a response. The submodule `pace`
//! checks the order and the backoff of the requests.

mod message;
mod pace;

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture};
use kube_informer::transport::{ByteStream, Error, ListOptions, ListerWatcher, Response};
use memchr::memmem;
use parking_lot::Mutex;

use self::{
    message::Converter,
    pace::{Asked, Pace},
};

/// JSON member of watch events that repeat the current state of an object.
///
/// The state's revision is older than the newest revision that the watch has reported. The informer ignores
/// the member.
pub(crate) const OLD_OBJECT: &str = "\"old\":true";

/// Returns whether a line of a watch response is a `MODIFIED` event that contains [`OLD_OBJECT`].
pub(crate) fn is_old_object(line: &[u8]) -> bool {
    let is = |part: &str| memmem::find(line, part.as_bytes()).is_some();
    is(OLD_OBJECT) && is("\"type\":\"MODIFIED\"")
}

/// Media type of responses in protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Text that precedes a revision in a response body.
const REVISION: &[u8] = b"\"resourceVersion\":\"";

/// Text that occurs only in the bookmark that ends a streaming list.
const INITIAL_EVENTS_END: &[u8] = b"k8s.io/initial-events-end";

/// Record of the requests and response bodies of a simulated run.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    requests: usize,
    open: usize,
    revisions: BTreeSet<String>,
    wrong: Option<String>,
}

impl Wire {
    /// Returns the number of requests so far. All pages of a list together count as one.
    pub(crate) fn requests(&self) -> usize {
        self.0.lock().requests
    }

    /// Returns the number of response bodies that the informer has not dropped.
    pub(crate) fn open(&self) -> usize {
        self.0.lock().open
    }

    /// Returns a description of the first invalid request; `None` if all requests were valid.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.0.lock().wrong.clone()
    }

    fn asked(&self, options: &ListOptions, watch: bool) {
        let mut seen = self.0.lock();
        seen.requests += usize::from(options.continue_token.is_none());
        let revision = options.resource_version.to_string();
        let streams = options.send_initial_events.is_some();
        if watch && !streams && !seen.revisions.contains(&revision) {
            let wrong =
                format!("a watch from revision {revision:?}, which no response has contained");
            seen.wrong.get_or_insert(wrong);
        }
    }

    fn note_wrong(&self, wrong: String) {
        self.0.lock().wrong.get_or_insert(wrong);
    }

    fn opened(
        &self,
        response: Response,
        pace: Option<Arc<Mutex<Pace>>>,
        is_listing: bool,
    ) -> Response {
        self.0.lock().open += 1;
        let is_protobuf = response.content_type().starts_with(PROTOBUF);
        let converter = is_protobuf.then(|| Converter::new(pace.is_some()));
        response.map_body(|body| self.recorded(body, converter, pace, is_listing))
    }

    fn recorded(
        &self,
        body: ByteStream,
        converter: Option<Converter>,
        pace: Option<Arc<Mutex<Pace>>>,
        is_listing: bool,
    ) -> ByteStream {
        Box::pin(Body {
            wire: self.clone(),
            converter,
            pace,
            is_listing,
            bytes: body,
            carried: Vec::new(),
            line: Vec::new(),
        })
    }
}

/// A [`ListerWatcher`] that wraps another one, and records requests and responses in a [`Wire`].
pub(crate) struct Watched<S> {
    source: S,
    wire: Wire,
    pace: Arc<Mutex<Pace>>,
}

impl<S> Watched<S> {
    /// Wraps `source`, and records its requests and response bodies in `wire`.
    ///
    /// `compared` is whether the informer periodically compares its cache with the server. Such a comparison
    /// can cause a list. Without comparisons, `wire` records an error if a list directly follows an event
    /// that [`OLD_OBJECT`] marks.
    pub(crate) fn new(source: S, wire: Wire, compared: bool) -> Self {
        let pace = Arc::new(Mutex::new(Pace::new(compared)));
        Self { source, wire, pace }
    }

    async fn ask(
        &self,
        asked: Asked,
        answer: BoxFuture<'_, Result<Response, Error>>,
    ) -> Result<Response, Error> {
        let asks = self.pace.lock().asks(asked);
        if let Err(wrong) = asks {
            self.wire.note_wrong(wrong);
        }
        let answer = answer.await;
        match &answer {
            Ok(_) => self.pace.lock().answered(),
            Err(error) => self.pace.lock().refused(asked, error),
        }
        let pace = asked.is_watch().then(|| Arc::clone(&self.pace));
        Ok(self.wire.opened(answer?, pace, asked == Asked::Stream))
    }
}

impl<S: ListerWatcher> ListerWatcher for Watched<S> {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.wire.asked(options, false);
        Box::pin(self.ask(Asked::of(options, false), self.source.list(options)))
    }

    fn list_metadata(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.wire.asked(options, false);
        let asked = self.source.list_metadata(options);
        Box::pin(async { Ok(self.wire.opened(asked.await?, None, false)) })
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.wire.asked(options, true);
        Box::pin(self.ask(Asked::of(options, true), self.source.watch(options)))
    }

    fn streams_lists(&self) -> bool {
        self.source.streams_lists()
    }

    fn collection(&self) -> Option<String> {
        self.source.collection()
    }

    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        self.source.server()
    }

    fn description(&self) -> String {
        self.source.description()
    }
}

/// A response body that records the revisions and events that the informer reads.
struct Body {
    wire: Wire,
    /// Converter of the body to JSON; `None` if the body is JSON.
    converter: Option<Converter>,
    /// Checker of the requests, to which this body reports its lines and its end.
    ///
    /// `None` unless this is the response to a watch or a streaming list.
    pace: Option<Arc<Mutex<Pace>>>,
    /// Whether this is a streaming list whose final bookmark has not arrived.
    is_listing: bool,
    bytes: ByteStream,
    /// Last bytes of the received data, which may contain an incomplete revision.
    carried: Vec<u8>,
    /// Received data after the last line end: an incomplete line.
    line: Vec<u8>,
}

impl Body {
    /// Reports each line that `chunk` completes to the checker [`Pace`], if the body has one.
    fn read_lines(&mut self, chunk: &[u8]) {
        let Some(pace) = &self.pace else {
            return;
        };
        self.line.extend_from_slice(chunk);
        while let Some(end) = memchr::memchr(b'\n', &self.line) {
            let line = &self.line[..end];
            self.is_listing &= memmem::find(line, INITIAL_EVENTS_END).is_none();
            // The events of a streaming list before its final bookmark are never resent old objects.
            let is_old = !self.is_listing && is_old_object(line);
            self.line.drain(..=end);
            pace.lock().heard(is_old);
        }
    }

    /// Records the revisions and the events of the JSON in a chunk.
    fn read_json(&mut self, chunk: &[u8]) {
        self.read(chunk);
        self.read_lines(chunk);
    }

    fn read(&mut self, chunk: &[u8]) {
        self.carried.extend_from_slice(chunk);
        let mut seen = self.wire.0.lock();
        let mut read = 0;
        while let Some(at) = memmem::find(&self.carried[read..], REVISION) {
            let begin = read + at + REVISION.len();
            let rest = &self.carried[begin..];
            let Some(length) = memchr::memchr(b'"', rest) else {
                break;
            };
            let revision = String::from_utf8_lossy(&rest[..length]).into_owned();
            seen.revisions.insert(revision);
            read = begin + length;
        }
        let kept = self.carried.len().saturating_sub(64).max(read);
        self.carried.drain(..kept);
    }
}

impl Stream for Body {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.bytes.as_mut().poll_next(context);
        if let Poll::Ready(Some(Ok(chunk))) = &next {
            match &mut self.converter {
                Some(converter) => {
                    let json = converter.feed(chunk);
                    self.read_json(&json);
                }
                None => self.read_json(chunk),
            }
            return next;
        }
        if matches!(next, Poll::Ready(None))
            && let Some(converter) = &mut self.converter
        {
            let json = converter.finish();
            self.read_json(&json);
        }
        if next.is_ready()
            && let Some(pace) = &self.pace
        {
            // A later request is a response to the end of this body, not to an old object.
            pace.lock().heard(false);
        }
        next
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.wire.0.lock().open -= 1;
    }
}
