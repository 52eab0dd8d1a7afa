//! [`Generation`]: determines which task frees the memory of old states of a store (roots).
//!
//! A generation consists of the roots between two lists, which share most of their entries. Guarantees: a
//! task that drops the last root of an ended generation does not free a whole store, but sends the root to
//! the pool for blocking work. A root of the current generation is freed in place, because it shares all but
//! a few nodes with the next root.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// A function that frees the large parts of a root outside of the calling task.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a dropped root, which are freed outside of the dropping task.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// Shared by the roots of a store between two lists, to determine where a dropped root is freed.
///
/// While several of these roots exist, dropping one frees little. Dropping the last one frees all entries
/// that the next list did not keep.
pub(super) struct Generation<K> {
    /// Whether a list has ended the generation, or the writer of the store was dropped.
    is_over: AtomicBool,
    free: Free<K>,
}

/// Number of entries from which an old root is freed outside of the task that drops it. Freeing fewer takes
/// less than 1 ms.
const FREED_IN_PLACE: usize = 1_000;

impl<K> Generation<K> {
    pub(super) fn new(free: Free<K>) -> Self {
        Self {
            is_over: AtomicBool::new(false),
            free,
        }
    }

    /// Ends the generation, before a list or when the writer is dropped, and returns the next generation.
    pub(super) fn end(&self) -> Self {
        self.is_over.store(true, Ordering::Relaxed);
        Self::new(self.free)
    }

    /// Returns the function that frees a root with this many entries; `None` to free it in place.
    pub(super) fn frees(&self, entries: usize) -> Option<Free<K>> {
        let is_large = entries >= FREED_IN_PLACE && self.is_over.load(Ordering::Relaxed);
        is_large.then_some(self.free)
    }
}
