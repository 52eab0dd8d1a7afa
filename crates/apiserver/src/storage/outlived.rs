//! Measures the memory of object states that the event history has dropped but lists or watches still hold.
//!
//! Guarantees: the measured size is never less than the size that lists and watches hold. It may also include
//! states that are no longer held. Such states are subtracted only when the measured size has grown by an
//! eighth of the limit since the previous subtraction.

use std::sync::{Arc, Weak};

use super::{Entry, Event};

/// Maximum total size in bytes of the object states that lists and watches still hold after the event history
/// has dropped these states.
///
/// It equals the size limit of the event history.
const OUTLIVED_BYTES_MAX: usize = super::HISTORY_BYTES_MAX;

/// The object states that the event history has dropped and that lists or watches may still hold.
pub(super) struct Outlived {
    entries: Vec<(Weak<Entry>, usize)>,
    bytes: usize,
    /// Value of `bytes` at which the states that are no longer held are removed from `entries`.
    look_at: usize,
    bytes_max: usize,
}

impl Default for Outlived {
    fn default() -> Outlived {
        Outlived::of(OUTLIVED_BYTES_MAX)
    }
}

impl Outlived {
    pub(super) fn of(bytes_max: usize) -> Outlived {
        Outlived {
            entries: Vec::new(),
            bytes: 0,
            look_at: share(bytes_max),
            bytes_max,
        }
    }

    /// Drops `event`, and records its old object state if a list or watch still holds this state.
    pub(super) fn leave(&mut self, event: Arc<Event>) {
        let Some(old) = &event.old else { return };
        let (left, bytes) = (Arc::downgrade(old), old.bytes());
        drop(event);
        if left.strong_count() > 0 {
            self.entries.push((left, bytes));
            self.bytes += bytes;
        }
    }

    /// Returns whether lists and watches hold more than `bytes_max` bytes of object states that the event
    /// history has dropped.
    pub(super) fn is_too_much(&mut self) -> bool {
        if self.bytes < self.look_at {
            return false;
        }
        self.entries.retain(|(left, _)| left.strong_count() > 0);
        self.bytes = self.entries.iter().map(|(_, bytes)| bytes).sum();
        self.look_at = self.bytes + share(self.bytes_max);
        self.bytes > self.bytes_max
    }
}

fn share(bytes_max: usize) -> usize {
    bytes_max / 8
}
