//! Defines [`Memory`], which reports the memory of an informer's cache and the number of pending changes.
//!
//! Pending changes have not been applied to the cache, or have not been delivered to all handlers.

use std::fmt;

use super::StoreSample;

/// The memory of an informer's cache, and the number of pending changes.
///
/// Pending changes have not been applied to the cache, or have not been delivered to all handlers. `Display`
/// formats the values as one line, without any content of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Number of objects in the cache, excluding those that failed to decode.
    pub objects: usize,
    /// Estimated memory in bytes of the objects at rest, which means in the cache, with their
    /// [`Object`](crate::object::Object) handles. Excludes the indices and
    /// [`dictionary_bytes`](Self::dictionary_bytes). See [`StoreSample::rest_bytes`] for the accuracy.
    pub rest_bytes: u64,
    /// Number of bytes that the server sent for the objects in the cache, in JSON or protobuf.
    pub wire_bytes: u64,
    /// Size in bytes of the compression dictionaries, and of the samples for the next dictionary. Zero for a
    /// cache that keeps objects uncompressed.
    pub dictionary_bytes: u64,
    /// Number of indices, excluding the built-in index by namespace.
    pub indices: usize,
    /// Number of entries in all indices, excluding the built-in index by namespace. Each entry is a pair of a
    /// value and an object.
    pub index_entries: usize,
    /// Number of changes in the channel from the reflectors to the informer's queue. A list counts as one
    /// change.
    pub arriving: usize,
    /// Number of notifications that wait for handlers and subscriptions, including those in progress. A list
    /// counts as one notification.
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

    /// Returns [`rest_bytes`](Self::rest_bytes) divided by the number of objects; zero if the cache is empty.
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
    fn memory_displays_as_one_line_also_for_an_empty_cache() {
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
