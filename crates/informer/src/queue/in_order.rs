//! Defines [`InOrder`], a queue that returns all changes in the order in which they were queued. A list is
//! one change.
//!
//! The queue has no access to the store.

use std::collections::VecDeque;

use super::{BATCH, Batch, KeyError, KeyErrors, Population, Queue, Replaced, reached};
use crate::{
    object::{Known, SourceId},
    reflector::{Delta, DeltaKind, DeltaType},
};

/// A queue that keeps all changes of all objects in the order in which they were queued.
///
/// A list is queued as one `ReplacedAll` change, which the store applies atomically. A resync is queued as
/// one `SyncAll` change, unless a `SyncAll` change is already queued. A resync delivers the states that the
/// store contains when the `SyncAll` change is applied, so an old state can't follow a newer one.
#[doc(alias = "RealFIFO")]
#[doc(alias = "AtomicFIFO")]
#[derive(Debug)]
pub struct InOrder<K> {
    items: VecDeque<Delta<K>>,
    population: Population,
    syncs: usize,
    batch: usize,
}

impl<K> Default for InOrder<K> {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            population: Population::default(),
            syncs: 0,
            batch: BATCH,
        }
    }
}

impl<K> InOrder<K> {
    /// Creates an empty queue with batches of at most [`BATCH`] changes.
    #[doc(alias = "NewRealFIFO")]
    #[doc(alias = "NewRealFIFOWithOptions")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of changes per batch. Zero counts as 1.
    #[doc(alias = "RealFIFOOptions")]
    #[must_use]
    pub fn batch_size(mut self, batch: usize) -> Self {
        self.batch = batch.max(1);
        self
    }

    /// Returns whether the queue has synced: the first list of every source (a reflector) has been popped.
    ///
    /// A source that has queued nothing is ignored. A source whose first queued change is not a list counts
    /// as synced. Returns false if no source has queued a change.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.population.has_synced()
    }

    fn take_single(&mut self) -> Option<Batch<K>> {
        let delta = self.items.pop_front()?;
        let source = delta.source;
        let in_initial_list = self.population.is_initial(source);
        let completes = match delta.delta_type() {
            DeltaType::ReplacedAll => self.population.popped(source),
            DeltaType::SyncAll => {
                self.syncs -= 1;
                None
            }
            _ => None,
        };
        Some(Batch {
            reached: reached(std::slice::from_ref(&delta)),
            deltas: vec![delta],
            in_initial_list,
            completes,
        })
    }

    /// Returns the number of changes at the start of the queue that form the next batch, at most `room`.
    ///
    /// Such a batch contains changes of single objects, at most one for each object. The result is 0 if the
    /// first change is of another type, such as a list. That change is then a batch of its own.
    fn batchable(&self, room: usize) -> usize {
        // A shortcut for a single change, which is the usual case.
        if let [only] = self.items.as_slices().0
            && self.items.len() == 1
        {
            return usize::from(only.object_name().is_some());
        }
        #[expect(
            clippy::disallowed_types,
            reason = "pure look-up, its order is never seen"
        )]
        let mut names = std::collections::HashSet::new();
        let heads = self.items.iter().take(self.batch.min(room));
        heads
            .map_while(Delta::object_name)
            .take_while(|name| names.insert(*name))
            .count()
    }
}

impl<K: Send + Sync> Queue<K> for InOrder<K> {
    fn push(&mut self, delta: Delta<K>, _: &dyn Known<K>) -> Result<(), KeyError<K>> {
        match delta.delta_type() {
            DeltaType::Bookmark => {}
            DeltaType::SyncAll => self.syncs += 1,
            DeltaType::ReplacedAll => {
                self.population.list(delta.source, 1);
            }
            _ => self.population.change_before_list(delta.source),
        }
        self.items.push_back(delta);
        Ok(())
    }

    fn replace(&mut self, list: Replaced<K>, _: &dyn Known<K>) -> Result<(), KeyErrors<K>> {
        self.population.list(list.source, 1);
        let kind = DeltaKind::ReplacedAll {
            objects: list.objects,
            revision: list.revision,
        };
        self.items.push_back(Delta::new(list.source, kind));
        Ok(())
    }

    fn resync(&mut self, _: &dyn Known<K>) {
        if self.syncs == 0 {
            self.syncs += 1;
            self.items
                .push_back(Delta::new(SourceId::default(), DeltaKind::SyncAll));
        }
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>> {
        if room == 0 || self.items.is_empty() {
            return None;
        }
        let count = self.batchable(room);
        if count == 0 {
            return self.take_single();
        }
        let in_initial_list = self.population.is_initial(self.items[0].source);
        let deltas: Vec<_> = self.items.drain(..count).collect();
        if let Some(capacity) = after_burst(self.items.capacity(), self.items.len()) {
            self.items.shrink_to(capacity);
        }
        Some(Batch {
            reached: reached(&deltas),
            deltas,
            in_initial_list,
            completes: None,
        })
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn len(&self) -> usize {
        self.items.len()
    }
}

/// Returns the capacity to which the queue must shrink, if any. `left` is the number of changes in the queue.
fn after_burst(capacity: usize, left: usize) -> Option<usize> {
    (capacity > 4 * BATCH && left < capacity / 4).then_some(2 * left)
}

#[cfg(test)]
mod tests;
