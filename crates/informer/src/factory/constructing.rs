//! Which informers this thread is constructing at the moment, so that a constructor that requests its own
//! informer gets an error instead of calling itself for ever.

use std::cell::RefCell;

use super::registry::{Key, RegistryId};

thread_local! {
    /// The outermost first.
    static CONSTRUCTING: RefCell<Vec<UnderConstruction>> = const { RefCell::new(Vec::new()) };
}

struct UnderConstruction {
    registry: RegistryId,
    key: Key,
    /// The constructor asks for the same informer.
    recursed: bool,
}

/// While it lives this thread constructs one informer; also one whose constructor panics ends.
pub(super) struct Constructing {
    /// Its place among those of this thread.
    depth: usize,
}

impl Constructing {
    /// `None` if this thread is constructing the same informer already.
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

    /// Whether the constructor asks for the same informer.
    pub(super) fn recursed(&self) -> bool {
        CONSTRUCTING.with_borrow(|constructing| constructing[self.depth].recursed)
    }
}

impl Drop for Constructing {
    fn drop(&mut self) {
        CONSTRUCTING.with_borrow_mut(|constructing| constructing.truncate(self.depth));
    }
}

/// Notes that an informer is requested; whether this thread is constructing it.
pub(super) fn note(registry: RegistryId, key: &Key) -> bool {
    CONSTRUCTING.with_borrow_mut(|constructing| {
        let mut constructing = constructing.iter_mut();
        let same = constructing.find(|other| other.registry == registry && other.key == *key);
        same.map(|other| other.recursed = true).is_some()
    })
}
