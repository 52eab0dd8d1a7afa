//! Defines [`IndexerWriter`], the only writer of a store.
//!
//! The writer applies a whole batch to a private copy of the store's state, and then publishes the new state.
//! Readers see the state before or after the batch, never a state in between.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use kube_core::Resource;

use super::{
    build::IndexBuild,
    change::{Cause, Change},
    index::{DuplicateIndex, Index, IndexError, IndexRef, IndexToken, Indexers, NotRemovable},
    root::Root,
    snapshot::Snapshot,
};
use crate::{
    object::{
        Deleted, Epoch, Known, Nameless, Object, ObjectName, ResourceVersion, SourceId,
        UnreadCount, UnreadMoment,
    },
    offload::drop_offloaded,
    queue::{Batch, Replaced},
    reflector::DeltaKind,
};

/// The only writer of a store. The writer can't be cloned.
///
/// Each method publishes its changes to readers when the method ends. Readers see the state before or after
/// the call, never a state in between.
#[doc(alias = "TransactionStore")]
#[doc(alias = "ThreadSafeStoreWithTransaction")]
pub struct IndexerWriter<K> {
    pub(super) root: Root<K>,
    published: Arc<ArcSwap<Root<K>>>,
    /// Earlier roots that a list replaced, and that readers still use. The writer keeps each root until no
    /// reader uses that root, so that the writer, and not a reader, frees the replaced objects.
    replaced: Vec<Arc<Root<K>>>,
}

impl<K> fmt::Debug for IndexerWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// The result of [`IndexerWriter::apply`] for one batch: the changes for handlers, and the errors of index
/// functions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Applied<K> {
    /// The changes to deliver to handlers, in the order of the batch.
    pub changes: Vec<Change<K>>,
    /// Errors of index functions. If an index function fails for an object, the index does not contain the
    /// object.
    pub index_errors: Vec<IndexError>,
}

impl<K> IndexerWriter<K> {
    pub(super) fn new(root: Root<K>, published: Arc<ArcSwap<Root<K>>>) -> Self {
        Self {
            root,
            published,
            replaced: Vec::new(),
        }
    }

    /// Configures the store to free the memory of its old states on Tokio's blocking threads.
    pub(crate) fn freeing_offloaded(&mut self)
    where
        K: Send + Sync + 'static,
    {
        self.root.freed_by(drop_offloaded);
        self.publish();
    }

    /// Starts to count in `unread` the objects that are not decoded yet.
    ///
    /// Must be called while the store is empty.
    pub(crate) fn count_unread(&mut self, unread: &Arc<UnreadCount>) {
        let first = UnreadMoment::first(Arc::clone(unread));
        self.root.unread = Some(Arc::new(first));
        self.publish();
    }

    /// Keeps [`Snapshot::unread_count`] of all existing snapshots constant from now on. Later reads and
    /// changes only affect the count of the next snapshot.
    ///
    /// Must be called before the objects of the store change.
    fn begin(&mut self) {
        if let Some(moment) = &self.root.unread {
            self.root.unread = Some(Arc::new(moment.next()));
        }
    }

    /// Marks each named object as broken if a reader failed to decode the object. Returns whether any object
    /// was marked.
    pub(crate) fn find_broken(&mut self, names: &[ObjectName]) -> bool {
        self.begin();
        let mut found = false;
        for name in names {
            found |= self.root.find_broken(name);
        }
        self.publish();
        found
    }

