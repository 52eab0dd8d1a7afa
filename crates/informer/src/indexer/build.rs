//! [`IndexBuild`]: new indices, filled outside of the store's writer, which goes on meanwhile.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    entry::Entry,
    index::{DuplicateIndex, Index, IndexError, Indexers},
    root::Root,
    snapshot::Snapshot,
    store::place,
};
use crate::object::ObjectName;

/// Objects placed between two yields: with an index function that decodes a packed object, about two
/// milliseconds.
const SLICE: usize = 100;

/// What the writer may be left to catch up with by itself: no more than it applies at one go anyway.
const NEAR: usize = crate::queue::BATCH;

/// The writer may change objects faster than an index function places them; after so many rounds it
/// waits.
const ROUNDS: usize = 8;

/// Indices that cover a store as it was at one moment, on their way into it.
///
/// Entries of two moments are compared by address, and what the two share is not looked at: following
/// a store costs as much as has changed in it.
pub(crate) struct IndexBuild<K> {
    base: Snapshot<K>,
    indices: Vec<Index<K>>,
    errors: BTreeMap<ObjectName, Vec<IndexError>>,
}

impl<K> IndexBuild<K> {
    /// Begins with nothing.
    ///
    /// # Errors
    /// One of the names is taken, or there twice.
    pub(crate) fn new(indexers: Indexers<K>, store: &Snapshot<K>) -> Result<Self, DuplicateIndex> {
        store.root().check_names(indexers.names())?;
        Ok(Self {
            base: Snapshot::new(Arc::new(Root::empty())),
            indices: indexers.functions.into_iter().map(Index::new).collect(),
            errors: BTreeMap::new(),
        })
    }

    /// Comes close to a store that goes on meanwhile. Gives way to other tasks every few hundred
    /// objects.
    ///
    /// # Cancel safety
    /// Dropping it drops the work.
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
            self.place(name, entry);
            seen += 1;
            if seen % SLICE == 0 {
                tokio::task::yield_now().await;
            }
        }
        seen
    }

    /// Comes to where the store is now, and lets go of the indices, with what they could not place.
    pub(super) fn finish(mut self, root: &Root<K>) -> (Vec<Index<K>>, Vec<IndexError>) {
        let base = self.base.clone();
        for (name, entry) in base.root().entries.diff(&root.entries) {
            self.place(name, entry);
        }
        let errors = self.errors.into_values().flatten().collect();
        (self.indices, errors)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.indices.iter().map(|index| &*index.name)
    }

    fn place(&mut self, name: &ObjectName, entry: Option<&Entry<K>>) {
        let mut errors = Vec::new();
        for index in &mut self.indices {
            let values = entry.map(|entry| place(index, entry.object(), &mut errors));
            index.placed.place(name, &values.unwrap_or_default());
        }
        if errors.is_empty() {
            self.errors.remove(name);
        } else {
            self.errors.insert(name.clone(), errors);
        }
    }
}
