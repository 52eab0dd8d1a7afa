//! Defines [`Root`]: one immutable state of a store, which a reader's snapshot contains.
//!
//! This module reads roots and updates their revisions. The module `store` changes the objects and indices.

use std::{
    collections::BTreeMap,
    ops::Bound::{self, Excluded, Included},
    sync::Arc,
};

use derive_where::derive_where;
use imbl::OrdMap;

use super::{
    entry::Entry,
    generation::{Free, Garbage, Generation},
    index::{Index, IndexRef, NAMESPACE, NoSuchIndex},
    tree::Tree,
};
use crate::object::{Object, ObjectName, ResourceVersion, SourceId, UnreadMoment};

/// One state of a store: its objects, indices and revisions.
///
/// A clone costs a few increments of reference counts.
#[derive_where(Clone)]
pub(super) struct Root<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    /// Revision that the store has reached for the first source (one list and watch of the informer).
    ///
    /// Most informers have only this source. This separate field avoids a copy of the map `revisions` on each
    /// write.
    first_revision: ResourceVersion,
    /// Revisions that the store has reached for all sources except the first one. Most informers have only
    /// one source.
    revisions: Arc<BTreeMap<SourceId, ResourceVersion>>,
    /// Number of rollbacks of all sources. A rollback is a decrease of a source's revision, or a detected
    /// restore of the source's server from a backup.
    pub(super) rollbacks: u64,
    /// Names of the entries whose object can't be decoded. The value is the last valid state of the object
    /// that handlers have received; `None` if there is no such state.
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
    /// Number of times that the field `broken` has changed.
    pub(super) broken_version: u64,
    /// Number of bytes that the server sent for the objects that are now in the store.
    pub(super) wire_bytes: u64,
    /// Number of entries of each source, including broken entries.
    pub(super) counts: Arc<BTreeMap<SourceId, usize>>,
    /// Decides which task frees this root when it is dropped. `None` in a store without an informer, where
    /// the task that drops a root frees it.
    generation: Option<Arc<Generation<K>>>,
    /// Counter of the entries that have not been decoded; `None` if the store does not decode objects on
    /// demand.
    pub(super) unread: Option<Arc<UnreadMoment>>,
}

impl<K> Drop for Root<K> {
    fn drop(&mut self) {
        let generation = self.generation.as_ref();
        let Some(free) = generation.and_then(|generation| generation.frees(self.entries.len()))
        else {
            return;
        };
        free(Garbage {
            entries: std::mem::take(&mut self.entries),
            indices: std::mem::take(&mut self.indices),
            broken: std::mem::take(&mut self.broken),
        });
    }
}

