//! Determines when the informer has synced, and replies to requests for a snapshot of the store.
//!
//! As in client-go, sync depends only on the sources and not on the handlers: first lists, and the changes
//! that confirm a loaded store, are delivered even if the buffers of handlers are full.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::{Serving, guest::NoSnapshot};
use crate::{indexer::Snapshot, object::SourceId, reflector::Delta};

/// The conditions that are missing until a loaded store counts as confirmed.
pub(super) struct Unconfirmed {
    /// Sources that have reported nothing since the load. The first report confirms that the watch
    /// resumed, or is a new list.
    sources: BTreeSet<SourceId>,
    /// Number of changes to pop until the first reports of all sources are in the cache. Changes that were
    /// queued later are not counted, because the queue may never become empty.
    left_in_queue: usize,
    /// Notified when the loaded objects are in the store.
    filled: Option<oneshot::Sender<()>>,
}

impl Unconfirmed {
    /// Records a report of a source. `waiting` is the length of the queue after the report.
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
    /// Queues the loaded objects as the first lists of the sources.
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

    /// Returns how many single changes may be popped: as many as fit in the buffers of all handlers.
    ///
    /// The changes that the informer needs to become synced are exempt from this limit once all of them
    /// are queued. Until then the limit applies, so one silent source does not let the other sources
    /// overfill the buffers.
    pub(super) fn room(&self) -> usize {
        let unconfirmed = self.unconfirmed.as_ref();
        let is_heard = unconfirmed.is_some_and(|unconfirmed| unconfirmed.sources.is_empty());
        if self.is_listing() || is_heard && !self.parts.report.status.is_synced() {
            return usize::MAX;
        }
        self.parts.processor.room()
    }

    /// Returns whether the queue contains a part of a first list.
    fn is_listing(&self) -> bool {
        self.listed.len() < self.arrived.len()
    }

    /// Reports that the loaded objects are in the store, and later that the informer has synced.
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

    /// Returns whether a loaded store is confirmed and the confirming changes are in the cache.
    ///
    /// Without a loaded store, returns true.
    fn is_confirmed(&self) -> bool {
        let queue = &self.parts.queue;
        let Some(unconfirmed) = &self.unconfirmed else {
            return true;
        };
        unconfirmed.sources.is_empty()
            && (queue.is_empty() || queue.keeps_order() && unconfirmed.left_in_queue == 0)
    }

    /// Replies to requests for a snapshot of the store, if a snapshot is available.
    ///
    /// If no snapshot can become available before a full buffer of a handler has room, replies with an
    /// error.
    pub(super) fn reply_with_snapshots(&mut self) {
        let queue = &self.parts.queue;
        if queue.is_empty() || queue.keeps_order() || self.room() == 0 {
            for reply in std::mem::take(&mut self.snapshot_requests) {
                // The caller may have dropped the receiver.
                let _ = reply.send(self.settled_snapshot());
            }
        }
    }

    /// Returns a snapshot in which the objects of each source match its revision.
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
