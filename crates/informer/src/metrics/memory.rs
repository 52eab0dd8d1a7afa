//! [`Memory`]: what a cache takes, in figures and as one line.

use std::fmt;

use super::StoreSample;

/// What the cache of an informer takes, and what waits before and behind it.
///
/// Shown, it is one line without the content of any object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// How many objects, broken ones not counted.
    pub objects: usize,
    /// What they take at rest, in bytes, with their handles. See [`StoreSample::rest_bytes`] for what is
    /// exact of it.
    pub rest_bytes: u64,
    /// What the server sent for them, in bytes, as JSON.
    pub wire_bytes: u64,
    /// What packs them and what it is learning from, in bytes; zero for a cache that is not packed.
    pub dictionary_bytes: u64,
    /// How many indices, the one by namespace not counted.
    pub indices: usize,
    /// How many pairs of a value and an object they have.
    pub index_entries: usize,
    /// Changes that are on their way to the informer's queue; a list counts as one.
    pub arriving: usize,
    /// Notifications that wait for handlers and subscriptions, with those that they are hearing; a list
    /// counts as one.
    pub waiting: usize,
}

impl Memory {
    pub(crate) fn new(store: &StoreSample, arriving: usize, waiting: usize) -> Self {
        Self {
            objects: store.items,
            rest_bytes: store.rest_bytes,
            wire_bytes: store.wire_bytes,
            dictionary_bytes: store.dictionary_bytes,
            indices: store.indices.len(),
            index_entries: store.indices.iter().map(|index| index.entries).sum(),
            arriving,
            waiting,
        }
    }

    /// What an object takes at rest, on average; zero if there is none.
    pub fn bytes_per_object(&self) -> u64 {
        let objects = u64::try_from(self.objects).unwrap_or(u64::MAX);
        self.rest_bytes.checked_div(objects).unwrap_or_default()
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} objects take about {} bytes, {} each ({} were sent); dictionary {} bytes; \
             {} indices of {} entries; {} changes arriving, {} notifications waiting",
            self.objects,
            self.rest_bytes,
            self.bytes_per_object(),
            self.wire_bytes,
            self.dictionary_bytes,
            self.indices,
            self.index_entries,
            self.arriving,
            self.waiting,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::metrics::IndexSample;

    #[test]
    fn what_a_cache_takes_is_one_line_also_of_an_empty_one() {
        let index = |name, entries| IndexSample {
            name: Arc::from(name),
            values: 1,
            entries,
        };
        let store = StoreSample {
            items: 4,
            wire_bytes: 6000,
            rest_bytes: 2002,
            dictionary_bytes: 32,
            indices: vec![index("app", 4), index("node", 3)],
            ..StoreSample::default()
        };
        assert_eq!(
            Memory::new(&store, 1, 2).to_string(),
            "4 objects take about 2002 bytes, 500 each (6000 were sent); dictionary 32 bytes; \
             2 indices of 7 entries; 1 changes arriving, 2 notifications waiting"
        );
        assert_eq!(Memory::default().bytes_per_object(), 0);
    }
}
