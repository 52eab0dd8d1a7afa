//! What goes over the wire, seen by somebody between informer and server.

mod pace;

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture};
use kube_informer::transport::{ByteStream, Error, ListOptions, ListerWatcher};
use memchr::memmem;
use parking_lot::Mutex;

use self::pace::{Asked, Pace};

/// What precedes a revision in a body.
const REVISION: &[u8] = b"\"resourceVersion\":\"";

/// The requests of a life, and what their answers said.
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
    /// Lists and watches until now, further pages left out.
    pub(crate) fn requests(&self) -> usize {
        self.0.lock().requests
    }

    /// Bodies that somebody still holds.
    pub(crate) fn open(&self) -> usize {
        self.0.lock().open
    }

    /// The first request that should not have been made.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.0.lock().wrong.clone()
    }

    fn asked(&self, options: &ListOptions, watch: bool) {
        let mut seen = self.0.lock();
        seen.requests += usize::from(options.continue_token.is_none());
        let revision = options.resource_version.to_string();
        let streams = options.send_initial_events.is_some();
        if watch && !streams && !seen.revisions.contains(&revision) {
            let wrong = format!("a watch from revision {revision:?}, which no answer has named");
            seen.wrong.get_or_insert(wrong);
        }
    }

    fn note_wrong(&self, wrong: String) {
        self.0.lock().wrong.get_or_insert(wrong);
    }

    fn opened(&self, body: ByteStream) -> ByteStream {
        self.0.lock().open += 1;
        Box::pin(Body {
            wire: self.clone(),
            bytes: body,
            carried: Vec::new(),
        })
    }
}

/// A source whose requests are watched.
pub(crate) struct Watched<S> {
    source: S,
    wire: Wire,
    pace: Mutex<Pace>,
}

impl<S> Watched<S> {
    pub(crate) fn new(source: S, wire: Wire) -> Self {
        let pace = Mutex::default();
        Self { source, wire, pace }
    }

    async fn ask(
        &self,
        asked: Asked,
        answer: BoxFuture<'_, Result<ByteStream, Error>>,
    ) -> Result<ByteStream, Error> {
        if let Err(wrong) = self.pace.lock().asks(asked) {
            self.wire.note_wrong(wrong);
        }
        let answer = answer.await;
        let mut pace = self.pace.lock();
        match &answer {
            Ok(_) => pace.answered(),
            Err(error) => pace.refused(asked, error),
        }
        Ok(self.wire.opened(answer?))
    }
}

impl<S: ListerWatcher> ListerWatcher for Watched<S> {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        self.wire.asked(options, false);
        Box::pin(self.ask(Asked::of(options, false), self.source.list(options)))
    }

    fn list_metadata(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        self.wire.asked(options, false);
        let asked = self.source.list_metadata(options);
        Box::pin(async { Ok(self.wire.opened(asked.await?)) })
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
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

/// The body of an answer, read along.
struct Body {
    wire: Wire,
    bytes: ByteStream,
    /// The end of the last chunk, which may hold the beginning of a revision.
    carried: Vec<u8>,
}

impl Body {
    fn read(&mut self, chunk: &Bytes) {
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
            self.read(chunk);
        }
        next
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.wire.0.lock().open -= 1;
    }
}
