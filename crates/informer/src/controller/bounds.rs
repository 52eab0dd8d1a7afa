//! Limits the number of changes that wait between the reflectors and the store of an informer.

use crate::queue::BATCH;

/// Default limit on the changes in an informer's queue, and in the channel to this queue.
///
/// The limit is two batches, and applies separately to the queue and the channel. Reflectors wait while both
/// are full.
pub(crate) const CHANNEL_CAPACITY: usize = 2 * BATCH;

/// Limits of an informer's loop: the size of a batch, and the number of changes that wait in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of changes in one batch. The loop executes commands only between two batches.
    pub(crate) batch: usize,
    /// Number of changes in the queue at which the loop stops receiving changes from the reflectors.
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
    /// Returns the number of changes that the loop may now receive from the reflectors' channel.
    ///
    /// `queued` is the number of changes in the queue.
    pub(super) fn room(self, queued: usize) -> usize {
        self.waiting.saturating_sub(queued).min(self.batch)
    }
}
