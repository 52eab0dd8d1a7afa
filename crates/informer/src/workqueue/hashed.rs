//! [`Hashed`] stores an item with its hash, so that the queue does not hash the item again for each of its
//! collections.
//!
//! The hash is calculated when an item is added, and again when a user-defined [`Order`](super::order::Order)
//! returns the item.
//!
//! The hash function is the keyed hash function of the standard library. A user who can create objects
//! therefore can't select names that have equal hashes.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::ops::Deref;

use super::lookup::Lookup;

/// An item of the queue and its precomputed hash.
#[derive(Clone, Debug)]
pub(super) struct Hashed<T> {
    hash: u64,
    item: T,
}

impl<T: Hash> Hashed<T> {
    pub(super) fn new(item: T, state: &RandomState) -> Self {
        Self {
            hash: state.hash_one(&item),
            item,
        }
    }
}

impl<T> Deref for Hashed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: PartialEq> PartialEq for Hashed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.item == other.item
    }
}

impl<T: Eq> Eq for Hashed<T> {}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.hash);
    }
}

/// A [`Lookup`] map whose keys are items with a precomputed hash.
pub(super) type HashedLookup<T, V> = Lookup<Hashed<T>, V, BuildHasherDefault<Brought>>;

/// The hasher of a [`HashedLookup`], which returns the precomputed hash of an item.
#[derive(Default)]
pub(super) struct Brought(u64);

impl Hasher for Brought {
    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "an item brings its hash as one number");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
