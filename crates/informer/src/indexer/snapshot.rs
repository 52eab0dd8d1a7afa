//! Defines [`Snapshot`], which contains the objects and indices of a store at one point in time, for readers.
//!
//! A snapshot never changes, and reading it takes no lock. This module does not change a store. The modules
//! `store` and `writer` do.

use std::{fmt, ops::Bound, sync::Arc};

use super::{
    entry::Entry,
    index::{Index, IndexRef, IndexToken, NAMESPACE, NoSuchIndex},
    root::Root,
};
use crate::{
    metrics::StoreSample,
    object::{DecodeError, Known, Object, ObjectName, ResourceVersion, SourceId},
};
use derive_where::derive_where;

/// The objects and indices of a store at one point in time. A snapshot never changes and is cheap to clone.
///
/// A snapshot owns its content (`'static`) and is read without a lock. Objects are ordered by namespace and
/// name. Broken objects, which failed to decode (see [`Object::broken`]), are excluded from iteration, counts
/// and indices. [`Snapshot::get`] also returns broken objects, and [`Snapshot::broken`] lists them.
///
/// ```compile_fail,E0594
/// # use kube_informer::indexer::Snapshot;
/// # use k8s_openapi::api::core::v1::Pod;
/// fn change(snapshot: &Snapshot<Pod>) {
///     let pod = snapshot.iter().next().unwrap().get().unwrap();
///     pod.status = None; // shared with the cache and every other reader
/// }
/// ```
#[derive_where(Clone)]
pub struct Snapshot<K> {
    root: Arc<Root<K>>,
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.root.entries.values().map(Entry::object))
            .finish()
    }
}

impl<K> Snapshot<K> {
    pub(super) fn new(root: Arc<Root<K>>) -> Self {
        Self { root }
    }

    /// Returns the object with this name, even if the object failed to decode. Returns `None` if the snapshot
    /// does not contain the object.
    #[doc(alias = "GetByKey")]
    pub fn get(&self, name: &ObjectName) -> Option<&Object<K>> {
        self.root.entries.get(name).map(Entry::object)
    }

    /// Returns all objects, ordered by namespace and name. Objects that failed to decode are omitted.
    #[doc(alias = "List")]
    #[doc(alias = "ListKeys")]
    pub fn iter(&self) -> impl Iterator<Item = &Object<K>> {
        let entries = self.root.entries.values();
        entries.filter(self.root.is_shown()).map(Entry::object)
    }

    /// Returns the number of objects, excluding those that failed to decode.
    pub fn len(&self) -> usize {
        self.root.len()
    }

    /// Returns whether the snapshot has no objects, or only objects that failed to decode.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the names and decode errors of the broken objects, which are those that failed to decode.
    pub fn broken(&self) -> impl Iterator<Item = (&ObjectName, &DecodeError)> {
        let names = self.root.broken.keys();
        names.filter_map(|name| Some((name, self.get(name)?.broken()?)))
    }

    /// Returns the number of broken objects, which are those that failed to decode.
    pub fn broken_count(&self) -> usize {
        self.root.broken.len()
    }

    /// Returns the number of objects in one namespace that failed to decode. The namespace `""` contains the
    /// cluster-scoped objects.
    ///
    /// [`iter`](Self::iter) omits these objects, although they may exist on the server. A controller that
    /// deletes resources because an object is missing must first check that this number is zero.
    pub fn broken_in(&self, namespace: &str) -> usize {
        self.root.broken_in(namespace)
    }

    /// Returns the number of objects whose content has not been decoded yet. Decoding may still fail for
    /// these objects.
    ///
    /// Only a cache with the informer option `packed` or `lazy` decodes an object on the first read. In other
    /// caches, the number is always 0. In the store's newest snapshot, the number decreases when an object is
    /// read for the first time. In older snapshots, the number no longer changes. The call takes constant
    /// time.
    pub fn unread_count(&self) -> usize {
        let unread = self.root.unread.as_ref();
        unread.map_or(0, |unread| unread.count())
    }

    /// Returns a number that increases when an object that failed to decode is stored, replaced or removed.
    pub(crate) fn broken_version(&self) -> u64 {
        self.root.broken_version
    }

