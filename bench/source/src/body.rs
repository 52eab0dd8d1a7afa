//! Generates the bodies of list and watch responses while they are sent.
//!
//! Guarantees:
//! - A body holds the chunks of only a few objects in memory. It generates further chunks when the connection
//!   polls it.
//! - A list contains the state of all objects at one revision, even if objects change while the list is sent.
//!   The initial events of a watch also contain the state at one revision.
//! - A watch delivers every event exactly once and in order, until a `POST /cut` request ends all watches.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Range;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

use crate::chunks::{Buffer, Output};
use crate::corpus::{Version, Writer};
use crate::framing::{EventType, Framing, ListMeta};
use crate::refusal::Refusal;
use crate::slot::Encoding;
use crate::source::{Follower, Reader};

/// Approximate number of bytes that a body generates at once.
const MADE: usize = 64 * 1024;

/// Maximum number of objects or changes that a body reads from its [`Reader`] at once.
///
/// The JSON of eight pods has about [`MADE`] bytes.
const BATCH: usize = 8;

/// Capacity in bytes that [`put_objects`] reserves in a body's buffer before it writes objects.
///
/// With pods of usual size, the buffer does not grow.
const CAPACITY: usize = 3 * MADE;

/// Body of a server response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Creates the body of a watch response that consists of one `ERROR` event.
pub(crate) fn refused(refusal: &Refusal, framing: &Framing, buffer: Buffer) -> Body {
    let (mut out, mut chunks) = (Output::new(buffer), VecDeque::new());
    framing.error(refusal, &mut out);
    out.flush();
    out.take(&mut chunks);
    StreamBody::new(stream::iter(chunks.into_iter().map(frame))).boxed_unsync()
}

/// Creates the body of a list response with the objects at the indexes `objects`.
///
/// `next` has the `continue` token of the next page, and the number of objects after this page.
pub(crate) fn list(
    reader: Reader,
    framing: Framing,
    buffer: Buffer,
    objects: Range<usize>,
    next: Option<(String, u64)>,
) -> Body {
    let meta = ListMeta {
        revision: reader.moment().revision,
        next,
    };
    let mut out = Output::new(buffer);
    let corpus = reader.source().corpus();
    let items = match framing.encoding {
        Encoding::Json => 0,
        Encoding::Protobuf => corpus
            .lengths(objects.clone(), framing.encoding)
            .map(|(len, count)| Framing::item_len(len) * count)
            .sum(),
    };
    framing.list_start(&meta, items, &mut out);
    let list = List {
        first: objects.start,
        objects,
        reader,
        framing,
        meta: Some(meta),
        out,
        chunks: VecDeque::new(),
    };
    StreamBody::new(stream::iter(list.map(frame))).boxed_unsync()
}

/// Creates the body of a watch response: the initial events, then an event for each change that `follower`
/// returns, until the watch ends.
pub(crate) fn watch(
    follower: Follower,
    framing: Framing,
    buffer: Buffer,
    initial: Initial,
) -> Body {
    let count = follower.reader.source().corpus().len();
    let initial = match initial {
        Initial::None => None,
        Initial::Objects => Some(false),
        Initial::ObjectsAndBookmark => Some(true),
    };
    let watch = Watch {
        initial: initial.map(|bookmark| (0..count, bookmark)),
        follower,
        framing,
        changes: Vec::new(),
        out: Output::new(buffer),
        chunks: VecDeque::new(),
    };
    let chunks = stream::unfold(watch, async |mut watch| {
        let chunk = watch.next().await?;
        Some((frame(chunk), watch))
    });
    StreamBody::new(chunks).boxed_unsync()
}

/// The initial events of a watch, which precede the first change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    None,
    /// An `ADDED` event for each object.
    Objects,
    /// An `ADDED` event for each object, and then a bookmark.
    ObjectsAndBookmark,
}

/// A list response that is being sent.
struct List {
    first: usize,
    objects: Range<usize>,
    reader: Reader,
    framing: Framing,
    /// Metadata of the list. `None` if the whole list is already written.
    meta: Option<ListMeta>,
    out: Output,
    chunks: VecDeque<Bytes>,
}

