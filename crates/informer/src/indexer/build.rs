//! [`IndexBuild`]: fills new indices of a store while the store's writer continues to apply changes.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    entry::Entry,
    index::{DuplicateIndex, Index, IndexError, Indexers},
    root::Root,
    snapshot::Snapshot,
    store::values_of,
};
use crate::object::ObjectName;

/// Number of objects indexed before the task yields: about 2 ms of work with an index function that decodes
/// packed objects.
const SLICE: usize = 100;

/// Maximum number of objects that are left for the writer to index; the writer also applies batches of that
/// size.
const NEAR: usize = crate::queue::BATCH;

/// Maximum number of rounds in which new changes are indexed. After the last round, the writer indexes the
/// remaining objects; without this limit, a build would not end if objects change faster than they are
/// indexed.
const ROUNDS: usize = 8;

/// New indices that are being filled; they contain all objects of the snapshot `base`.
///
/// To advance to a later snapshot, the two snapshots are compared and the parts that they share are skipped,
/// so the cost depends on the number of changed objects, not on the size of the store.
pub(crate) struct IndexBuild<K> {
    base: Snapshot<K>,
    indices: Vec<Index<K>>,
    errors: BTreeMap<ObjectName, Vec<IndexError>>,
}

impl<K> IndexBuild<K> {
    /// Creates empty indices with these functions.
    ///
    /// # Errors
    /// Returns an error if a name is used twice, or by an index of the store.
    pub(crate) fn new(indexers: Indexers<K>, store: &Snapshot<K>) -> Result<Self, DuplicateIndex> {
        store.root().check_names(indexers.names())?;
        Ok(Self {
            base: Snapshot::new(Arc::new(Root::empty())),
            indices: indexers.functions.into_iter().map(Index::new).collect(),
            errors: BTreeMap::new(),
        })
    }

    /// Indexes the objects of a store that continues to change, until at most about [`NEAR`] objects are not
    /// indexed.
    ///
    /// `now` returns the current snapshot. The future regularly yields to other tasks.
    ///
    /// # Cancel safety
    /// Not cancel safe: after the future is dropped, the indices are incomplete and must be discarded.
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

    /// Indexes the remaining objects of the store. Returns the complete indices, and the errors of the index
    /// functions.
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
