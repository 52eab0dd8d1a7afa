//! Where changes wait for the store: the [`Queue`] seam and its two implementations.
//!
//! [`InOrder`] keeps every change in the order of arrival and a relist as one atomic message, as
//! client-go does since 1.36. [`DeltaFifo`] keeps, per object, the changes since it was last popped,
//! and the order of the objects; it is what the field has known and taught since 2014.
//!
//! Both are plain structs: nobody waits in here, nothing is locked, and nothing is remembered of
//! the store, which is lent to `replace` and `resync` for the time of a call. An informer's
//! controller owns its queue and its store.

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

/// At most so many changes are applied to the store at one go unless another number is asked for:
/// client-go's batch size for its `RealFIFO`.
pub const BATCH: usize = 1000;

/// The queue between reflectors and store, owned by one controller.
#[doc(alias = "QueueWithBatch")]
#[doc(alias = "FIFO")]
#[doc(alias = "ReflectorStore")]
pub trait Queue<K>: Send {
    /// Takes a single change: Added, Updated, Deleted or Bookmark. `known` is what the store has at
    /// this moment.
    ///
    /// # Errors
    /// The object has no key. It is not queued; everything else goes on.
    #[doc(alias = "Add")]
    #[doc(alias = "Update")]
    #[doc(alias = "Delete")]
    #[doc(alias = "Bookmark")]
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>>;

    /// Takes a whole list: what its source has that is not in it is gone.
    ///
    /// # Errors
    /// Some objects have no key. They are left out, all others are queued.
    #[doc(alias = "Replace")]
    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>>;

    /// Lets everything in the store be told again, except what has a change waiting already: an old
    /// state must not come behind a newer one.
    #[doc(alias = "Resync")]
    fn resync(&mut self, known: &dyn Known<K>);

    /// Takes out what is to be applied next, at most `room` changes of single objects, also of one that
    /// has more; `None` if nothing waits or there is no room.
    #[doc(alias = "PopBatch")]
    #[doc(alias = "Pop")]
    #[doc(alias = "ProcessBatchFunc")]
    #[doc(alias = "PopProcessFunc")]
    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>>;

    /// Whether changes come out as they went in, across all objects, so that a store has after each
    /// batch what its sources had at one revision each. Otherwise it has that only while the queue is
    /// empty, and can be saved only then. `false` unless said otherwise.
    fn keeps_order(&self) -> bool {
        false
    }

    /// How many changes wait, a whole list counting as one where it is one message.
    fn len(&self) -> usize;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A complete list of one source.
#[doc(alias = "ReplacedAllInfo")]
#[derive(Debug)]
pub struct Replaced<K> {
    /// Whose list it is.
    pub source: SourceId,
    /// Every object the source has.
    pub objects: Vec<Object<K>>,
    /// The revision of the list.
    pub revision: ResourceVersion,
}

/// What is applied to the store at one go.
#[derive(Debug)]
pub struct Batch<K> {
    /// The changes, in order.
    pub deltas: Vec<Delta<K>>,
    /// Whether they belong to a source's first list.
    #[doc(alias = "isInInitialList")]
    pub in_initial_list: bool,
    /// With this batch the first list of that source has been handed out.
    pub completes: Option<SourceId>,
    /// How far the store has come with this batch: up to these revisions it has everything that the
    /// sources told. The revisions of single objects don't say that, for a queue may hand out a newer
    /// change of one object before an older one of another. A revision below one that the store has
    /// reached changes nothing: aggregated API servers send old objects late.
    pub reached: Vec<(SourceId, ResourceVersion)>,
}

impl<K> Batch<K> {
    /// When the oldest of the changes was received, as far as that was noted.
    pub(crate) fn received(&self) -> Option<Instant> {
        self.deltas.iter().filter_map(|delta| delta.received).min()
    }
}

/// A key function could not name an object, which is handed back.
#[derive_where(Debug)]
pub struct KeyError<K> {
    /// The object that has no key.
    pub object: Object<K>,
    /// What the key function said.
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

/// The objects of one list that have no key.
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

/// How far each source has come with these changes, if none is missing before them: for each, the largest
/// revision in the epoch of the last change.
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

/// How far the first list of each source has come.
///
/// A source counts as populated from its first list, or from the first single change before any list,
/// which then passes for all of it.
#[derive(Debug, Default)]
struct Population {
    /// What is still to be popped of the first list, per populated source.
    remaining: std::collections::BTreeMap<SourceId, usize>,
}

impl Population {
    fn change_before_list(&mut self, source: SourceId) {
        self.remaining.entry(source).or_insert(0);
    }

    /// Notes the first list of a source; whether it was the first.
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

    /// One of the first list's items was popped; the source, if it was the last one.
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
