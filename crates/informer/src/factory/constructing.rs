//! Detects a constructor that requests its own informer.
//!
//! Each thread records the informers that it constructs, so such a request returns an error instead of an
//! endless recursion.

use std::cell::RefCell;

use super::registry::{Key, RegistryId};

thread_local! {
    /// Informers that constructors on this thread are creating, outermost first.
    static CONSTRUCTING: RefCell<Vec<UnderConstruction>> = const { RefCell::new(Vec::new()) };
}

struct UnderConstruction {
    registry: RegistryId,
    key: Key,
    /// Whether the constructor has requested the informer that it creates.
    recursed: bool,
}

/// Guard that marks one informer as under construction on this thread until the guard is dropped.
///
/// The mark is also removed if the constructor panics.
pub(super) struct Constructing {
    /// Index of this construction in the thread's list of constructions.
    depth: usize,
}

impl Constructing {
    /// Marks an informer as under construction; returns `None` if this thread is already constructing it.
    pub(super) fn begin(registry: RegistryId, key: &Key) -> Option<Self> {
        if note(registry, key) {
            return None;
        }
        let depth = CONSTRUCTING.with_borrow_mut(|constructing| {
            constructing.push(UnderConstruction {
                registry,
                key: key.clone(),
                recursed: false,
            });
            constructing.len() - 1
        });
        Some(Self { depth })
    }

    /// Returns whether the constructor has requested the informer that it creates.
    pub(super) fn recursed(&self) -> bool {
        CONSTRUCTING.with_borrow(|constructing| constructing[self.depth].recursed)
    }
}

impl Drop for Constructing {
    fn drop(&mut self) {
        CONSTRUCTING.with_borrow_mut(|constructing| constructing.truncate(self.depth));
    }
}

/// Records a request for an informer, and returns whether this thread is constructing that informer.
pub(super) fn note(registry: RegistryId, key: &Key) -> bool {
    CONSTRUCTING.with_borrow_mut(|constructing| {
        let mut constructing = constructing.iter_mut();
        let same = constructing.find(|other| other.registry == registry && other.key == *key);
        same.map(|other| other.recursed = true).is_some()
    })
}
