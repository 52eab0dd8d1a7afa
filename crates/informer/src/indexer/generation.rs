//! [`Generation`]: what the roots between two lists have in common, and where the last of them is freed.
//!
//! Guarantees: the task that drops the last root of a generation that is over sends a message to the pool for
//! blocking work; it does not free a whole store. A root whose generation goes on is freed in place, because
//! it shares all but a few nodes with the next one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{entry::Entry, index::Index, tree::Tree};
use crate::object::{Object, ObjectName};

/// Frees what a root consists of, away from the task that drops it.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a root that is dropped.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
}

/// What the roots between two lists have in common: most of their entries. While another of them is alive,
/// dropping one frees little; the last one frees all that the next list did not keep.
pub(super) struct Generation<K> {
    /// Whether a list has replaced it, or the store has ended.
    is_over: AtomicBool,
    free: Free<K>,
}

/// Fewer entries are freed by the task that drops them: they take less than a millisecond.
const FREED_IN_PLACE: usize = 1_000;

impl<K> Generation<K> {
    pub(super) fn new(free: Free<K>) -> Self {
        Self {
            is_over: AtomicBool::new(false),
            free,
        }
    }

    /// A list follows, or the store ends; the next generation.
    pub(super) fn end(&self) -> Self {
        self.is_over.store(true, Ordering::Relaxed);
        Self::new(self.free)
    }

    /// What frees a root of so many entries, if that is not the task that drops it.
    pub(super) fn frees(&self, entries: usize) -> Option<Free<K>> {
        let is_large = entries >= FREED_IN_PLACE && self.is_over.load(Ordering::Relaxed);
        is_large.then_some(self.free)
    }
}