    /// Returns the published state of the store, which readers see.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.published.load_full())
    }

    /// Applies the deltas of a batch from a queue in order, and then publishes the result to readers.
    ///
    /// If an index function fails for an object, the object is stored, and [`Applied::index_errors`] contains
    /// the error. A deletion has no effect if the store does not have the object, or has the object from
    /// another source ([`SourceId`]), for example another namespace of the informer.
    #[doc(alias = "Transaction")]
    pub fn apply(&mut self, batch: Batch<K>) -> Applied<K> {
        let initial = batch.in_initial_list;
        let mut applied = Applied {
            changes: Vec::with_capacity(batch.deltas.len() + 1),
            index_errors: Vec::new(),
        };
        self.begin();
        for delta in batch.deltas {
            let (source, errors) = (delta.source, &mut applied.index_errors);
            let mut put = |object, cause| self.root.put(source, object, cause, errors);
            let change = match delta.kind {
                DeltaKind::Added(object) | DeltaKind::Updated(object) => put(object, Cause::Watch),
                DeltaKind::Replaced(object) => put(object, Cause::Relist),
                DeltaKind::Sync(object) => put(object, Cause::Resync),
                DeltaKind::Deleted(deleted) => self.root.remove(source, deleted),
                DeltaKind::ReplacedAll { objects, revision } => {
                    let list = Replaced {
                        source,
                        objects,
                        revision,
                    };
                    Some(self.replace_all(list, initial, errors))
                }
                DeltaKind::SyncAll => {
                    Some(Change::Resync(Snapshot::new(Arc::new(self.root.clone()))))
                }
                DeltaKind::Bookmark { .. } => None,
            };
            applied
                .changes
                .extend(change.map(|change| change.flagged(initial)));
        }
        for (source, revision) in batch.reached {
            self.root.advance(source, revision);
        }
        applied.changes.extend(batch.completes.map(Change::Listed));
        let lists = |change: &Change<K>| matches!(change, Change::Replaced { .. });
        if applied.changes.iter().any(lists) {
            self.publish_list();
        } else {
            self.publish();
        }
        applied
    }

    /// Adds or updates one object. Sets the store's revision to the object's revision, if the object has one.
    /// Returns the change.
    ///
    /// # Errors
    /// Returns an error if the object has no name.
    #[doc(alias = "Update")]
    #[doc(alias = "Add")]
    pub fn add(&mut self, object: K) -> Result<Option<Change<K>>, Nameless<K>>
    where
        K: Resource,
    {
        let object = Object::new(object)?;
        self.begin();
        self.root
            .set_revision(SourceId::default(), object.revision().clone());
        let change = self
            .root
            .put(SourceId::default(), object, Cause::Watch, &mut Vec::new());
        self.publish();
        Ok(change)
    }

    /// Removes one object of the default source ([`SourceId`]). Returns the deletion for handlers.
    ///
    /// The deletion contains the last valid state of the object. Returns `None` if no such object exists, or
    /// if every state of the object failed to decode. The store's revision does not change.
    #[doc(alias = "Delete")]
    #[doc(alias = "DeleteWithObject")]
    pub fn delete(&mut self, name: &ObjectName) -> Option<Change<K>> {
        let deleted = Deleted::FinalStateUnknown {
            name: name.clone(),
            last_known: None,
        };
        self.begin();
        let change = self.root.remove(SourceId::default(), deleted);
        self.publish();
        change
    }

    /// Replaces all objects of the store, and sets the store's revision.
    ///
    /// Each object is stored, even if the store already has the same object at the same revision. If several
    /// objects have the same name, the last one is stored.
    ///
    /// # Errors
    /// Returns an error if an object has no name. The store is then unchanged.
    #[doc(alias = "Replace")]
    pub fn replace(
        &mut self,
        objects: impl IntoIterator<Item = K>,
        revision: impl Into<ResourceVersion>,
    ) -> Result<(), Nameless<K>>
    where
        K: Resource,
    {
        let objects: Result<Vec<_>, _> = objects.into_iter().map(Object::new).collect();
        let list = Replaced {
            source: SourceId::default(),
            objects: objects?,
            revision: revision.into(),
        };
        self.begin();
        self.root.replace(list, false, &mut Vec::new());
        self.publish_list();
        Ok(())
    }

    /// Adds indices to the store, and fills the indices with the store's objects.
    ///
    /// If an index function fails for an object, the index omits the object. On success, this method returns
    /// all these failures as [`IndexError`] values.
    ///
    /// # Errors
    /// Returns an error if an index with one of these names exists. In this case, no index is added.
    #[doc(alias = "AddIndexers")]
    pub fn add_indexers(
        &mut self,
        indexers: Indexers<K>,
    ) -> Result<Vec<IndexError>, DuplicateIndex> {
        let build = IndexBuild::new(indexers, &self.snapshot())?;
        Ok(self.install(build)?.1)
    }

    /// Adds indices that were built from an earlier snapshot, and updates these indices to the current
    /// objects.
    ///
    /// # Errors
    /// Returns an error, and adds no index, if an index with one of these names exists.
    pub(crate) fn install(
        &mut self,
        build: IndexBuild<K>,
    ) -> Result<(Vec<IndexToken>, Vec<IndexError>), DuplicateIndex> {
        self.root.check_names(build.names())?;
        let (mut indices, errors) = build.finish(&self.root);
        let tokens = indices.iter().map(Index::token).collect();
        Arc::make_mut(&mut self.root.indices).append(&mut indices);
        self.publish();
        Ok((tokens, errors))
    }

    /// Removes an index. Snapshots that were created before still have the index.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index, or if the index is the built-in
    /// [`NAMESPACE`](super::NAMESPACE).
    pub fn remove_index(&mut self, index: &(impl IndexRef + ?Sized)) -> Result<(), NotRemovable> {
        self.take_index(index).map(drop)
    }

    /// Removes and returns an index, which the caller can free on another thread.
    ///
    /// # Errors
    /// Returns an error if the index is not in this store or is the built-in [`NAMESPACE`](super::NAMESPACE).
    pub(crate) fn take_index(
        &mut self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Index<K>, NotRemovable> {
        let removed = self.root.remove_index(index)?;
        self.publish();
        Ok(removed)
    }

    /// Adds the objects that the user passed to `InformerBuilder::known_objects`.
    ///
    /// Handlers receive no events for these additions. The first list replaces the objects.
    ///
    /// Must be called before any other change.
    pub(crate) fn put_known(&mut self, known: Vec<Object<K>>) {
        self.begin();
        for object in known {
            let object = object.in_epoch(Epoch::NONE);
            self.root
                .put(SourceId::default(), object, Cause::Relist, &mut Vec::new());
        }
        self.publish();
    }

    fn replace_all(
        &mut self,
        list: Replaced<K>,
        in_initial_list: bool,
        errors: &mut Vec<IndexError>,
    ) -> Change<K> {
        let old = Snapshot::new(Arc::new(self.root.clone()));
        self.root.end_generation();
        let changed = self.root.replace(list, true, errors);
        Change::Replaced {
            old,
            new: Snapshot::new(Arc::new(self.root.clone())),
            changed: Arc::new(changed),
            in_initial_list,
        }
    }

    fn publish(&mut self) {
        self.replaced.retain(|root| Arc::strong_count(root) > 1);
        self.published.store(Arc::new(self.root.clone()));
    }

    fn publish_list(&mut self) {
        let before = self.published.load_full();
        self.publish();
        if Arc::strong_count(&before) > 1 {
            self.replaced.push(before);
        }
    }
}

impl<K> Drop for IndexerWriter<K> {
    fn drop(&mut self) {
        // Without a writer, the last snapshot or reader frees the whole store.
        self.root.end_generation();
    }
}

impl<K> Known<K> for IndexerWriter<K> {
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        self.root.known(name)
    }

    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        self.root.for_each(visit);
    }
}
