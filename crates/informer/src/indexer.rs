//! The cache: a store of objects with named indices, one writer and any number of readers.
//!
//! A reader takes a [`Snapshot`]: objects and indices of one moment, that hold no lock and don't
//! change. The writer applies a batch and swaps one root, so a reader sees all of a batch or nothing
//! of it, and nobody waits for anybody.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_core::{ObjectMeta, ResourceExt};
//! use kube_informer::indexer::{self, Indexers};
//!
//! let by_app = Indexers::new().with("app", |pod: &Pod| pod.labels().get("app").cloned());
//! let (indexer, mut writer) = indexer::new(by_app)?;
//! let pod = |namespace: &str, name: &str, app: &str| Pod {
//!     metadata: ObjectMeta {
//!         namespace: Some(namespace.into()),
//!         name: Some(name.into()),
//!         labels: Some([("app".into(), app.into())].into()),
//!         ..ObjectMeta::default()
//!     },
//!     ..Pod::default()
//! };
//! writer.add(pod("ns1", "pod1", "l1"))?;
//! writer.add(pod("ns2", "pod2", "l2"))?;
//! assert_eq!(format!("{:?}", indexer.index_keys("app", "l1")?), "[ns1/pod1]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod change;
mod feed;
mod index;
mod snapshot;
mod store;

pub use self::{
    change::{Cause, Change, Changed},
    feed::IndexerFeed,
    index::{DuplicateIndex, IndexError, IndexRef, IndexToken, Indexers, NAMESPACE, NoSuchIndex},
    snapshot::{NamespaceSnapshot, Snapshot},
};

pub(crate) use self::feed::StatusNotes;

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use kube_core::Resource;

use self::store::Root;
use crate::{
    object::{Deleted, Known, Nameless, Object, ObjectName, ResourceVersion, SourceId},
    queue::{Batch, Replaced},
    reflector::DeltaKind,
};

/// An empty store with these indices: the handle that readers clone, and its one writer.
///
/// # Errors
/// Two indices have the same name, or one has that of the index by namespace, which is always there.
#[doc(alias = "NewIndexer")]
#[doc(alias = "NewStore")]
#[doc(alias = "NewThreadSafeStore")]
pub fn new<K>(indexers: Indexers<K>) -> Result<(Indexer<K>, IndexerWriter<K>), DuplicateIndex> {
    let (indexer, mut writer) = empty();
    writer.add_indexers(indexers)?;
    Ok((indexer, writer))
}

/// An empty store without an index of its own.
pub(crate) fn empty<K>() -> (Indexer<K>, IndexerWriter<K>) {
    let root = Root::empty();
    let published = Arc::new(ArcSwap::from_pointee(root.clone()));
    let indexer = Indexer {
        published: Arc::clone(&published),
    };
    (indexer, IndexerWriter { root, published })
}

/// The reading end of a store; cheap to clone.
///
/// Its own methods answer from the snapshot of the moment of the call. Several questions about one
/// moment go to one [`Indexer::snapshot`].
#[doc(alias = "ThreadSafeStore")]
#[doc(alias = "Store")]
pub struct Indexer<K> {
    published: Arc<ArcSwap<Root<K>>>,
}

impl<K> Clone for Indexer<K> {
    fn clone(&self) -> Self {
        Self {
            published: Arc::clone(&self.published),
        }
    }
}

