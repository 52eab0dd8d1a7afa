//! [`Generation`]: what the roots between two lists have in common, and where the last of them is freed.
//!
//! Guarantees: whoever drops the last root of a generation that is over pays for a message to the pool for
//! blocking work, and not for freeing a whole store. A root whose generation goes on is freed in place, for
//! it shares all but a few nodes with the next one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdMap;

use super::{
    index::Index,
    store::{Entry, Root},
    tree::Tree,
};
use crate::object::{Object, ObjectName};

/// Frees what a root consists of, away from the task that drops it.
pub(super) type Free<K> = fn(Garbage<K>);

/// The large parts of a root that is dropped.
#[expect(dead_code, reason = "it is only dropped")]
pub(super) struct Garbage<K> {
    entries: Tree<ObjectName, Entry<K>>,
    indices: Arc<Vec<Index<K>>>,
    broken: OrdMap<ObjectName, Option<Object<K>>>,
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

impl<K> Drop for Root<K> {
    fn drop(&mut self) {
        let Some(generation) = &self.generation else {
            return;
        };
        if self.entries.len() < FREED_IN_PLACE || !generation.is_over.load(Ordering::Relaxed) {
            return;
        }
        (generation.free)(Garbage {
            entries: std::mem::take(&mut self.entries),
            indices: std::mem::take(&mut self.indices),
            broken: std::mem::take(&mut self.broken),
        });
    }
}

impl<K> Root<K> {
    /// Has what it consists of freed by this function when it is dropped behind a list, or behind the end of
    /// the store.
    pub(super) fn freed_by(&mut self, free: Free<K>) {
        self.generation = Some(Arc::new(Generation {
            is_over: AtomicBool::new(false),
            free,
        }));
    }

    /// A list follows, or the store ends.
    pub(super) fn end_generation(&mut self) {
        if let Some(generation) = &self.generation {
            generation.is_over.store(true, Ordering::Relaxed);
            let free = generation.free;
            self.freed_by(free);
        }
    }
}
