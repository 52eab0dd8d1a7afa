//! [`Lookup`] is a hash map that releases memory after removals. It offers no iteration, because the order of
//! the elements would be random.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, RandomState};

use derive_where::derive_where;

/// Capacity, in elements, above which a collection releases memory after removals.
///
/// Small collections keep their capacity to avoid reallocations.
const SHRINK_ABOVE: usize = 1024;

/// A collection shrinks if its length is below its capacity divided by this number.
const SHRINK_BELOW_ONE_IN: usize = 4;

#[expect(
    clippy::disallowed_types,
    reason = "pure look-up: the wrapper offers no iteration, so no order can show"
)]
type Map<K, V, S> = std::collections::HashMap<K, V, S>;

#[derive_where(Default; S)]
pub(super) struct Lookup<K, V, S = RandomState> {
    map: Map<K, V, S>,
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> Lookup<K, V, S> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    pub(super) fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        self.map.entry(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.map.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<(K, V)> {
        let removed = self.map.remove_entry(key);
        if let Some(room) = room_after_removal(self.map.len(), self.map.capacity()) {
            self.map.shrink_to(room);
        }
        removed
    }

    pub(super) fn clear(&mut self) {
        self.map = Map::default();
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.map.capacity()
    }
}

/// Returns the capacity to which to shrink a collection after a removal, or `None` to keep its capacity.
///
/// At least half of the new capacity is free, so that the collection does not soon grow again.
pub(super) fn room_after_removal(len: usize, capacity: usize) -> Option<usize> {
    (capacity > SHRINK_ABOVE && len < capacity / SHRINK_BELOW_ONE_IN)
        .then_some((capacity / 2).max(SHRINK_ABOVE / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_lookup_releases_memory_when_emptied() {
        let mut lookup = Lookup::<_, _>::default();
        for key in 0..100_000 {
            lookup.insert(key, ());
        }
        assert!(lookup.capacity() >= 100_000);
        for key in 0..100_000 {
            assert_eq!(lookup.remove(&key), Some((key, ())));
        }
        assert!(
            lookup.capacity() <= 2 * SHRINK_ABOVE,
            "{} slots are kept",
            lookup.capacity()
        );
    }

    #[test]
    fn a_small_lookup_does_not_shrink() {
        assert_eq!(room_after_removal(0, SHRINK_ABOVE), None);
        assert_eq!(room_after_removal(1000, 4000), None);
        assert_eq!(room_after_removal(999, 4000), Some(2000));
    }
}
