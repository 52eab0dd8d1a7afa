//! [`Generation`]: the roots of a store between two lists, and where the last of them is freed.
//!
//! Guarantees: the task that drops the last root of an ended generation does not free a whole store, but sends it to
//! the pool for blocking work. A root of the current generation is freed in place, because it shares all but a
//! few nodes with the next one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// Frees the parts of a root in another task.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a dropped root.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// The roots between two lists, which share most of their entries. Dropping one of several frees little; dropping
/// the last one frees all entries that the next list did not keep.
pub(super) struct Generation<K> {
    /// Whether a list has ended the generation, or the store has ended.
    is_over: AtomicBool,
    free: Free<K>,
}

/// Maximum number of entries that the dropping task frees itself, in less than a millisecond.
const FREED_IN_PLACE: usize = 1_000;

impl<K> Generation<K> {
    pub(super) fn new(free: Free<K>) -> Self {
        Self {
            is_over: AtomicBool::new(false),
            free,
        }
    }

    /// Ends the generation, before a list or at the end of the store, and returns the next one.
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
