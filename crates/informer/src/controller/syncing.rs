//! When the informer has synced, and what is missing until then.
//!
//! It depends on the sources alone, as in client-go: first lists, and what confirms a store that was filled, go past
//! handlers whose buffers are full.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::Serving;
use crate::{
    object::SourceId,
    reflector::Delta,
    warm_start::{Moment, SaveError},
};

/// What is missing until what was saved counts as confirmed.
pub(super) struct Unconfirmed {
    /// Of which nothing has been heard since, by which their servers would confirm that they go on from
    /// there, or say anew what there is.
    sources: BTreeSet<SourceId>,
    /// What the queue has to hand out until all that was heard of them first is in the cache. (More may
    /// have come behind it, and may never end.)
    left_in_queue: usize,
    /// Told when what was saved is in the store.
    filled: Option<oneshot::Sender<()>>,
}

impl Unconfirmed {
    /// A source has told something, and now so much waits.
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
    /// Takes what was saved, as the first lists of the sources.
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

    /// How many single changes may be handed out now: as many as the handlers have room for. What the
    /// informer needs to have synced waits for no handler, as soon as all of that is in the queue; until
    /// then a source that is silent does not let the others fill the buffers.
    pub(super) fn room(&self) -> usize {
        let unconfirmed = self.unconfirmed.as_ref();
        let is_heard = unconfirmed.is_some_and(|unconfirmed| unconfirmed.sources.is_empty());
        if self.is_listing() || is_heard && !self.parts.report.status.is_synced() {
            return usize::MAX;
        }
        self.parts.processor.room()
    }

    /// Whether something of a first list is in the queue.
    fn is_listing(&self) -> bool {
        self.listed.len() < self.arrived.len()
    }

    /// Says that the informer has synced as soon as it has; and before that, that what was saved is in
    /// the store.
    pub(super) fn sync(&mut self) {
        if !self.is_listing()
            && let Some(unconfirmed) = &mut self.unconfirmed
            && let Some(filled) = unconfirmed.filled.take()
        {
            // Who asked may have been stopped.
            let _ = filled.send(());
        }
        let status = &self.parts.report.status;
        if !status.is_synced() && self.listed.len() == self.sources && self.is_confirmed() {
            // First, so that a handler that receives this finds that the informer has synced.
            status.set_synced();
            self.parts.processor.synced();
        }
    }

    /// Whether what was saved, if anything was, has been confirmed, and what came with that is in the
    /// cache.
    fn is_confirmed(&self) -> bool {
        let queue = &self.parts.queue;
        let Some(unconfirmed) = &self.unconfirmed else {
            return true;
        };
        unconfirmed.sources.is_empty()
            && (queue.is_empty() || queue.keeps_order() && unconfirmed.left_in_queue == 0)
    }

    /// Answers who wants a moment of the store: when there is one, or when none comes before a handler
    /// makes room.
    pub(super) fn hand_out_moments(&mut self) {
        let queue = &self.parts.queue;
        if queue.is_empty() || queue.keeps_order() || self.room() == 0 {
            for reply in std::mem::take(&mut self.moments) {
                // Who asked may have stopped waiting.
                let _ = reply.send(self.moment());
            }
        }
    }

    /// The store as it can be saved: what it has is what its sources had at their revisions.
    fn moment(&self) -> Moment<K> {
        let queue = &self.parts.queue;
        if !self.parts.report.status.is_synced() {
            return Err(SaveError::NotSynced);
        }
        if !queue.is_empty() && !queue.keeps_order() {
            return Err(SaveError::Unsettled);
        }
        Ok(self.parts.indexer.snapshot())
    }
}