    /// Returns a view of the objects in one namespace. `""` selects the cluster-scoped objects.
    #[doc(alias = "ListAllByNamespace")]
    pub fn namespace(&self, namespace: &str) -> NamespaceSnapshot<'_, K> {
        NamespaceSnapshot {
            snapshot: self,
            namespace: namespace.to_owned(),
        }
    }

    /// Returns the revision up to which the snapshot contains all changes of the informer's first source.
    ///
    /// A source is one list and watch. Most informers have one source. The revision is unset before the first
    /// list of the source.
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn revision(&self) -> ResourceVersion {
        self.root.revision(SourceId::default())
    }

    /// Returns the revision up to which the snapshot contains all changes of the given source.
    ///
    /// A source is one list and watch of the informer. The revision is unset before the first list of the
    /// source.
    pub fn source_revision(&self, source: SourceId) -> ResourceVersion {
        self.root.revision(source)
    }

    /// Returns the number of rollbacks of all sources, which never decreases.
    ///
    /// A rollback is a decrease of a source's revision, or a detected restore of the server from a backup.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.root.rollbacks
    }

    /// Returns the objects that have this value in an index, ordered by namespace and name.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    #[doc(alias = "ByIndex")]
    pub fn by_index<'a>(
        &'a self,
        index: &(impl IndexRef + ?Sized),
        value: &'a str,
    ) -> Result<Box<dyn Iterator<Item = &'a Object<K>> + 'a>, NoSuchIndex> {
        Ok(match self.find(index)? {
            None => Box::new(self.in_namespace(value)),
            Some(index) => Box::new(
                index
                    .postings
                    .names(value)
                    .filter_map(|name| self.get(name)),
            ),
        })
    }

    /// Returns the names of the objects that have this value in an index, ordered by namespace and name.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    #[doc(alias = "IndexKeys")]
    pub fn index_keys(
        &self,
        index: &(impl IndexRef + ?Sized),
        value: &str,
    ) -> Result<Vec<ObjectName>, NoSuchIndex> {
        Ok(match self.find(index)? {
            None => self
                .in_namespace(value)
                .map(|object| object.object_name().clone())
                .collect(),
            Some(index) => index.postings.names(value).cloned().collect(),
        })
    }

    /// Returns the objects that share at least one value with `object` in an index, ordered by namespace and
    /// name. Each object is returned once. The store need not contain `object`.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    #[doc(alias = "Index")]
    pub fn index(
        &self,
        index: &(impl IndexRef + ?Sized),
        object: &Object<K>,
    ) -> Result<Vec<&Object<K>>, NoSuchIndex> {
        let Some(index) = self.find(index)? else {
            return Ok(self
                .in_namespace(object.namespace().unwrap_or_default())
                .collect());
        };
        // If the function fails for the object, it shares no value with others.
        let values = index.ask(object).unwrap_or_default();
        let mut names: Vec<&ObjectName> = values
            .iter()
            .flat_map(|value| index.postings.names(value))
            .collect();
        if values.len() > 1 {
            names.sort_unstable();
            names.dedup();
        }
        Ok(names
            .into_iter()
            .filter_map(|name| self.get(name))
            .collect())
    }

    /// Returns the values of `object` in an index, or no values if the index function fails.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    pub(crate) fn values_of(
        &self,
        index: &(impl IndexRef + ?Sized),
        object: &Object<K>,
    ) -> Result<Vec<Arc<str>>, NoSuchIndex> {
        Ok(match self.find(index)? {
            None => vec![Arc::from(object.namespace().unwrap_or_default())],
            Some(index) => index.ask(object).unwrap_or_default().to_vec(),
        })
    }

    /// Returns all values that objects have in an index, sorted and without duplicates.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(
        &self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Vec<Arc<str>>, NoSuchIndex> {
        if let Some(index) = self.find(index)? {
            return Ok(index.postings.all_values());
        }
        let mut values: Vec<Arc<str>> = Vec::new();
        for object in self.iter() {
            let namespace = object.namespace().unwrap_or_default();
            if values.last().is_none_or(|last| **last != *namespace) {
                values.push(Arc::from(namespace));
            }
        }
        Ok(values)
    }

    /// Returns a token that identifies the index with this name. If this index is removed, the token does not
    /// identify a new index with the same name.
    ///
    /// # Errors
    /// Returns an error if there is no index with this name, or if the name is [`NAMESPACE`]. The built-in
    /// index by namespace has no token.
    pub fn index_token(&self, name: &str) -> Result<IndexToken, NoSuchIndex> {
        let index = self.find(name)?.ok_or_else(|| name.not_found())?;
        Ok(index.token())
    }

    /// Returns the names of all indices, including the built-in [`NAMESPACE`].
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> Vec<Arc<str>> {
        let own = self
            .root
            .indices
            .iter()
            .map(|index| Arc::clone(&index.name));
        own.chain([Arc::from(NAMESPACE)]).collect()
    }

    /// Returns the sizes of the store and its indices. The cost is linear in the number of entries.
    pub(crate) fn size(&self) -> StoreSample {
        let objects = || self.root.entries.values().map(Entry::object);
        let shared = objects().find_map(Object::shared_bytes);
        StoreSample {
            items: self.len(),
            wire_bytes: self.root.wire_bytes,
            rest_bytes: objects().map(Object::rest_bytes).sum(),
            dictionary_bytes: shared.unwrap_or_default(),
            revision: self.revision(),
            indices: self.root.indices.iter().map(Index::size).collect(),
        }
    }

    /// Returns whether the snapshot has more than `limit` objects of `source`, and `name` is not one of them.
    /// Objects that failed to decode are counted too.
    pub(crate) fn is_full(&self, source: SourceId, name: &ObjectName, limit: usize) -> bool {
        let is_its_own = || matches!(self.entry(name), Some((by, _)) if by == source);
        self.root.count(source) > limit && !is_its_own()
    }

    /// Returns the object `name` and the object's source, even if the object failed to decode.
    pub(crate) fn entry(&self, name: &ObjectName) -> Option<(SourceId, &Object<K>)> {
        let entry = self.root.entries.get(name)?;
        Some((entry.source(), entry.object()))
    }

    /// Returns all objects with their sources, including objects that failed to decode.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (SourceId, &Object<K>)> {
        let entries = self.root.entries.values();
        entries.map(|entry| (entry.source(), entry.object()))
    }

    /// Returns the first object after `name`. `None` starts at the first object. Skips broken objects.
    pub(crate) fn after(&self, name: Option<&ObjectName>) -> Option<&Object<K>> {
        let mut entries = self.behind(name);
        let (_, entry) = entries.find(|(_, entry)| entry.is_live())?;
        Some(entry.object())
    }

    /// Returns the first object after `name` that handlers have received. `None` starts at the first object.
    ///
    /// If the current state failed to decode, returns the last state that handlers received.
    pub(crate) fn told_after(&self, name: Option<&ObjectName>) -> Option<&Object<K>> {
        let mut entries = self.behind(name);
        entries.find_map(|(name, entry)| self.root.told(name, entry))
    }

    fn behind(
        &self,
        name: Option<&ObjectName>,
    ) -> impl Iterator<Item = (&ObjectName, &Entry<K>)> + use<'_, K> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.root.entries.range(from, |_| true)
    }

    /// Returns the state that handlers last received for the object `name`.
    ///
    /// Returns `None` if handlers have not received the object, or if the object is not in the snapshot.
    pub(crate) fn told(&self, name: &ObjectName) -> Option<&Object<K>> {
        self.root.told(name, self.root.entries.get(name)?)
    }

    /// Returns the data of an index, or `None` for the built-in index by namespace.
    fn find(&self, index: &(impl IndexRef + ?Sized)) -> Result<Option<&Index<K>>, NoSuchIndex> {
        let slot = self.root.find(index)?;
        Ok(slot.map(|slot| &self.root.indices[slot]))
    }

    pub(super) fn root(&self) -> &Root<K> {
        &self.root
    }

    fn in_namespace<'a, 'n>(
        &'a self,
        namespace: &'n str,
    ) -> impl Iterator<Item = &'a Object<K>> + use<'a, 'n, K> {
        self.root
            .in_namespace(namespace, Bound::Unbounded)
            .map(|(_, entry)| entry)
            .filter(self.root.is_shown())
            .map(Entry::object)
    }
}

impl<K> Known<K> for Snapshot<K> {
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        self.root.known(name)
    }

    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        self.root.for_each(visit);
    }
}

/// A view of the objects of one namespace in a [`Snapshot`]. The empty namespace contains the cluster-scoped
/// objects.
pub struct NamespaceSnapshot<'a, K> {
    snapshot: &'a Snapshot<K>,
    namespace: String,
}

impl<K> NamespaceSnapshot<'_, K> {
    /// Returns the objects of the namespace, ordered by name. Objects that failed to decode are omitted.
    pub fn iter(&self) -> impl Iterator<Item = &Object<K>> {
        self.snapshot.in_namespace(&self.namespace)
    }

    /// Returns the object with this name in the namespace, even if the object failed to decode.
    pub fn get(&self, name: &str) -> Option<&Object<K>> {
        self.snapshot
            .get(&ObjectName::new(Some(&self.namespace), name))
    }
}

impl<K> fmt::Debug for NamespaceSnapshot<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
