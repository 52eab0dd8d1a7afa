//! One change of one object, and the bytes that watchers are sent for it.
//!
//! Guarantees: the frame of an event is made once per type, shape and version, and its bytes are shared by all watchers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Entry;
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

    /// The line that tells a watcher of this event.
    pub(crate) fn frame(&self, event_type: EventType, shape: Shape, resource: &Resource) -> Bytes {
        let key = FrameKey {
            event_type,
            shape,
            version: resource.ordinal,
        };
        let mut frames = self.frames.lock();
        if let Some((_, frame)) = frames.iter().find(|(known, _)| *known == key) {
            return frame.clone();
        }
        let mut line = Vec::new();
        if let Some(entry) = self.shown(event_type) {
            write_frame(event_type, entry, shape, resource, &mut line);
        }
        let frame = Bytes::from(line);
        frames.push((key, frame.clone()));
        frame
    }
}

/// Appends `{"type":…,"object":…}` and a line feed.
pub(crate) fn write_frame(
    event_type: EventType,
    entry: &Entry,
    shape: Shape,
    resource: &Resource,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event_type.as_str().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    match shape {
        Shape::Object => entry.write_object(resource, out),
        Shape::Metadata => entry.write_metadata(out),
    }
    out.extend_from_slice(b"}\n");
}
