//! [`Queue`]: the queue of changes between reflectors and store, and its two implementations.
//!
//! [`InOrder`] keeps every change in the order of arrival, and a relist as one atomic message, as client-go does
//! since 1.36. [`DeltaFifo`] keeps the order of objects, and per object the changes since it was last popped; it is
//! client-go's queue before 1.36.
//!
//! Both are plain structs: they do not wait, lock, or remember the store, which is passed to `replace` and `resync`
//! for the time of a call. An informer's controller owns its queue and its store.

mod delta_fifo;
mod in_order;

pub use self::{
    delta_fifo::{DeltaFifo, Popped},
    in_order::InOrder,
};

use std::fmt;

use derive_where::derive_where;
use tokio::time::Instant;

use crate::{
    object::{Deleted, Known, Object, ResourceVersion, SourceId},
    reflector::{Delta, DeltaKind},
};

/// Default maximum of changes applied to the store per batch: client-go's batch size for its `RealFIFO`.
pub const BATCH: usize = 1000;

/// The queue between reflectors and store, owned by one controller.
#[doc(alias = "QueueWithBatch")]
#[doc(alias = "FIFO")]
#[doc(alias = "ReflectorStore")]
pub trait Queue<K>: Send {
    /// Queues a single change: Added, Updated, Deleted or Bookmark. `known` is the current store.
    ///
    /// # Errors
    /// The object has no key. It is not queued; other objects are not affected.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    #[doc(alias = "Delete")]
    #[doc(alias = "Bookmark")]
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>>;

    /// Queues a whole list. Objects of its source that are not in the list are removed.
    ///
    /// # Errors
    /// Some objects have no key. They are not queued; all others are.
    #[doc(alias = "Replace")]
    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>>;

    /// Queues all objects of the store for delivery again, except those with a queued change: an old state must not
    /// follow a newer one.
    #[doc(alias = "Resync")]
    fn resync(&mut self, known: &dyn Known<K>);

    /// Removes and returns the next batch, with at most `room` changes of single objects. An object with more changes
    /// is split. `None` if the queue is empty or `room` is zero.
    #[doc(alias = "PopBatch")]
    #[doc(alias = "Pop")]
    #[doc(alias = "ProcessBatchFunc")]
    #[doc(alias = "PopProcessFunc")]
    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>>;

    /// Whether the queue preserves the order of changes across objects.
    ///
    /// If so, the store has after each batch the state of each source at one revision. Otherwise it has that only
    /// while the queue is empty, and can be saved only then. The default is `false`.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Returns the number of queued changes; a list counts as one if the queue stores it as one.
    fn len(&self) -> usize;

    /// Whether the queue is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A complete list of one source.
#[doc(alias = "ReplacedAllInfo")]
#[derive(Debug)]
pub struct Replaced<K> {
    /// The source of the list.
    pub source: SourceId,
    /// All objects of the source.
    pub objects: Vec<Object<K>>,
    /// The revision of the list.
    pub revision: ResourceVersion,
}

/// Changes that are applied to the store together.
#[derive(Debug)]
pub struct Batch<K> {
    /// The changes, in order.
    pub deltas: Vec<Delta<K>>,
    /// Whether they belong to a source's first list.
    #[doc(alias = "isInInitialList")]
    pub in_initial_list: bool,
    /// The source whose first list ends with this batch.
    pub completes: Option<SourceId>,
    /// The revisions up to which the store has all changes of its sources after this batch.
    ///
    /// The revisions of single objects don't show that, because a queue may return a newer change of one object
    /// before an older one of another. A revision below one that the store has reached has no effect: aggregated API
    /// servers send old objects late.
    pub reached: Vec<(SourceId, ResourceVersion)>,
}

impl<K> Batch<K> {
    /// Returns when the oldest change was received, if that was recorded.
    pub(crate) fn received(&self) -> Option<Instant> {
        self.deltas.iter().filter_map(|delta| delta.received).min()
    }
}

/// The key function failed for an object; the error returns the object.
#[derive_where(Debug)]
pub struct KeyError<K> {
    /// The object that has no key.
    pub object: Object<K>,
    /// The error of the key function.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl<K> fmt::Display for KeyError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "couldn't create key for object {:?}", self.object)
    }
}

impl<K> std::error::Error for KeyError<K> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// The objects of a list for which the key function failed.
#[derive_where(Debug)]
pub struct KeyErrors<K>(pub Vec<KeyError<K>>);

impl<K> fmt::Display for KeyErrors<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "couldn't create keys for {} objects of a list",
            self.0.len()
        )
    }
}

impl<K> std::error::Error for KeyErrors<K> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.0.first()?)
    }
}

/// Returns how far these changes bring each source, if no earlier change is missing: the largest revision in the
/// epoch of its last change.
pub(crate) fn reached<K>(deltas: &[Delta<K>]) -> Vec<(SourceId, ResourceVersion)> {
    let mut reached: Vec<(SourceId, ResourceVersion)> = Vec::new();
    for delta in deltas.iter().rev() {
        let revision = match &delta.kind {
            DeltaKind::Bookmark { revision } => revision,
            DeltaKind::Added(object)
            | DeltaKind::Updated(object)
            | DeltaKind::Deleted(Deleted::Known(object)) => object.revision(),
            _ => continue,
        };
        if revision.is_unset() {
            continue;
        }
        let mut known = reached.iter_mut();
        match known.find(|(source, _)| *source == delta.source) {
            None => reached.push((delta.source, revision.clone())),
            Some((_, reached)) if reached.is_behind(revision) => *reached = revision.clone(),
            Some(_) => {}
        }
    }
    reached
}

/// Progress of the first list of each source.
///
/// A source counts as populated from its first list, or from a single change before any list, which then counts as
/// its first list.
#[derive(Debug, Default)]
struct Population {
    /// Items of the first list that are not popped yet, per populated source.
    remaining: std::collections::BTreeMap<SourceId, usize>,
}

impl Population {
    fn change_before_list(&mut self, source: SourceId) {
        self.remaining.entry(source).or_insert(0);
    }

    /// Records a list of a source; returns whether it was the first.
    fn list(&mut self, source: SourceId, count: usize) -> bool {
        let first = !self.remaining.contains_key(&source);
        if first {
            self.remaining.insert(source, count);
        }
        first
    }

    fn is_initial(&self, source: SourceId) -> bool {
        self.remaining
            .get(&source)
            .is_none_or(|remaining| *remaining > 0)
    }

    /// Records that an item of the first list was popped; returns the source if it was the last item.
    fn popped(&mut self, source: SourceId) -> Option<SourceId> {
        let remaining = self
            .remaining
            .get_mut(&source)
            .filter(|remaining| **remaining > 0)?;
        *remaining -= 1;
        (*remaining == 0).then_some(source)
    }

    fn has_synced(&self) -> bool {
        !self.remaining.is_empty() && self.remaining.values().all(|remaining| *remaining == 0)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod script;
#[cfg(test)]
mod tests;
