//! Defines [`Root`], which contains one state of a store: its objects, indices and revisions.
//!
//! The writer changes its own root. A reader's snapshot contains a clone of this root, and the clone never
//! changes. The module `store` changes the objects and indices of a root.

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

#[derive_where(Clone)]
pub(super) struct Root<K> {
    pub(super) entries: Tree<ObjectName, Entry<K>>,
    pub(super) indices: Arc<Vec<Index<K>>>,
    /// Revision that the store has reached for the default `SourceId`.
    ///
    /// Most informers have only this source. With this separate field, a write of the default source does not
    /// copy the map `revisions`.
    first_revision: ResourceVersion,
    /// Revisions that the store has reached for all sources except the default source.
    revisions: Arc<BTreeMap<SourceId, ResourceVersion>>,
    /// Number of revision decreases and detected backup restores, over all sources.
    pub(super) rollbacks: u64,
    /// Entries that can't be decoded, each with the last state that handlers have received, if any.
    pub(super) broken: OrdMap<ObjectName, Option<Object<K>>>,
    /// Number of times that the field `broken` has changed.
    pub(super) broken_version: u64,
    /// Number of bytes that the server sent for the stored objects.
    pub(super) wire_bytes: u64,
    /// Number of entries of each source, including entries that can't be decoded.
    pub(super) counts: Arc<BTreeMap<SourceId, usize>>,
    /// Determines whether the memory of a dropped root is freed in another task.
    ///
    /// All roots between two complete lists share one value. `None` in a store without an informer: the task
    /// that drops the root then frees the memory.
    generation: Option<Arc<Generation<K>>>,
    /// Number of objects that no read has decoded yet; `None` if the store does not decode on demand.
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

    /// Returns a filter that accepts all entries except those that can't be decoded.
    pub(super) fn is_shown(&self) -> impl Fn(&&Entry<K>) -> bool + use<K> {
        let are_all_live = self.broken.is_empty();
        move |entry| are_all_live || entry.is_live()
    }

    /// Returns the state that handlers last received for the object `name`, if any.
    ///
    /// Handlers do not receive a state that failed to decode. If the state in `entry` failed to decode, the
    /// result is therefore an earlier state.
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

    /// Returns the number of entries of a source, including entries that can't be decoded.
    pub(super) fn count(&self, source: SourceId) -> usize {
        self.counts.get(&source).copied().unwrap_or_default()
    }

    pub(super) fn revision(&self, source: SourceId) -> ResourceVersion {
        if source == SourceId::default() {
            return self.first_revision.clone();
        }
        self.revisions.get(&source).cloned().unwrap_or_default()
    }

    /// Sets the stored revision of `source` to `revision`, unless `revision` is older. A revision after a
    /// restore of the server never counts as older than a revision before the restore.
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

    /// Sets the stored revision of `source`, unless `revision` is unset.
    ///
    /// Increments `rollbacks` if `revision` is lower than the stored revision, or if a restore from a backup
    /// was detected between the two revisions.
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

    /// Returns the position of an index in `indices`, or `None` for the built-in index by namespace.
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

    /// Returns all entries of a namespace from the bound `from`; the empty namespace is cluster scope.
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

    pub(super) fn broken_in(&self, namespace: &str) -> usize {
        let first = ObjectName::new(Some(namespace), "");
        let within = |name: &ObjectName| name.namespace().unwrap_or_default() == namespace;
        let names = self.broken.range(first..);
        names.take_while(|(name, _)| within(name)).count()
    }

    /// Sets the function `free`, which frees the memory of large, outdated roots in another task.
    ///
    /// A root is one state of the store. A root is large if it has at least 1,000 entries. A root is outdated
    /// after the store has applied a newer complete list, or after the store's writer was dropped.
    pub(super) fn freed_by(&mut self, free: Free<K>) {
        self.generation = Some(Arc::new(Generation::new(free)));
    }

    /// Marks all existing clones of this root as outdated. If an outdated clone is large, its memory is freed
    /// in another task when the clone is dropped.
    pub(super) fn end_generation(&mut self) {
        if let Some(generation) = &mut self.generation {
            *generation = Arc::new(generation.end());
        }
    }
}
