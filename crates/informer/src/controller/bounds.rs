//! How much may be between the reflectors and the store.

use crate::queue::BATCH;

/// So many changes may wait in the queue, and as many be on their way to it, before the reflectors
/// wait: two batches, client-go's bound for working ahead of its handlers.
pub(crate) const CHANNEL_CAPACITY: usize = 2 * BATCH;

/// How much the loop does at one go, and how much may wait for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// So many changes are applied before commands are looked at.
    pub(crate) batch: usize,
    /// So many may wait in the queue, and in the channel before it.
    pub(crate) waiting: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            batch: BATCH,
            waiting: CHANNEL_CAPACITY,
        }
    }
}

impl Bounds {
    /// How many changes are taken from the channel when so many wait in the queue.
    pub(super) fn room(self, queued: usize) -> usize {
        self.waiting.saturating_sub(queued).min(self.batch)
    }
}
