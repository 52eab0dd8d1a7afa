//! Decides which task frees the memory of an old state of a store. A state of a store is called a root.
//!
//! A generation consists of all roots between two lists. These roots share most of their entries. When a task
//! drops a large root of an ended generation, another task frees the root, in Tokio's pool for blocking work.
//! When a task drops a root of the current generation, the same task frees the root. This is fast, because
//! such a root shares all but a few nodes with the next root. This module does not free memory itself.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// Function that makes another task free the large parts of a root.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a dropped root, which another task frees.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// Decides which task frees a dropped root. All roots of a store between two lists share one such value.
///
/// While several roots of a generation exist, dropping one of them frees little memory. Dropping the
/// generation's last root frees all entries that the next list did not keep.
pub(super) struct Generation<K> {
    /// Whether a list has ended this generation, or the writer of the store was dropped.
    is_over: AtomicBool,
    free: Free<K>,
}

/// Minimum number of entries of a root that another task frees.
///
/// A root with fewer entries is freed by the task that drops it, which takes less than 1 ms.
const FREED_IN_PLACE: usize = 1_000;

impl<K> Generation<K> {
    pub(super) fn new(free: Free<K>) -> Self {
        Self {
            is_over: AtomicBool::new(false),
            free,
        }
    }

    /// Ends this generation, and returns the next one.
    ///
    /// Called before a list is applied, and when the writer of the store is dropped.
    pub(super) fn end(&self) -> Self {
        self.is_over.store(true, Ordering::Relaxed);
        Self::new(self.free)
    }

    /// Returns the function that sends a dropped root to another task, which frees the root.
    ///
    /// `entries` is the number of entries of the root.
    ///
    /// Returns `None` if the task that drops the root must free it.
    pub(super) fn frees(&self, entries: usize) -> Option<Free<K>> {
        let is_large = entries >= FREED_IN_PLACE && self.is_over.load(Ordering::Relaxed);
        is_large.then_some(self.free)
    }
}
