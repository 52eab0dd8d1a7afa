//! Detects a constructor that requests the informer that it is creating.
//!
//! A constructor is the function that a program passes to `informer_for` to create an informer. On the
//! constructor's thread, such a request returns an error. On another thread, it is not detected.

use std::cell::RefCell;

use super::registry::{Key, RegistryId};

thread_local! {
    /// Informers whose constructors are running on this thread. The outermost constructor is first.
    static CONSTRUCTING: RefCell<Vec<UnderConstruction>> = const { RefCell::new(Vec::new()) };
}

struct UnderConstruction {
    registry: RegistryId,
    key: Key,
    recursed: bool,
}

/// Marks one informer as under construction on this thread.
///
/// Dropping this value removes the mark, also if the constructor panics.
pub(super) struct Constructing {
    /// Index of this informer in the thread's `CONSTRUCTING` list.
    depth: usize,
}

impl Constructing {
    /// Records that this thread is constructing the informer with the key `key`.
    ///
    /// Returns `None`, and records the recursion, if this thread is already constructing this informer.
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

    /// Returns whether the constructor has requested its own informer.
    pub(super) fn recursed(&self) -> bool {
        CONSTRUCTING.with_borrow(|constructing| constructing[self.depth].recursed)
    }
}

impl Drop for Constructing {
    fn drop(&mut self) {
        CONSTRUCTING.with_borrow_mut(|constructing| constructing.truncate(self.depth));
    }
}

/// Returns whether a constructor of the informer with the key `key` is running on this thread.
///
/// If so, records the recursion for [`Constructing::recursed`].
pub(super) fn note(registry: RegistryId, key: &Key) -> bool {
    CONSTRUCTING.with_borrow_mut(|constructing| {
        let mut constructing = constructing.iter_mut();
        let same = constructing.find(|other| other.registry == registry && other.key == *key);
        same.map(|other| other.recursed = true).is_some()
    })
}
