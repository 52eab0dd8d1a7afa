//! [`IndexBuild`]: fills new indices while the store's writer continues.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    entry::Entry,
    index::{DuplicateIndex, Index, IndexError, Indexers},
    root::Root,
    snapshot::Snapshot,
    store::values_of,
};
use crate::object::ObjectName;

/// Number of objects indexed between two yields: about two milliseconds with a function that decodes packed objects.
const SLICE: usize = 100;

/// Maximum number of differences left to the writer, which applies batches of that size anyway.
const NEAR: usize = crate::queue::BATCH;

/// Maximum number of rounds before the writer has to wait: it may change objects faster than they are indexed.
const ROUNDS: usize = 8;

/// Indices in progress that cover a store at one moment.
///
/// Two moments are compared by address, and shared parts are skipped: to follow a store costs as much as it has
/// changed.
pub(crate) struct IndexBuild<K> {
    base: Snapshot<K>,
    indices: Vec<Index<K>>,
    errors: BTreeMap<ObjectName, Vec<IndexError>>,
}

impl<K> IndexBuild<K> {
    /// Starts with empty indices.
    ///
    /// # Errors
    /// A name is used twice, or by an index of the store.
    pub(crate) fn new(indexers: Indexers<K>, store: &Snapshot<K>) -> Result<Self, DuplicateIndex> {
        store.root().check_names(indexers.names())?;
        Ok(Self {
            base: Snapshot::new(Arc::new(Root::empty())),
            indices: indexers.functions.into_iter().map(Index::new).collect(),
            errors: BTreeMap::new(),
        })
    }

    /// Catches up with a store that keeps changing, up to [`NEAR`] differences. Yields to other tasks regularly.
    ///
    /// # Cancel safety
    /// Dropping the future discards the work.
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

    /// Catches up with the store, and returns the indices and the errors of their functions.
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
