//! Decides which task frees the memory of an old state of a store. A state of a store is called a root.
//!
//! A store starts a new generation of roots when it applies a complete list from the server. The roots of a
//! generation share most of their memory. Usually, the task that drops a root also frees it, because this is
//! fast. A large root that is dropped after its generation has ended is freed in Tokio's pool for blocking
//! work. This module does not free memory itself.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// Function that sends the large parts of a dropped root to another task.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a dropped root, which another task frees.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// A generation of roots: the states of a store from one complete list of the server to the next. Each state
/// is called a root.
///
/// All roots of a generation share this value, and most of their memory. Most of the memory is freed only
/// when the last of these roots is dropped.
pub(super) struct Generation<K> {
    /// Whether the generation has ended: the store applied another list, or the store's writer was dropped.
    is_over: AtomicBool,
    free: Free<K>,
}

/// A root with fewer entries than this number is always freed by the task that drops the root. Freeing such a
/// root takes under 1 ms.
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

    /// Returns the function that sends a dropped root of `entries` entries to another task for freeing.
    ///
    /// Returns `None` if the current task must free the root itself.
    pub(super) fn frees(&self, entries: usize) -> Option<Free<K>> {
        let is_large = entries >= FREED_IN_PLACE && self.is_over.load(Ordering::Relaxed);
        is_large.then_some(self.free)
    }
}
