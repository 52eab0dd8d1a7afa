//! Old states of objects that the history has forgotten, and somebody still holds: a list that is being read, or a watch that is behind.
//!
//! Guarantees: what is known to be held is never less than what is; it is counted again each time that a share of the bound was added, so a write costs no more for it.

use std::sync::{Arc, Weak};

use super::{Entry, Event};

/// What may outlive the history: as much again as that may take.
const OUTLIVED_BYTES_MAX: usize = super::HISTORY_BYTES_MAX;

/// Entries without an owner here.
pub(super) struct Outlived {
    entries: Vec<(Weak<Entry>, usize)>,
    bytes: usize,
    /// When it is worth a look who is still there.
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

    /// Drops an event of the history, and remembers what of it stays.
    pub(super) fn leave(&mut self, event: Arc<Event>) {
        let Some(old) = &event.old else { return };
        let (left, bytes) = (Arc::downgrade(old), old.bytes());
        drop(event);
        if left.strong_count() > 0 {
            self.entries.push((left, bytes));
            self.bytes += bytes;
        }
    }

    /// Whether more is held than may be.
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
