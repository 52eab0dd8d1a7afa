//! Determines when the informer has synced, and replies to requests for a snapshot of the store.
//!
//! A source is one list and watch of the informer. The informer has synced when the first list of each source
//! is in the store. After a warm start, the saved list counts as the first list. The store must then also
//! contain the first list or event that the server sends for the source.
//!
//! As in client-go, full handler buffers do not delay the sync: the changes that the sync requires are
//! applied to the store even if the buffers are full.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::{Serving, guest::NoSnapshot};
use crate::{indexer::Snapshot, object::SourceId, reflector::Delta};

/// Tracks whether the server has confirmed the objects that a warm start loaded.
///
/// The objects are confirmed when the store has applied, for every source, the first change, list or bookmark
/// that the source's reflector sent after the load.
pub(super) struct Unconfirmed {
    /// Sources whose reflector has sent nothing since the saved objects were loaded.
    sources: BTreeSet<SourceId>,
    /// Number of changes that must still leave the queue before the warm start's objects count as confirmed.
    ///
    /// When a source's reflector first sends a change, list or bookmark, this number is set to the length of
    /// the queue. Later changes of this reflector do not increase the number, so a busy watch can't delay the
    /// confirmation.
    left_in_queue: usize,
    /// Reports that the loaded objects are in the store; `None` after the report.
    filled: Option<oneshot::Sender<()>>,
}

impl Unconfirmed {
    /// Records that the reflector of `source` has sent a change, a list or a bookmark.
    ///
    /// `waiting` is the number of changes in the queue, including those that the reflector has sent.
    pub(super) fn told(&mut self, source: SourceId, waiting: usize) {
        if self.sources.remove(&source) {
            self.left_in_queue = waiting;
        }
    }

    pub(super) fn popped(&mut self, count: usize) {
        self.left_in_queue = self.left_in_queue.saturating_sub(count);
    }
}

impl<K: Send + Sync + 'static> Serving<K> {
    /// Queues the lists of a saved store, and reports to `filled` when the informer's store contains them.
    pub(super) async fn fill(&mut self, lists: Vec<Delta<K>>, filled: oneshot::Sender<()>) {
        let sources = lists.iter().map(|list| list.source).collect();
        for list in lists {
            self.accept(list).await;
        }
        self.unconfirmed = Some(Unconfirmed {
            sources,
            left_in_queue: 0,
            filled: Some(filled),
        });
    }

    /// Returns how many single-object changes may be popped from the queue now.
    ///
    /// This is the free space in the fullest handler buffer. While a first list or a warm start completes,
    /// there is no limit, because full handler buffers must not delay the sync.
    pub(super) fn room(&self) -> usize {
        let unconfirmed = self.unconfirmed.as_ref();
        let is_heard = unconfirmed.is_some_and(|unconfirmed| unconfirmed.sources.is_empty());
        if self.is_listing() || is_heard && !self.parts.report.status.is_synced() {
            return usize::MAX;
        }
        self.parts.processor.room()
    }

    /// Returns whether a source's first list was received but is not completely in the store.
    fn is_listing(&self) -> bool {
        self.listed.len() < self.arrived.len()
    }

    /// Reports once when a warm start's objects are in the store, and once when the informer has synced.
    pub(super) fn sync(&mut self) {
        if !self.is_listing()
            && let Some(unconfirmed) = &mut self.unconfirmed
            && let Some(filled) = unconfirmed.filled.take()
        {
            // The caller may have dropped the receiver.
            let _ = filled.send(());
        }
        let status = &self.parts.report.status;
        if !status.is_synced() && self.listed.len() == self.sources && self.is_confirmed() {
            // The status is set first, so that a handler that receives `Synced` finds the informer synced.
            status.set_synced();
            self.parts.processor.synced();
        }
    }

    /// Returns whether the server has confirmed the objects that a warm start loaded. Returns `true` if no
    /// warm start has loaded objects.
    fn is_confirmed(&self) -> bool {
        let queue = &self.parts.queue;
        let Some(unconfirmed) = &self.unconfirmed else {
            return true;
        };
        unconfirmed.sources.is_empty()
            && (queue.is_empty() || queue.keeps_order() && unconfirmed.left_in_queue == 0)
    }

    /// Replies to the pending snapshot requests, or leaves them pending.
    ///
    /// If the queue does not preserve the order of changes, the store is consistent only when the queue is
    /// empty. The requests then stay pending until the queue is empty. If a full handler buffer blocks the
    /// queue before that, the reply is an error.
    pub(super) fn reply_with_snapshots(&mut self) {
        let queue = &self.parts.queue;
        if queue.is_empty() || queue.keeps_order() || self.room() == 0 {
            for reply in std::mem::take(&mut self.snapshot_requests) {
                // The caller may have dropped the receiver.
                let _ = reply.send(self.settled_snapshot());
            }
        }
    }

    /// Returns a snapshot of the store, or the reason why there is none.
    fn settled_snapshot(&self) -> Result<Snapshot<K>, NoSnapshot> {
        let queue = &self.parts.queue;
        if !self.parts.report.status.is_synced() {
            return Err(NoSnapshot::NotSynced);
        }
        if !queue.is_empty() && !queue.keeps_order() {
            return Err(NoSnapshot::Unsettled);
        }
        Ok(self.parts.indexer.snapshot())
    }
}
