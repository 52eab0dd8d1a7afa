//! Limits the number of changes that wait between the reflectors and the store of an informer.

use crate::queue::BATCH;

/// Default maximum number of changes in an informer's queue.
///
/// Also the default capacity of the channel from the reflectors to the queue.
pub(crate) const CHANNEL_CAPACITY: usize = 2 * BATCH;

/// Maximum sizes of an informer's batches and of its queue of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum changes per batch. Handlers and indices are added and removed only between batches.
    pub(crate) batch: usize,
    /// While the queue contains at least this number of changes, the informer receives no changes from its
    /// reflectors.
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
    /// Returns how many changes the informer may receive if its queue contains `queued` changes.
    pub(super) fn room(self, queued: usize) -> usize {
        self.waiting.saturating_sub(queued).min(self.batch)
    }
}
