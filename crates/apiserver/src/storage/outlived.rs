//! Accounts for dropped object states that lists or watches still hold.
//!
//! Guarantees: the accounted size is never less than the held size.
//! The held states are counted again after each additional share of the limit, so the cost per write is constant.

use std::sync::{Arc, Weak};

use super::{Entry, Event};

/// Maximum bytes of held states: the same as for the history.
const OUTLIVED_BYTES_MAX: usize = super::HISTORY_BYTES_MAX;

/// Dropped object states that lists or watches may still hold, with their total size.
pub(super) struct Outlived {
    entries: Vec<(Weak<Entry>, usize)>,
    bytes: usize,
    /// Size in bytes at which the held states are counted again.
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

    /// Drops an event of the history and records its entries.
    pub(super) fn leave(&mut self, event: Arc<Event>) {
        let Some(old) = &event.old else { return };
        let (left, bytes) = (Arc::downgrade(old), old.bytes());
        drop(event);
        if left.strong_count() > 0 {
            self.entries.push((left, bytes));
            self.bytes += bytes;
        }
    }

    /// Whether readers hold more than the limit.
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
