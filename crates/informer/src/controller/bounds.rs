//! Limits of the number of changes between the reflectors and the store.

use crate::queue::BATCH;

/// Maximum number of changes in the queue, and also in the channel before it.
///
/// Reflectors wait while both are full. The value is two batches, client-go's limit of changes ahead of
/// its handlers.
pub(crate) const CHANNEL_CAPACITY: usize = 2 * BATCH;

/// Limits of the loop's work per iteration, and of the changes that wait for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of changes applied before the loop handles commands.
    pub(crate) batch: usize,
    /// Maximum number of changes in the queue, and also in the channel before it.
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
    /// Returns how many changes to receive from the channel when `queued` changes wait in the queue.
    pub(super) fn room(self, queued: usize) -> usize {
        self.waiting.saturating_sub(queued).min(self.batch)
    }
}
