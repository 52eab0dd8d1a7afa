//! Limits the number of changes that wait between the reflectors and the store of an informer.

use crate::queue::BATCH;

/// Maximum number of changes in the queue, and also in the channel from the reflectors to the queue.
///
/// Reflectors wait while both are full. The value is two batches, as in client-go, which limits changes that
/// wait for handlers.
pub(crate) const CHANNEL_CAPACITY: usize = 2 * BATCH;

/// Limits of the informer's loop: for the changes applied per iteration, and for the changes that wait for
/// the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of changes that the loop applies before it handles commands.
    pub(crate) batch: usize,
    /// Maximum number of changes in the queue, and also in the channel from the reflectors to the queue.
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
    /// Returns the number of changes that the loop may receive from the channel.
    ///
    /// `queued` is the number of changes in the queue.
    pub(super) fn room(self, queued: usize) -> usize {
        self.waiting.saturating_sub(queued).min(self.batch)
    }
}
