//! [`IndexerWriter`]: the one that changes a store. Every change is swapped in whole.

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

/// The writing end of a store. There is one.
///
/// Every method swaps in its result at its end: readers see it whole.
#[doc(alias = "TransactionStore")]
#[doc(alias = "ThreadSafeStoreWithTransaction")]
pub struct IndexerWriter<K> {
    pub(super) root: Root<K>,
    published: Arc<ArcSwap<Root<K>>>,
    /// What lists have replaced while readers were looking at it. Whoever lets go of such a root last
    /// frees a whole store, which takes many times as long as a `get`; so that is never a reader.
    replaced: Vec<Arc<Root<K>>>,
}

impl<K> fmt::Debug for IndexerWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// What applying a batch has brought about.
#[derive(Debug)]
#[non_exhaustive]
pub struct Applied<K> {
    /// What changed for whoever listens, in order.
    pub changes: Vec<Change<K>>,
    /// The objects that an index function could not place, and are missing from that index.
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

    /// Has old states of the store freed away from the tasks that drop them, wherever that takes long.
    pub(crate) fn freeing_offloaded(&mut self)
    where
        K: Send + Sync + 'static,
    {
        self.root.freed_by(drop_offloaded);
        self.publish();
    }

    /// Has its snapshots say how many of their objects have not been decoded, by this count, for objects
    /// that are decoded on demand. The store is empty.
    pub(crate) fn count_unread(&mut self, unread: &Arc<UnreadCount>) {
        let first = UnreadMoment::first(Arc::clone(unread));
        self.root.unread = Some(Arc::new(first));
        self.publish();
    }

    /// Ends the moment that readers see, before the first change of the next one.
    fn begin(&mut self) {
        if let Some(moment) = &self.root.unread {
            self.root.unread = Some(Arc::new(moment.next()));
        }
    }

    /// Moves objects among the broken ones whose bodies were decoded in vain; whether there were any.
    pub(crate) fn find_broken(&mut self, names: &[ObjectName]) -> bool {
        self.begin();
        let mut found = false;
        for name in names {
            found |= self.root.find_broken(name);
        }
        self.publish();
        found
    }

    /// What readers see now.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.published.load_full())
    }

    /// Applies what a queue handed out, delta by delta; readers see all of it or nothing.
    ///
    /// It can't fail: an object that an index function can't place is stored all the same, and
    /// reported. A deletion of what the store does not have, or has from another source, changes
    /// nothing.
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

    /// Adds or updates one object; the store's revision is then that of the object, if it has one.
    ///
    /// # Errors
    /// The object has no name.
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

    /// Removes one object; `None` if there was none. What comes back has the state that was in the
    /// store. The store's revision stays as it is, for a name says none.
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

    /// Makes the store hold exactly these objects, and sets its revision. Each is taken as it is given,
    /// also at a revision that the store has; of a name that comes twice the last one stays.
    ///
    /// # Errors
    /// One of them has no name. Nothing has changed then.
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

    /// Adds indices, also when there are objects already. Returns what could not be placed.
    ///
    /// # Errors
    /// An index of one of these names exists; none is added then.
    #[doc(alias = "AddIndexers")]
    pub fn add_indexers(
        &mut self,
        indexers: Indexers<K>,
    ) -> Result<Vec<IndexError>, DuplicateIndex> {
        let build = IndexBuild::new(indexers, &self.snapshot())?;
        Ok(self.install(build)?.1)
    }

    /// Adds indices that were filled elsewhere, after they have caught up with the store.
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

    /// Removes an index. Snapshots that were taken before have it still.
    ///
    /// # Errors
    /// There is no such index, or it is [`NAMESPACE`](super::NAMESPACE).
    pub fn remove_index(&mut self, index: &(impl IndexRef + ?Sized)) -> Result<(), NotRemovable> {
        self.take_index(index).map(drop)
    }

    /// Removes an index and lets go of it, so that who asked may pay for freeing it.
    pub(crate) fn take_index(
        &mut self,
        index: &(impl IndexRef + ?Sized),
    ) -> Result<Index<K>, NotRemovable> {
        let removed = self.root.remove_index(index)?;
        self.publish();
        Ok(removed)
    }

    /// Takes what was known before anything has been heard: nobody is told, and no revision is
    /// reached by it. The first list is believed whatever its revisions, for who knew these is not known.
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
        // From now on whoever drops the last snapshot, or the last reader, frees the whole store.
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
