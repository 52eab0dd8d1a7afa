//! Fills new indices of a store while the store's writer continues to apply changes.
//!
//! [`IndexBuild`] runs in the task that adds the indices. The build first indexes all objects. Each later
//! round indexes the objects that changed during the previous round. Finally, the writer indexes the last
//! changes and adds the indices to the store.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    entry::Entry,
    index::{DuplicateIndex, Index, IndexError, Indexers},
    root::Root,
    snapshot::Snapshot,
    store::values_of,
};
use crate::object::ObjectName;

/// Number of objects that an [`IndexBuild`] indexes before it yields to other tasks.
///
/// If the cache stores objects as compressed bytes, indexing this many objects takes about 2 ms.
const SLICE: usize = 100;

/// An [`IndexBuild`] ends after a round that indexes at most this number of objects.
const NEAR: usize = crate::queue::BATCH;

/// Maximum number of rounds of [`IndexBuild::approach`]. A round indexes the changes since the previous one.
///
/// Without this limit, `approach` would never return if objects change faster than the build indexes them.
const ROUNDS: usize = 8;

/// New indices that are not in the store yet. They contain the objects in the snapshot `base`.
pub(crate) struct IndexBuild<K> {
    base: Snapshot<K>,
    indices: Vec<Index<K>>,
    errors: BTreeMap<ObjectName, Vec<IndexError>>,
}

impl<K> IndexBuild<K> {
    /// Creates one empty index for each index function in `indexers`.
    ///
    /// # Errors
    /// Returns an error if two of the new indices have the same name, or if the store already has an index
    /// with the name of a new index.
    pub(crate) fn new(indexers: Indexers<K>, store: &Snapshot<K>) -> Result<Self, DuplicateIndex> {
        store.root().check_names(indexers.names())?;
        Ok(Self {
            base: Snapshot::new(Arc::new(Root::empty())),
            indices: indexers.functions.into_iter().map(Index::new).collect(),
            errors: BTreeMap::new(),
        })
    }

    /// Indexes the objects of a store while the store continues to change.
    ///
    /// The first round indexes all objects. Each later round indexes the objects that changed during the
    /// previous round. The method returns after a round with at most [`NEAR`] objects, or after [`ROUNDS`]
    /// rounds. [`finish`](Self::finish) indexes the remaining changes.
    ///
    /// `now` returns the current snapshot of the store.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped before it completes, the indices are incomplete and must be
    /// discarded.
    pub(crate) async fn approach(&mut self, now: impl Fn() -> Snapshot<K>) {
        for _ in 0..ROUNDS {
            if self.follow_in_slices(now()).await <= NEAR {
                return;
            }
        }
    }

    async fn follow_in_slices(&mut self, to: Snapshot<K>) -> usize {
        let base = std::mem::replace(&mut self.base, to.clone());
        let mut seen = 0;
        for (name, entry) in base.root().entries.diff(&to.root().entries) {
            self.index(name, entry);
            seen += 1;
            if seen % SLICE == 0 {
                tokio::task::yield_now().await;
            }
        }
        seen
    }

    /// Completes the indices for the store `root`. Returns the indices and the errors of index functions.
    pub(super) fn finish(mut self, root: &Root<K>) -> (Vec<Index<K>>, Vec<IndexError>) {
        let base = self.base.clone();
        for (name, entry) in base.root().entries.diff(&root.entries) {
            self.index(name, entry);
        }
        let errors = self.errors.into_values().flatten().collect();
        (self.indices, errors)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.indices.iter().map(|index| &*index.name)
    }

    fn index(&mut self, name: &ObjectName, entry: Option<&Entry<K>>) {
        let mut errors = Vec::new();
        for index in &mut self.indices {
            let values = entry.map(|entry| values_of(index, entry.object(), &mut errors));
            index.postings.set_values(name, &values.unwrap_or_default());
        }
        if errors.is_empty() {
            self.errors.remove(name);
        } else {
            self.errors.insert(name.clone(), errors);
        }
    }
}
