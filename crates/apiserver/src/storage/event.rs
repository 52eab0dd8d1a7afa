//! One change of one object, and the bytes that watchers are sent for it.
//!
//! Guarantees:
//! - the frame of an event is made once per type, shape and version, and its bytes are shared by all watchers; that of a table, whose ages pass, once per second;
//! - frames are kept as long as live watchers can be behind ([`FRAMES_KEPT`] in storage), and made anew for whoever asks for an older event.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Entry;
use crate::negotiate::IncludeObject;
use crate::resource::Resource;

/// What a watcher is told of an event; selectors can turn one into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

/// How much of an object a frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Metadata,
    Table(TableShape),
}

/// What the frame of a table depends on besides the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    pub(crate) include: IncludeObject,
    /// Whether the columns are described: in a watch's first event.
    pub(crate) introduces: bool,
    /// The second up to which ages are counted.
    pub(crate) now: Timestamp,
}

/// What one encoded frame depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameKey {
    event_type: EventType,
    shape: Shape,
    /// The resource's ordinal: which version is spoken.
    version: usize,
}

/// One change of one object; at least one of `old` and `new` is there.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) at: Instant,
    pub(crate) old: Option<Arc<Entry>>,
    pub(crate) new: Option<Arc<Entry>>,
    /// The old object at this event's revision, for watchers to whom it is gone.
    gone: OnceLock<Entry>,
    /// Few at a time: most events are asked for in one form.
    frames: Mutex<Vec<(FrameKey, Bytes)>>,
}

// === impl EventType ===

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

// === impl Event ===

impl Event {
    pub(crate) fn new(
        revision: u64,
        at: Instant,
        old: Option<Arc<Entry>>,
        new: Option<Arc<Entry>>,
    ) -> Event {
        debug_assert!(
            old.is_some() || new.is_some(),
            "an event is about an object"
        );
        Event {
            revision,
            at,
            old,
            new,
            gone: OnceLock::new(),
            frames: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn key(&self) -> &str {
        let entry = self.new.as_ref().or(self.old.as_ref());
        entry.map_or("", |entry| &*entry.key)
    }

    /// The object that an event of this type shows: the new one, or for `Deleted` the old one at this event's revision.
    pub(crate) fn shown(&self, event_type: EventType) -> Option<&Entry> {
        match event_type {
            EventType::Added | EventType::Modified => self.new.as_deref(),
            EventType::Deleted => {
                let old = self.old.as_ref()?;
                Some(self.gone.get_or_init(|| old.at_revision(self.revision)))
            }
        }
    }

    /// The line that tells a watcher of this event; `write` makes it if nobody has asked for it yet.
    pub(crate) fn frame(
        &self,
        event_type: EventType,
        shape: Shape,
        resource: &Resource,
        write: impl FnOnce(&Entry, &mut Vec<u8>),
    ) -> Bytes {
        let key = FrameKey {
            event_type,
            shape,
            version: resource.ordinal,
        };
        // Held while the frame is made, so that watchers on other threads wait for it and don't make it too.
        let mut frames = self.frames.lock();
        if let Some((_, frame)) = frames.iter().find(|(known, _)| *known == key) {
            return frame.clone();
        }
        if let Shape::Table(table) = shape {
            frames.retain(|(known, _)| match known.shape {
                Shape::Table(past) => past.now == table.now,
                _ => true,
            });
        }
        let mut line = Vec::new();
        if let Some(entry) = self.shown(event_type) {
            write(entry, &mut line);
        }
        let frame = Bytes::from(line.into_boxed_slice());
        frames.push((key, frame.clone()));
        frame
    }

    /// About what it takes: the object that it brought, or took away, and a frame that shows it.
    pub(crate) fn bytes(&self) -> usize {
        let entry = self.new.as_ref().or(self.old.as_ref());
        entry.map_or(0, |entry| 2 * entry.bytes())
    }

    /// Lets go of the frames: what watchers were sent stays theirs.
    pub(crate) fn forget_frames(&self) {
        *self.frames.lock() = Vec::new();
    }
}

/// Appends `{"type":…,"object":…}` and a line feed around an object.
pub(crate) fn write_frame(
    event_type: EventType,
    write_object: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event_type.as_str().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    write_object(out);
    out.extend_from_slice(b"}\n");
}