impl<K> Root<K> {
    pub(super) fn empty() -> Self {
        Self {
            entries: Tree::default(),
            indices: Arc::new(Vec::new()),
            first_revision: ResourceVersion::UNSET,
            revisions: Arc::default(),
            rollbacks: 0,
            broken: OrdMap::new(),
            broken_version: 0,
            wire_bytes: 0,
            counts: Arc::default(),
            generation: None,
            unread: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.broken.len()
    }

    /// Returns a filter that accepts all entries except broken ones, whose object can't be decoded.
    pub(super) fn is_shown(&self) -> impl Fn(&&Entry<K>) -> bool + use<K> {
        let are_all_live = self.broken.is_empty();
        move |entry| are_all_live || entry.is_live()
    }

    /// Returns the last state of an object that handlers have received. `entry` is the object's entry.
    ///
    /// If the stored object can't be decoded, this is the object's last valid state. Returns `None` if
    /// handlers have received no state.
    pub(super) fn told<'a>(
        &'a self,
        name: &ObjectName,
        entry: &'a Entry<K>,
    ) -> Option<&'a Object<K>> {
        match entry.object().broken() {
            None => Some(entry.object()),
            Some(_) => self.broken.get(name)?.as_ref(),
        }
    }

    /// Returns the number of entries of a source, including broken entries.
    pub(super) fn count(&self, source: SourceId) -> usize {
        self.counts.get(&source).copied().unwrap_or_default()
    }

    pub(super) fn revision(&self, source: SourceId) -> ResourceVersion {
        if source == SourceId::default() {
            return self.first_revision.clone();
        }
        self.revisions.get(&source).cloned().unwrap_or_default()
    }

    /// Records that the store contains all changes of a source up to `revision`.
    ///
    /// A revision that is older than the recorded one has no effect.
    pub(super) fn advance(&mut self, source: SourceId, revision: ResourceVersion) {
        let reached = if source == SourceId::default() {
            Some(&self.first_revision)
        } else {
            self.revisions.get(&source)
        };
        if !reached.is_some_and(|reached| revision.is_behind(reached)) {
            self.set_revision(source, revision);
        }
    }

    /// Sets the revision of a source, unless `revision` is unset.
    ///
    /// Counts a rollback if `revision` is lower than the previous revision, or if a restore of the server
    /// from a backup was detected between the two revisions.
    pub(super) fn set_revision(&mut self, source: SourceId, revision: ResourceVersion) {
        if revision.is_unset() {
            return;
        }
        let reached = if source == SourceId::default() {
            &mut self.first_revision
        } else {
            let revisions = Arc::make_mut(&mut self.revisions);
            revisions.entry(source).or_default()
        };
        let went_back = revision.epoch().rolled_back_since(reached.epoch());
        self.rollbacks += u64::from(went_back || revision < *reached);
        *reached = revision;
    }

    pub(super) fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        let entry = self.entries.get(name)?;
        Some((entry.source(), entry.object().clone()))
    }

    pub(super) fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        for (name, entry) in self.entries.iter() {
            visit(entry.source(), name, entry.object());
        }
    }

    /// Returns the position of an index in the field `indices`; `None` for the built-in index by namespace.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub(super) fn find(
        &self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Option<usize>, NoSuchIndex> {
        let found = self.indices.iter().position(|at| index.refers_to(&at.name));
        match found {
            Some(slot) => Ok(Some(slot)),
            None if index.index_name() == NAMESPACE => Ok(None),
            None => Err(index.not_found()),
        }
    }

    /// Returns the entries of one namespace from the bound `from` on, including broken entries.
    ///
    /// The empty namespace contains the cluster-scoped objects.
    pub(super) fn in_namespace<'a, 'n>(
        &'a self,
        namespace: &'n str,
        from: Bound<&ObjectName>,
    ) -> impl Iterator<Item = (&'a ObjectName, &'a Entry<K>)> + use<'a, 'n, K> {
        let first = ObjectName::new(Some(namespace), "");
        let from = match from {
            Included(name) | Excluded(name) if *name > first => from,
            _ => Included(&first),
        };
        let expected = Some(namespace).filter(|namespace| !namespace.is_empty());
        let entries = &self.entries;
        entries.range(from, move |name| name.namespace() == expected)
    }

    /// Returns the number of broken entries of one namespace.
    pub(super) fn broken_in(&self, namespace: &str) -> usize {
        let first = ObjectName::new(Some(namespace), "");
        let within = |name: &ObjectName| name.namespace().unwrap_or_default() == namespace;
        let names = self.broken.range(first..);
        names.take_while(|(name, _)| within(name)).count()
    }

    /// Sets the function `free`, which frees the large parts of this root and of later roots of the store.
    ///
    /// `free` is called when a root with at least 1,000 entries is dropped, if its generation has ended.
    pub(super) fn freed_by(&mut self, free: Free<K>) {
        self.generation = Some(Arc::new(Generation::new(free)));
    }

    /// Ends the current generation, which is the set of all roots since the last list.
    ///
    /// The writer calls this method before it applies a list, and when it is dropped.
    pub(super) fn end_generation(&mut self) {
        if let Some(generation) = &mut self.generation {
            *generation = Arc::new(generation.end());
        }
    }
}
