//! Decides which task frees the memory of a dropped root. A root is one state of a store.
//!
//! A new generation of roots starts when the store applies a complete list. The roots of a generation share
//! most of their memory. Usually, the task that drops a root also frees the root, because this is fast. A
//! large root of an ended generation is freed in Tokio's pool for blocking work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// Function that frees the large parts of an old store state in another task.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a dropped root, which another task frees.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// A generation of roots. A root is one state of a store. A generation lasts from one complete list to the
/// next.
///
/// All roots of a generation share this value and most of their memory. Dropping the last of these roots
/// frees most of the memory.
pub(super) struct Generation<K> {
    /// Whether the generation has ended: the store applied another list, or the store's writer was dropped.
    is_over: AtomicBool,
    free: Free<K>,
}

/// Minimum number of entries of a root (one state of a store) that another task frees.
///
/// The task that drops a smaller root also frees the root, which takes under 1 ms.
const FREED_IN_PLACE: usize = 1_000;

impl<K> Generation<K> {
    pub(super) fn new(free: Free<K>) -> Self {
        Self {
            is_over: AtomicBool::new(false),
            free,
        }
    }

    /// Ends this generation, and returns the next one.
    pub(super) fn end(&self) -> Self {
        self.is_over.store(true, Ordering::Relaxed);
        Self::new(self.free)
    }

    /// Returns the function that frees a dropped root with `entries` entries in another task.
    ///
    /// Returns `None` if the current task must free the root.
    pub(super) fn frees(&self, entries: usize) -> Option<Free<K>> {
        let is_large = entries >= FREED_IN_PLACE && self.is_over.load(Ordering::Relaxed);
        is_large.then_some(self.free)
    }
}
