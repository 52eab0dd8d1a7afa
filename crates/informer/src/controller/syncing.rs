//! Determines when the informer has synced, and replies to requests for a snapshot of the store.
//!
//! A source is one list and watch of the informer. A warm start loads the objects of a saved store.
//!
//! As in client-go, full handler buffers do not delay the sync. All changes that the informer needs for the
//! sync are applied to the store, even if the buffers are full. These changes are the first list of each
//! source and, after a warm start, the first list or event that the server sends for each source.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::{Serving, guest::NoSnapshot};
use crate::{indexer::Snapshot, object::SourceId, reflector::Delta};

/// Tracks whether the server has confirmed the objects that a warm start loaded into the store.
///
/// The objects are confirmed when the reflector of each source has sent its first change, list or bookmark,
/// and the resulting changes are in the store.
pub(super) struct Unconfirmed {
    /// Sources whose reflector has sent nothing since the saved objects were loaded.
    sources: BTreeSet<SourceId>,
    /// Number of changes to pop from the queue until the first changes of all sources are in the store.
    ///
    /// Changes that were queued later are not counted. Otherwise a watch with many events could delay the
    /// confirmation forever.
    left_in_queue: usize,
    /// Sender that reports that the loaded objects are in the store; `None` after the report.
    filled: Option<oneshot::Sender<()>>,
}

impl Unconfirmed {
    /// Records that the reflector of a source has sent a change, a list or a bookmark.
    ///
    /// `waiting` is the length of the queue after the resulting changes were queued.
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
    /// Queues the objects of a saved store, as if each element of `lists` were the first list of a source.
    ///
    /// When the objects are in the store, `filled` receives a message. The informer is not synced until the
    /// server has confirmed these objects.
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

    /// Returns the maximum number of single-object changes that may now be popped from the queue.
    ///
    /// Usually, this number is the free capacity of the fullest handler buffer. The number is unlimited in
    /// two cases:
    /// - the first list of a source has been received, but is not completely in the store;
    /// - after a warm start, every source has sent its first change, but the informer has not synced.
    pub(super) fn room(&self) -> usize {
        let unconfirmed = self.unconfirmed.as_ref();
        let is_heard = unconfirmed.is_some_and(|unconfirmed| unconfirmed.sources.is_empty());
        if self.is_listing() || is_heard && !self.parts.report.status.is_synced() {
            return usize::MAX;
        }
        self.parts.processor.room()
    }

    /// Returns whether the first list of some source has been received but is not completely in the store.
    fn is_listing(&self) -> bool {
        self.listed.len() < self.arrived.len()
    }

    /// Sends the reply to [`Command::Fill`](super::Command::Fill) when the objects of the warm start are in
    /// the store.
    ///
    /// Also marks the informer as synced when the first list of every source is in the store. If a warm start
    /// loaded objects, the server must first have confirmed them. Each action happens at most once.
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

    /// Returns whether the server has confirmed the objects of a warm start, and the store contains the
    /// result.
    ///
    /// Returns true if no objects were loaded.
    fn is_confirmed(&self) -> bool {
        let queue = &self.parts.queue;
        let Some(unconfirmed) = &self.unconfirmed else {
            return true;
        };
        unconfirmed.sources.is_empty()
            && (queue.is_empty() || queue.keeps_order() && unconfirmed.left_in_queue == 0)
    }

    /// Replies to pending requests for a snapshot of the store, with the snapshot or with an error.
    ///
    /// While the queue contains changes, the requests stay pending, except in two cases: the queue keeps all
    /// changes in order, or a full handler buffer prevents the changes from being popped.
    pub(super) fn reply_with_snapshots(&mut self) {
        let queue = &self.parts.queue;
        if queue.is_empty() || queue.keeps_order() || self.room() == 0 {
            for reply in std::mem::take(&mut self.snapshot_requests) {
                // The caller may have dropped the receiver.
                let _ = reply.send(self.settled_snapshot());
            }
        }
    }

    /// Returns a snapshot in which the objects of each source match the source's revision, or the reason why
    /// there is none.
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
