//! The bodies of lists and watches, made while they are sent.
//!
//! Guarantees:
//! - a body holds one chunk at a time, and makes the next when the connection asks for it;
//! - a list and the initial events of a watch show the objects as of one moment;
//! - events come in order, none twice and none left out, until the watch is cut.

use std::convert::Infallible;
use std::ops::Range;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

use crate::corpus::{Version, Writer};
use crate::framing::{EventType, Framing, ListMeta};
use crate::slot::Encoding;
use crate::source::{Follower, Reader};

/// About how many bytes are made at once: few enough for the cache of a core.
const CHUNK: usize = 64 * 1024;

/// How many objects or changes are looked up at once; a chunk has about eight pods.
const BATCH: usize = 8;

/// What a chunk may grow to: a batch is begun before it is full.
const CAPACITY: usize = 3 * CHUNK;

/// Any body.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body of one piece.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// The objects of a range, as of the reader's moment.
pub(crate) fn list(
    reader: Reader,
    framing: Framing,
    objects: Range<usize>,
    next: Option<(String, u64)>,
) -> Body {
    let meta = ListMeta {
        revision: reader.moment().revision,
        next,
    };
    let mut first = Vec::with_capacity(CAPACITY);
    let corpus = reader.source().corpus();
    let items = match framing.encoding {
        Encoding::Json => 0,
        Encoding::Protobuf => corpus
            .lengths(objects.clone(), framing.encoding)
            .map(|(len, count)| Framing::item_len(len) * count)
            .sum(),
    };
    framing.list_start(&meta, items, &mut first);
    let pages = List {
        first: objects.start,
        objects,
        reader,
        framing,
        start: Some(first),
    };
    StreamBody::new(stream::iter(pages.map(frame))).boxed_unsync()
}

/// Changes after the follower's moment, behind the objects as of it if `initial` says so.
pub(crate) fn watch(follower: Follower, framing: Framing, initial: Initial) -> Body {
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
    };
    let chunks = stream::unfold(watch, async |mut watch| {
        let chunk = watch.next().await?;
        Some((frame(chunk), watch))
    });
    StreamBody::new(chunks).boxed_unsync()
}

/// What a watch begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initial {
    /// Changes only.
    None,
    /// All objects.
    Objects,
    /// All objects, and a bookmark that says so.
    ObjectsAndBookmark,
}

/// What is left of a list.
struct List {
    first: usize,
    objects: Range<usize>,
    reader: Reader,
    framing: Framing,
    /// The bytes before the items; `None` once they are sent.
    start: Option<Vec<u8>>,
}

/// What is left of a watch.
struct Watch {
    /// The objects that it has not shown yet, and whether a bookmark follows; `None` behind both.
    initial: Option<(Range<usize>, bool)>,
    follower: Follower,
    framing: Framing,
    changes: Vec<(usize, Version)>,
}

#[expect(clippy::unnecessary_wraps, reason = "a body is a stream of results")]
fn frame(chunk: Vec<u8>) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from(chunk)))
}

/// Writes objects as of the reader's moment until the chunk is full.
fn put_objects(
    reader: &Reader,
    objects: &mut Range<usize>,
    encoding: Encoding,
    out: &mut Vec<u8>,
    mut put: impl FnMut((usize, Version), &mut Writer<'_>, &mut Vec<u8>),
) {
    let mut writer = reader.source().corpus().writer(encoding);
    let mut versions = Vec::with_capacity(BATCH);
    while out.len() < CHUNK && !Range::is_empty(objects) {
        let batch = objects.start..objects.end.min(objects.start + BATCH);
        objects.start = batch.end;
        reader.versions(batch.clone(), &mut versions);
        for object in batch.zip(versions.drain(..)) {
            put(object, &mut writer, out);
        }
    }
}

// === impl List ===

impl Iterator for List {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let start = self.start.take();
        if start.is_none() && self.objects.is_empty() {
            return None;
        }
        let mut out = start.unwrap_or_else(|| Vec::with_capacity(CAPACITY));
        let (first, framing) = (self.first, &self.framing);
        put_objects(
            &self.reader,
            &mut self.objects,
            framing.encoding,
            &mut out,
            |object, writer, out| {
                framing.item(object.0 == first, object, writer, out);
            },
        );
        if self.objects.is_empty() {
            framing.list_end(&mut out);
        }
        self.reader
            .source()
            .count(|stats| stats.bytes += out.len() as u64);
        Some(out)
    }
}

// === impl Watch ===

impl Watch {
    /// The next chunk; `None` when the watch is cut.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if self.initial.is_none() {
            self.follower.wait().await;
        }
        if self.follower.is_cut() {
            return None;
        }
        let mut out = Vec::with_capacity(CAPACITY);
        let mut events = 0;
        match self.initial.take() {
            Some((mut objects, bookmark)) => {
                events += self.put_initial(&mut objects, bookmark, &mut out);
                if !objects.is_empty() {
                    self.initial = Some((objects, bookmark));
                }
            }
            None => events += self.put_changes(&mut out),
        }
        self.follower.reader.source().count(|stats| {
            stats.events += events;
            stats.bytes += out.len() as u64;
        });
        Some(out)
    }

    fn put_initial(&self, objects: &mut Range<usize>, bookmark: bool, out: &mut Vec<u8>) -> u64 {
        let (framing, reader, mut events) = (&self.framing, &self.follower.reader, 0);
        put_objects(
            reader,
            objects,
            framing.encoding,
            out,
            |object, writer, out| {
                framing.event(EventType::Added, object, writer, out);
                events += 1;
            },
        );
        if bookmark && Range::is_empty(objects) {
            framing.bookmark(reader.moment().revision, true, out);
            events += 1;
        }
        events
    }

    fn put_changes(&mut self, out: &mut Vec<u8>) -> u64 {
        self.follower.reader.take(BATCH, &mut self.changes);
        let source = self.follower.reader.source();
        let mut writer = source.corpus().writer(self.framing.encoding);
        for change in &self.changes {
            self.framing
                .event(EventType::Modified, *change, &mut writer, out);
        }
        self.changes.len() as u64
    }
}
