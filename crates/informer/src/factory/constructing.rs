//! Detects a constructor that requests its own informer.
//!
//! Each thread records the informers that it constructs, so such a request returns an error instead of an
//! endless recursion.

use std::cell::RefCell;

use super::registry::{Key, RegistryId};

thread_local! {
    /// The constructions of this thread, outermost first.
    static CONSTRUCTING: RefCell<Vec<UnderConstruction>> = const { RefCell::new(Vec::new()) };
}

struct UnderConstruction {
    registry: RegistryId,
    key: Key,
    /// `true` after the constructor requested the same informer.
    recursed: bool,
}

/// Marks one informer as under construction on this thread until it is dropped.
///
/// The drop also removes the mark if the constructor panics.
pub(super) struct Constructing {
    /// Index among the constructions of this thread.
    depth: usize,
}

impl Constructing {
    /// Returns `None` if this thread already constructs the same informer.
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

    /// Returns whether the constructor requested the same informer.
    pub(super) fn recursed(&self) -> bool {
        CONSTRUCTING.with_borrow(|constructing| constructing[self.depth].recursed)
    }
}

impl Drop for Constructing {
    fn drop(&mut self) {
        CONSTRUCTING.with_borrow_mut(|constructing| constructing.truncate(self.depth));
    }
}

/// Records a request for an informer; returns whether this thread constructs that informer.
pub(super) fn note(registry: RegistryId, key: &Key) -> bool {
    CONSTRUCTING.with_borrow_mut(|constructing| {
        let mut constructing = constructing.iter_mut();
        let same = constructing.find(|other| other.registry == registry && other.key == *key);
        same.map(|other| other.recursed = true).is_some()
    })
}
