//! One change of one object, and its encoded frames for watchers.
//!
//! Guarantees:
//! - a frame is encoded once per type, shape and version, and all watchers share its bytes; a table frame contains ages
//!   and is encoded once per second;
//! - frames are kept as long as live watchers can lag behind ([`FRAMES_KEPT`] in storage); for older events they are
//!   encoded again on demand.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Entry;
use crate::negotiate::IncludeObject;
use crate::resource::Resource;

/// Type of an event for one watcher; selectors can change the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

/// The part of an object that a frame contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Metadata,
    Table(TableShape),
}

/// Parameters of a table frame besides the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    pub(crate) include: IncludeObject,
    /// Whether the column definitions are included, as in a watch's first event.
    pub(crate) introduces: bool,
    /// The time for computing ages, in seconds.
    pub(crate) now: Timestamp,
}

/// The parameters that identify one encoded frame of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameKey {
    event_type: EventType,
    shape: Shape,
    /// The resource's ordinal, which identifies the version.
    version: usize,
}

/// One change of one object; at least one of `old` and `new` is present.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) at: Instant,
    pub(crate) old: Option<Arc<Entry>>,
    pub(crate) new: Option<Arc<Entry>>,
    /// The old object at this event's revision, for watchers whose selector no longer matches.
    gone: OnceLock<Entry>,
    /// The encoded frames; usually one, because most watchers request the same representation.
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

    /// Returns the object that an event of this type contains.
    ///
    /// This is the new object, or for `Deleted` the old object with this event's revision.
    pub(crate) fn shown(&self, event_type: EventType) -> Option<&Entry> {
        match event_type {
            EventType::Added | EventType::Modified => self.new.as_deref(),
            EventType::Deleted => {
                let old = self.old.as_ref()?;
                Some(self.gone.get_or_init(|| old.at_revision(self.revision)))
            }
        }
    }

    /// Returns the encoded line of this event; `write` encodes it on first use.
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
        // The lock is held during encoding, so that other threads wait instead of encoding the same frame.
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

    /// Returns the approximate memory of the event in bytes: the stored or removed object, and one frame.
    pub(crate) fn bytes(&self) -> usize {
        let entry = self.new.as_ref().or(self.old.as_ref());
        entry.map_or(0, |entry| 2 * entry.bytes())
    }

    /// Drops the frames; watchers keep those that they have received.
    pub(crate) fn forget_frames(&self) {
        *self.frames.lock() = Vec::new();
    }
}

/// Appends `{"type":…,"object":…}` and a line feed; `write` appends the object.
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
