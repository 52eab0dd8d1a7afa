//! [`IndexerWriter`]: the only writer of a store. Readers see every change as a whole.

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

/// The only writer of a store; it can't be cloned.
///
/// Readers see the result of each method as a whole, at its end.
#[doc(alias = "TransactionStore")]
#[doc(alias = "ThreadSafeStoreWithTransaction")]
pub struct IndexerWriter<K> {
    pub(super) root: Root<K>,
    published: Arc<ArcSwap<Root<K>>>,
    /// Roots replaced by lists while readers held them. The last owner of such a root frees a whole store,
    /// which takes many times as long as a `get`; keeping it here ensures that it is never a reader.
    replaced: Vec<Arc<Root<K>>>,
}

impl<K> fmt::Debug for IndexerWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// The result of [`IndexerWriter::apply`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Applied<K> {
    /// The changes for handlers, in order.
    pub changes: Vec<Change<K>>,
    /// Errors of index functions; these objects are missing from the index.
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

    /// Lets large old states of the store be freed on the pool for blocking work, from now on.
    pub(crate) fn freeing_offloaded(&mut self)
    where
        K: Send + Sync + 'static,
    {
        self.root.freed_by(drop_offloaded);
        self.publish();
    }

    /// Sets the counter of objects that have not been decoded, for objects that are decoded on demand. The
    /// store must be empty.
    pub(crate) fn count_unread(&mut self, unread: &Arc<UnreadCount>) {
        let first = UnreadMoment::first(Arc::clone(unread));
        self.root.unread = Some(Arc::new(first));
        self.publish();
    }

    /// Prepares the next state of the store. Called before the first change of each state.
    fn begin(&mut self) {
        if let Some(moment) = &self.root.unread {
            self.root.unread = Some(Arc::new(moment.next()));
        }
    }

    /// Marks objects as broken that failed to decode when they were read; returns whether there were any.
    pub(crate) fn find_broken(&mut self, names: &[ObjectName]) -> bool {
        self.begin();
        let mut found = false;
        for name in names {
            found |= self.root.find_broken(name);
        }
        self.publish();
        found
    }

    /// Returns the state that readers see.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.published.load_full())
    }

    /// Applies a batch from a queue, delta by delta; readers see all of it or nothing.
    ///
    /// It can't fail: an object for which an index function fails is stored and reported. A deletion of an
    /// object that the store does not have, or has from another source, has no effect.
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

    /// Adds or updates one object; the store takes the object's revision, if it has one.
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

    /// Removes one object; `None` if there was none.
    ///
    /// The change contains the stored state. The store's revision does not change.
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

    /// Replaces all objects, and sets the store's revision.
    ///
    /// Each object is stored, even at a revision that the store already has. Of several objects with one name
    /// the last is stored.
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

    /// Adds indices, also to a store with objects. Returns the errors of index functions.
    ///
    /// # Errors
    /// Returns an error if an index with one of these names exists. No index is then added.
    #[doc(alias = "AddIndexers")]
    pub fn add_indexers(
        &mut self,
        indexers: Indexers<K>,
    ) -> Result<Vec<IndexError>, DuplicateIndex> {
        let build = IndexBuild::new(indexers, &self.snapshot())?;
        Ok(self.install(build)?.1)
    }

    /// Adds indices that another task has filled, after indexing the objects that have changed since then.
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

    /// Removes an index. Earlier snapshots keep it.
    ///
    /// # Errors
    /// Returns an error if the store does not have this index, or it is [`NAMESPACE`](super::NAMESPACE).
    pub fn remove_index(&mut self, index: &(impl IndexRef + ?Sized)) -> Result<(), NotRemovable> {
        self.take_index(index).map(drop)
    }

    /// Removes an index and returns it, so that the caller frees it.
    pub(crate) fn take_index(
        &mut self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Index<K>, NotRemovable> {
        let removed = self.root.remove_index(index)?;
        self.publish();
        Ok(removed)
    }

    /// Loads objects of a saved store, before any other change. No change is reported, and no revision is
    /// reached. The first list is applied whatever its revisions, because these objects' origin is not
    /// verified.
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
