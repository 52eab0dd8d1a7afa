//! Queues the changes that reflectors receive, until the controller applies them to the store.
//!
//! [`Queue`] is the trait of these queues, and has two implementations:
//!
//! - [`InOrder`] corresponds to client-go's queue since 1.36. It returns all changes in the order in which
//!   they were queued. A list is one change.
//! - [`DeltaFifo`] corresponds to client-go's queue before 1.36. It returns keys in the order in which they
//!   were queued. With each key, it returns all changes of the key since the key was last popped.
//!
//! Both queues are plain structs that do not block and take no locks. They do not keep a reference to the
//! store. Methods that need the stored objects receive the store as an argument.

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

/// Default maximum number of changes in a batch that is applied to the store: the batch size of client-go's
/// `RealFIFO`.
pub const BATCH: usize = 1000;

/// A queue of changes: reflectors add the changes that they receive, and the controller removes batches of
/// changes and applies them to the store.
#[doc(alias = "QueueWithBatch")]
#[doc(alias = "FIFO")]
#[doc(alias = "ReflectorStore")]
pub trait Queue<K>: Send {
    /// Queues a single change of type Added, Updated, Deleted or Bookmark. `known` is the current content of
    /// the store.
    ///
    /// # Errors
    /// Returns an error if the key function fails for the object. The change is not queued, and other objects
    /// are not affected.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    #[doc(alias = "Delete")]
    #[doc(alias = "Bookmark")]
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>>;

    /// Queues a complete list of one source (a reflector). `known` is the current content of the store.
    ///
    /// Objects of the source that are missing in the list are deleted. [`DeltaFifo`] queues a deletion for
    /// each missing object. With [`InOrder`], the store deletes the missing objects when the list is applied.
    ///
    /// # Errors
    /// Returns an error if the key function fails for some objects of the list. The queue does not queue
    /// these objects, but queues all other objects of the list.
    #[doc(alias = "Replace")]
    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>>;

    /// Queues a resync, which delivers all objects of the store to the handlers again. `known` is the current
    /// content of the store.
    ///
    /// A handler never receives an old state after a newer one. [`DeltaFifo`] therefore skips objects with
    /// queued changes. [`InOrder`] delivers the states that the objects have when the resync is applied.
    #[doc(alias = "Resync")]
    fn resync(&mut self, known: &dyn Known<K>);

    /// Removes and returns the next batch, with at most `room` changes. A list in an [`InOrder`] queue is one
    /// change.
    ///
    /// Returns `None` if the queue is empty. If `room` is zero, the result is `None` or a batch without
    /// changes. Such a batch only reports in [`Batch::completes`] that a source's first list has ended. If
    /// more than `room` changes of one object are queued, the batch may contain only the oldest of these
    /// changes.
    #[doc(alias = "PopBatch")]
    #[doc(alias = "Pop")]
    #[doc(alias = "ProcessBatchFunc")]
    #[doc(alias = "PopProcessFunc")]
    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>>;

    /// Returns whether the queue preserves the order of changes of different objects.
    ///
    /// If true, the store is consistent after every applied batch: for each source, the store contains the
    /// objects that existed at one revision. If false, the store is consistent only after all queued changes
    /// are applied. The default is `false`.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Returns the number of queued changes. A list counts as one change in an [`InOrder`] queue, and as one
    /// change per object in a [`DeltaFifo`] queue.
    fn len(&self) -> usize;

    /// Returns whether the queue is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A complete list of the objects of one source, which replaces all earlier objects of the source.
#[doc(alias = "ReplacedAllInfo")]
#[derive(Debug)]
pub struct Replaced<K> {
    /// The source that was listed.
    pub source: SourceId,
    /// All objects of the source at `revision`.
    pub objects: Vec<Object<K>>,
    /// The revision of the list.
    pub revision: ResourceVersion,
}

/// Changes that are popped from a queue and applied to the store together.
#[derive(Debug)]
pub struct Batch<K> {
    /// The changes, in the order in which they are applied.
    pub deltas: Vec<Delta<K>>,
    /// Whether the changes belong to the first list of a source.
    #[doc(alias = "isInInitialList")]
    pub in_initial_list: bool,
    /// The source whose first list ends with this batch; `None` if no first list ends.
    pub completes: Option<SourceId>,
    /// Revisions that the store reaches by applying this batch, each with its source.
    ///
    /// The store then contains all changes of the source up to the revision. If the store has already reached
    /// a higher revision, the entry has no effect.
    ///
    /// The revision in an entry can be lower than the revision of an object in `deltas`. A queue may return a
    /// newer change of one object before an older change of another object.
    pub reached: Vec<(SourceId, ResourceVersion)>,
}

impl<K> Batch<K> {
    /// Returns the receive time of the oldest change in this batch, if recorded.
    pub(crate) fn received(&self) -> Option<Instant> {
        self.deltas.iter().filter_map(|delta| delta.received).min()
    }
}

/// The error returned when the key function of a queue fails for an object.
#[derive_where(Debug)]
pub struct KeyError<K> {
    /// The object for which the key function failed.
    pub object: Object<K>,
    /// The error that the key function returned.
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

/// The error returned when the key function of a queue fails for some objects of a list. The error contains
/// one [`KeyError`] for each of these objects.
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

/// Returns the highest revision of each source in `deltas`. Ignores the deltas of lists and resyncs, and
/// deletions with an unknown final state.
///
/// Also ignores revisions whose epoch differs from that of the source's newest change. A new epoch starts
/// when the server is restored from a backup, and the restored server can assign lower revisions.
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

/// Number of changes of each source's first list that are still in the queue.
#[derive(Debug, Default)]
struct Population {
    remaining: std::collections::BTreeMap<SourceId, usize>,
}

impl Population {
    fn change_before_list(&mut self, source: SourceId) {
        self.remaining.entry(source).or_insert(0);
    }

    /// Records a queued list with `count` items. Returns whether the list is the source's first change.
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

    /// Records that an item of `source` was popped. Returns `source` if the item was the last one of the
    /// source's first list.
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
