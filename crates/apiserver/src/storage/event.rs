//! Represents a change of one object, and caches the encoded watch events of the change.
//!
//! A frame is one encoded watch event: its type and the object.
//!
//! Guarantees:
//! - a frame is encoded once, and shared by all watchers with the same event type, encoding, representation
//!   and API version;
//! - a frame with a table row contains the object's age, so watchers share it only within the same second;
//! - the store keeps the frames of the newest [`FRAMES_KEPT`](super::FRAMES_KEPT) events of a resource. A
//!   frame of an older event is encoded again whenever a watcher needs it.
//!
//! The module does not decide which watchers receive an event.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Entry;
use crate::negotiate::{Encoding, IncludeObject};
use crate::resource::Resource;

/// The type of a watch event, which can differ between watchers of the same change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

/// The form of the object in a watch frame: complete, only metadata, or a table row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object(Encoding),
    Metadata(Encoding),
    /// A table row, which is always JSON.
    Table(TableShape),
}

/// The options of a watch frame that contains a table row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    pub(crate) include: IncludeObject,
    /// Whether the frame contains the column definitions; only a watch's first event does.
    pub(crate) introduces: bool,
    /// Current time, truncated to seconds. The age of the object in the table row is computed from this time.
    pub(crate) now: Timestamp,
}

/// The parameters that identify one encoded frame of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameKey {
    event_type: EventType,
    shape: Shape,
    /// The value of [`Resource::ordinal`], which differs between the API versions of a resource.
    version: usize,
}

/// A change of one object: `old` is absent for a creation, and `new` for a removal.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) at: Instant,
    pub(crate) old: Option<Arc<Entry>>,
    pub(crate) new: Option<Arc<Entry>>,
    /// The old object with the revision of this event, for frames of type `Deleted`.
    gone: OnceLock<Entry>,
    /// The frames of this event that have been encoded.
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

    /// Returns the object that a watch event of type `event_type` contains.
    ///
    /// `Added` and `Modified` events contain the new object. `Deleted` events contain the old object with the
    /// revision of this event. Returns `None` if this change has no such object.
    pub(crate) fn shown(&self, event_type: EventType) -> Option<&Entry> {
        match event_type {
            EventType::Added | EventType::Modified => self.new.as_deref(),
            EventType::Deleted => {
                let old = self.old.as_ref()?;
                Some(self.gone.get_or_init(|| old.at_revision(self.revision)))
            }
        }
    }

    /// Returns the encoded watch event. `resource` determines the API version of the object.
    ///
    /// If the encoded event is not cached for these parameters, calls `write` to encode the event, and caches
    /// the result.
    ///
    /// # Errors
    ///
    /// Returns the error of `write`, which is not cached.
    pub(crate) fn frame<E>(
        &self,
        event_type: EventType,
        shape: Shape,
        resource: &Resource,
        write: impl FnOnce(&Entry, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let key = FrameKey {
            event_type,
            shape,
            version: resource.ordinal,
        };
        // The lock is held during encoding, so that other threads wait instead of encoding the same frame.
        let mut frames = self.frames.lock();
        if let Some((_, frame)) = frames.iter().find(|(known, _)| *known == key) {
            return Ok(frame.clone());
        }
        if let Shape::Table(table) = shape {
            frames.retain(|(known, _)| match known.shape {
                Shape::Table(past) => past.now == table.now,
                _ => true,
            });
        }
        let mut line = Vec::new();
        if let Some(entry) = self.shown(event_type) {
            write(entry, &mut line)?;
        }
        let frame = Bytes::from(line.into_boxed_slice());
        frames.push((key, frame.clone()));
        Ok(frame)
    }

    /// Returns the approximate memory of the event in bytes.
    ///
    /// Counts one object and one encoded watch event, which is assumed to have the size of the object.
    pub(crate) fn bytes(&self) -> usize {
        let entry = self.new.as_ref().or(self.old.as_ref());
        entry.map_or(0, |entry| 2 * entry.bytes())
    }

    pub(crate) fn forget_frames(&self) {
        *self.frames.lock() = Vec::new();
    }
}

/// Appends a watch frame to `out`: `{"type":…,"object":…}` and a line feed.
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