/// A watch response that is being sent.
struct Watch {
    /// Indexes of the objects whose initial events are not yet written, and whether a bookmark follows these
    /// events. `None` after all initial events are written.
    initial: Option<(Range<usize>, bool)>,
    follower: Follower,
    framing: Framing,
    changes: Vec<(usize, Version)>,
    out: Output,
    chunks: VecDeque<Bytes>,
}

#[expect(clippy::unnecessary_wraps, reason = "a body is a stream of results")]
fn frame(chunk: Bytes) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(chunk))
}

/// Writes about [`MADE`] bytes of objects, and removes the written objects from `objects`.
fn put_objects(
    reader: &Reader,
    objects: &mut Range<usize>,
    encoding: Encoding,
    out: &mut Output,
    mut put: impl FnMut((usize, Version), &mut Writer<'_>, &mut Output),
) {
    let mut writer = reader.source().corpus().writer(encoding);
    let mut versions = Vec::with_capacity(BATCH);
    out.reserve(CAPACITY);
    while out.len() < MADE && !Range::is_empty(objects) {
        let batch = objects.start..objects.end.min(objects.start + BATCH);
        objects.start = batch.end;
        reader.versions(batch.clone(), &mut versions);
        for object in batch.zip(versions.drain(..)) {
            put(object, &mut writer, out);
        }
    }
}

// === impl List ===

impl List {
    /// Writes the next objects of the list. Returns false if the end of the list was already written.
    fn make(&mut self) -> bool {
        let Some(meta) = &self.meta else {
            return false;
        };
        let (first, framing) = (self.first, &self.framing);
        put_objects(
            &self.reader,
            &mut self.objects,
            framing.encoding,
            &mut self.out,
            |object, writer, out| {
                framing.item(object.0 == first, object, writer, out);
            },
        );
        if self.objects.is_empty() {
            framing.list_end(meta, &mut self.out);
            self.out.flush();
            self.meta = None;
        }
        true
    }
}

impl Iterator for List {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.chunks.is_empty() {
            if !self.make() {
                return None;
            }
            self.out.take(&mut self.chunks);
            let bytes: usize = self.chunks.iter().map(Bytes::len).sum();
            let source = self.reader.source();
            source.count(|stats| stats.bytes += bytes as u64);
        }
        self.chunks.pop_front()
    }
}

// === impl Watch ===

impl Watch {
    /// Waits for the next chunk. Returns `None` after a `POST /cut` request.
    async fn next(&mut self) -> Option<Bytes> {
        while self.chunks.is_empty() {
            if self.initial.is_none() {
                self.follower.wait().await;
            }
            if self.follower.is_cut() {
                return None;
            }
            let events = match self.initial.take() {
                Some((mut objects, bookmark)) => {
                    let events = self.put_initial(&mut objects, bookmark);
                    if !objects.is_empty() {
                        self.initial = Some((objects, bookmark));
                    }
                    events
                }
                None => self.put_changes(),
            };
            // kube-apiserver flushes a watch when its channel is empty.
            if self.initial.is_none() && self.follower.is_current() {
                self.out.flush();
            }
            self.out.take(&mut self.chunks);
            let bytes: usize = self.chunks.iter().map(Bytes::len).sum();
            self.follower.reader.source().count(|stats| {
                stats.events += events;
                stats.bytes += bytes as u64;
            });
        }
        self.chunks.pop_front()
    }

    fn put_initial(&mut self, objects: &mut Range<usize>, bookmark: bool) -> u64 {
        let (framing, reader, mut events) = (&self.framing, &self.follower.reader, 0);
        put_objects(
            reader,
            objects,
            framing.encoding,
            &mut self.out,
            |object, writer, out| {
                framing.event(EventType::Added, object, writer, out);
                events += 1;
            },
        );
        if bookmark && Range::is_empty(objects) {
            framing.bookmark(reader.moment().revision, true, &mut self.out);
            events += 1;
        }
        events
    }

    fn put_changes(&mut self) -> u64 {
        self.follower.reader.take(BATCH, &mut self.changes);
        let source = self.follower.reader.source();
        let mut writer = source.corpus().writer(self.framing.encoding);
        for change in &self.changes {
            self.framing
                .event(EventType::Modified, *change, &mut writer, &mut self.out);
        }
        self.changes.len() as u64
    }
}
