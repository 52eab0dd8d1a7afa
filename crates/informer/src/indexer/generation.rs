//! Decides which task frees the memory of an old state of a store; such a state is called a root here.
//!
//! A generation consists of the roots between two lists, which share most of their entries. A task that drops
//! a large root of an ended generation does not free it, but sends it to Tokio's pool for blocking work. A
//! root of the current generation is freed by the task that drops it, because it shares all but a few nodes
//! with the next root. This module does not free memory itself.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// Function that frees the large parts of a root in another task than the calling one.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a dropped root, which another task frees.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// State that all roots of a store between two lists share; it decides which task frees a dropped root.
///
/// While several roots of a generation exist, dropping one of them frees little memory. Dropping the last
/// root frees all entries that the next list did not keep.
pub(super) struct Generation<K> {
    /// Whether a list has ended this generation, or the writer of the store was dropped.
    is_over: AtomicBool,
    free: Free<K>,
}

/// Minimum number of entries of an old root that is freed in another task.
///
/// The task that drops a smaller root frees it itself, which takes less than 1 ms.
const FREED_IN_PLACE: usize = 1_000;

impl<K> Generation<K> {
    pub(super) fn new(free: Free<K>) -> Self {
        Self {
            is_over: AtomicBool::new(false),
            free,
        }
    }

    /// Ends this generation before a list is applied or when the writer is dropped, and returns the next one.
    pub(super) fn end(&self) -> Self {
        self.is_over.store(true, Ordering::Relaxed);
        Self::new(self.free)
    }

    /// Returns the function that frees a root with this number of entries in another task.
    ///
    /// Returns `None` if the task that drops the root must free it.
    pub(super) fn frees(&self, entries: usize) -> Option<Free<K>> {
        let is_large = entries >= FREED_IN_PLACE && self.is_over.load(Ordering::Relaxed);
        is_large.then_some(self.free)
    }
}