impl<K> fmt::Debug for Indexer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl<K> Indexer<K> {
    /// Objects and indices as they are now. Taking it costs about as much as cloning an `Arc`; while
    /// it lives, what it shows stays in memory.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.published.load_full())
    }

    /// The object of this name, also if it is broken.
    #[doc(alias = "GetByKey")]
    #[doc(alias = "Get")]
    pub fn get(&self, name: &ObjectName) -> Option<Object<K>> {
        self.snapshot().get(name).cloned()
    }

    /// All objects but broken ones, ordered by namespace and name. A snapshot's `iter` does it without
    /// a `Vec`.
    #[doc(alias = "List")]
    pub fn list(&self) -> Vec<Object<K>> {
        self.snapshot().iter().cloned().collect()
    }

    /// The objects that an index has under a value.
    ///
    /// # Errors
    /// There is no such index.
    #[doc(alias = "ByIndex")]
    pub fn by_index(
        &self,
        index: &(impl IndexRef + ?Sized),
        value: &str,
    ) -> Result<Vec<Object<K>>, NoSuchIndex> {
        Ok(self.snapshot().by_index(index, value)?.cloned().collect())
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
        self.snapshot().index_keys(index, value)
    }

    /// The objects that share a value of an index with this one, each once.
    ///
    /// # Errors
    /// There is no such index.
    #[doc(alias = "Index")]
    pub fn index(
        &self,
        index: &(impl IndexRef + ?Sized),
        object: &Object<K>,
    ) -> Result<Vec<Object<K>>, NoSuchIndex> {
        let snapshot = self.snapshot();
        Ok(snapshot
            .index(index, object)?
            .into_iter()
            .cloned()
            .collect())
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
        self.snapshot().index_values(index)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.published.load().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The writing end of a store. There is one.
///
/// Every method swaps in its result at its end: readers see it whole.
#[doc(alias = "TransactionStore")]
#[doc(alias = "ThreadSafeStoreWithTransaction")]
pub struct IndexerWriter<K> {
    root: Root<K>,
    published: Arc<ArcSwap<Root<K>>>,
}

impl<K> fmt::Debug for IndexerWriter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// What applying a batch has brought about.
#[derive(Debug)]
pub struct Applied<K> {
    /// What changed for whoever listens, in order.
    pub changes: Vec<Change<K>>,
    /// The objects that an index function could not place, and are missing from that index.
    pub index_errors: Vec<IndexError>,
}

impl<K> IndexerWriter<K> {
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
        let Batch {
            deltas,
            in_initial_list: initial,
            completes,
            reached,
        } = batch;
        let mut applied = Applied {
            changes: Vec::with_capacity(deltas.len() + 1),
            index_errors: Vec::new(),
        };
        for delta in deltas {
            let source = delta.source;
            let change = match delta.kind {
                DeltaKind::Added(object) | DeltaKind::Updated(object) => {
                    self.root
                        .put(source, object, Cause::Watch, &mut applied.index_errors)
                }
                DeltaKind::Replaced(object) => {
                    self.root
                        .put(source, object, Cause::Relist, &mut applied.index_errors)
                }
                DeltaKind::Sync(object) => {
                    self.root
                        .put(source, object, Cause::Resync, &mut applied.index_errors)
                }
                DeltaKind::Deleted(deleted) => self.root.remove(source, deleted),
                DeltaKind::ReplacedAll { objects, revision } => {
                    let list = Replaced {
                        source,
                        objects,
                        revision,
                    };
                    Some(self.replace_all(list, initial, &mut applied.index_errors))
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
        for (source, revision) in reached {
            self.root.advance(source, revision);
        }
        applied.changes.extend(completes.map(Change::Listed));
        self.publish();
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
        self.root
            .advance(SourceId::default(), object.revision().clone());
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
        let change = self.root.remove(SourceId::default(), deleted);
        self.publish();
        change
    }

    /// Makes the store hold exactly these objects, and sets its revision. Of a name that comes twice
    /// the last one stays.
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
        self.replace_all(list, false, &mut Vec::new());
        self.publish();
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
        let mut errors = Vec::new();
        self.root.add_indexers(indexers, &mut errors)?;
        self.publish();
        Ok(errors)
    }

    /// Takes what was known before anything has been heard: nobody is told, and no revision is
    /// reached by it.
    pub(crate) fn warm(&mut self, known: Vec<Object<K>>) {
        for object in known {
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
        let changed = self.root.replace(list, errors);
        Change::Replaced {
            old,
            new: Snapshot::new(Arc::new(self.root.clone())),
            changed: Arc::new(changed),
            in_initial_list,
        }
    }

    fn publish(&self) {
        self.published.store(Arc::new(self.root.clone()));
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

#[cfg(test)]
mod tests;
