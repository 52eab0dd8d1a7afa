//! [`Snapshot`]: objects and indices of one moment.

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

/// A store of one moment: immutable, `'static`, without a lock.
///
/// Objects come in the order of namespace and name. Broken ones (see [`Object::broken`]) are left
/// out of iteration, counts and indices; [`Snapshot::get`] finds them, and [`Snapshot::broken`] lists
/// them.
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

    /// The object of this name, also if it is broken.
    #[doc(alias = "GetByKey")]
    pub fn get(&self, name: &ObjectName) -> Option<&Object<K>> {
        self.root.entries.get(name).map(Entry::object)
    }

    /// All objects, in order.
    #[doc(alias = "List")]
    #[doc(alias = "ListKeys")]
    pub fn iter(&self) -> impl Iterator<Item = &Object<K>> {
        let entries = self.root.entries.values();
        entries.filter(self.root.is_shown()).map(Entry::object)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.root.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that have no usable state, with the reason.
    pub fn broken(&self) -> impl Iterator<Item = (&ObjectName, &DecodeError)> {
        let names = self.root.broken.keys();
        names.filter_map(|name| Some((name, self.get(name)?.broken()?)))
    }

    /// How many of them there are.
    pub fn broken_count(&self) -> usize {
        self.root.broken.len()
    }

    /// How many of them are in this namespace; cluster-scoped objects are in `""`.
    ///
    /// A controller that deletes what is missing from a list must look: the list leaves broken objects out.
    pub fn broken_in(&self, namespace: &str) -> usize {
        self.root.broken_in(namespace)
    }

    /// How many of its objects have not been decoded, so that it is not known whether they are broken. Always
    /// 0 of a cache that is neither packed nor lazy: it decodes each object when it comes.
    ///
    /// It falls while objects are read, for as long as the cache does not change; then it stays as it is, and
    /// may be too high, but is never too low. It is counted, and takes as long for a million objects as for
    /// one.
    pub fn unread_count(&self) -> usize {
        let unread = self.root.unread.as_ref();
        unread.map_or(0, |unread| unread.count())
    }

    /// Another number whenever other objects are broken, or others for another reason.
    pub(crate) fn broken_version(&self) -> u64 {
        self.root.broken_version
    }

    /// The objects of one namespace.
    #[doc(alias = "ListAllByNamespace")]
    pub fn namespace(&self, namespace: &str) -> NamespaceSnapshot<'_, K> {
        NamespaceSnapshot {
            snapshot: self,
            namespace: namespace.to_owned(),
        }
    }

    /// Up to which revision everything that the first source told is in here; unset before its first
    /// list.
    #[doc(alias = "LastStoreSyncResourceVersion")]
    pub fn revision(&self) -> ResourceVersion {
        self.root.revision(SourceId::default())
    }

    /// The same for one of several sources.
    pub fn source_revision(&self, source: SourceId) -> ResourceVersion {
        self.root.revision(source)
    }

    /// How often the revision of a source has gone backwards, or was seen to have before it came on as
    /// far again, as after the restore of a backup.
    pub(crate) fn rollbacks(&self) -> u64 {
        self.root.rollbacks
    }

    /// The objects that an index has under a value, in order.
    ///
    /// # Errors
    /// There is no such index.
    #[doc(alias = "ByIndex")]
    pub fn by_index<'a>(
        &'a self,
        index: &(impl IndexRef + ?Sized),
        value: &'a str,
    ) -> Result<Box<dyn Iterator<Item = &'a Object<K>> + 'a>, NoSuchIndex> {
        Ok(match self.find(index)? {
            None => Box::new(self.in_namespace(value)),
            Some(index) => Box::new(index.placed.names(value).filter_map(|name| self.get(name))),
        })
    }

    /// The names of the objects that an index has under a value, in order.
    ///
    /// # Errors
    /// There is no such index.
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
            Some(index) => index.placed.names(value).cloned().collect(),
        })
    }

    /// The objects that share a value of an index with this one, in order, each once. The object
    /// itself need not be in the store.
    ///
    /// # Errors
    /// There is no such index.
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
        // An object that the function can't place shares no value with any other.
        let values = index.ask(object).unwrap_or_default();
        let mut names: Vec<&ObjectName> = values
            .iter()
            .flat_map(|value| index.placed.names(value))
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

    /// The values of an index that an object has, which need not be in the store; none if the function
    /// can't place it.
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

    /// The values that an index has, in order, each once.
    ///
    /// # Errors
    /// There is no such index.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn index_values(
        &self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Vec<Arc<str>>, NoSuchIndex> {
        if let Some(index) = self.find(index)? {
            return Ok(index.placed.all_values());
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

    /// The token of an index, which goes on meaning this very index.
    ///
    /// # Errors
    /// There is no index of this name, or it is [`NAMESPACE`], which needs none.
    pub fn index_token(&self, name: &str) -> Result<IndexToken, NoSuchIndex> {
        let index = self.find(name)?.ok_or_else(|| name.not_found())?;
        Ok(index.token())
    }

    /// The names of all indices.
    #[doc(alias = "GetIndexers")]
    pub fn index_names(&self) -> Vec<Arc<str>> {
        let own = self
            .root
            .indices
            .iter()
            .map(|index| Arc::clone(&index.name));
        own.chain([Arc::from(NAMESPACE)]).collect()
    }

    /// How large it is. Goes through the objects and each index once.
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

    /// Whether a source has brought more than so many objects, usable or not, and not this one.
    pub(crate) fn is_full(&self, source: SourceId, name: &ObjectName, limit: usize) -> bool {
        let is_its_own = || matches!(self.entry(name), Some((by, _)) if by == source);
        self.root.count(source) > limit && !is_its_own()
    }

    /// What is kept under a name, also if it is broken, with the source that brought it.
    pub(crate) fn entry(&self, name: &ObjectName) -> Option<(SourceId, &Object<K>)> {
        let entry = self.root.entries.get(name)?;
        Some((entry.source(), entry.object()))
    }

    /// Everything that is kept, also what is broken, with the source that brought it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (SourceId, &Object<K>)> {
        let entries = self.root.entries.values();
        entries.map(|entry| (entry.source(), entry.object()))
    }

    /// The first object behind a name; the very first without one. Lets a reader go through a
    /// snapshot with pauses of any length.
    pub(crate) fn after(&self, name: Option<&ObjectName>) -> Option<&Object<K>> {
        let mut entries = self.behind(name);
        let (_, entry) = entries.find(|(_, entry)| entry.is_live())?;
        Some(entry.object())
    }

    /// The first object behind a name of which handlers have been told, as they were told it.
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

    /// What handlers have been told of an object.
    pub(crate) fn told(&self, name: &ObjectName) -> Option<&Object<K>> {
        self.root.told(name, self.root.entries.get(name)?)
    }

    /// `None` for the index by namespace, which has no data of its own.
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

/// The objects of one namespace, of one moment.
pub struct NamespaceSnapshot<'a, K> {
    snapshot: &'a Snapshot<K>,
    namespace: String,
}

impl<K> NamespaceSnapshot<'_, K> {
    /// All objects of the namespace, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Object<K>> {
        self.snapshot.in_namespace(&self.namespace)
    }

    /// The object of this name, also if it is broken.
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
