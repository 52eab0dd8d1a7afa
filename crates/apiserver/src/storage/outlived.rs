//! Measures the memory of old object states that only lists and watches hold.
//!
//! The event history has dropped these states, but unfinished lists and watches still need them.
//!
//! Guarantees: the measured size is never less than the size that lists and watches hold.
//! The measured size can temporarily include states that are no longer held.

use std::sync::{Arc, Weak};

use super::{Entry, Event};

/// Maximum total size in bytes of the object states that only lists and watches hold.
///
/// The event history has dropped these states.
///
/// The value is the size limit of the event history.
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
