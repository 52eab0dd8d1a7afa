//! Measures the memory of old object versions that only unfinished lists and watches still need.
//!
//! The event history has already dropped these versions.
//!
//! Guarantees: the measured size is never less than the actual size. For a time, it can include versions that
//! no list or watch needs.

use std::sync::{Arc, Weak};

use super::{Entry, Event};

/// Maximum total size in bytes of the object versions that only unfinished lists and watches still use.
///
/// The event history has already dropped these versions.
const OUTLIVED_BYTES_MAX: usize = super::HISTORY_BYTES_MAX;

/// Object versions that the event history has dropped, but that lists or watches may still need.
pub(super) struct Outlived {
    entries: Vec<(Weak<Entry>, usize)>,
    bytes: usize,
    /// The value of `bytes` at which unused object versions are next removed from `entries`.
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

    /// Drops `event`. If a list or watch still needs the old object version in `event`, records this version.
    pub(super) fn leave(&mut self, event: Arc<Event>) {
        let Some(old) = &event.old else { return };
        let (left, bytes) = (Arc::downgrade(old), old.bytes());
        drop(event);
        if left.strong_count() > 0 {
            self.entries.push((left, bytes));
            self.bytes += bytes;
        }
    }

    /// Returns whether the dropped object versions that are still in use exceed `bytes_max`.
    ///
    /// Returns `false` without a check until `bytes_max / 8` bytes have been recorded since the last check.
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
