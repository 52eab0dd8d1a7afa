//! Counted reads from an informer's cache, to compare with the saved requests.
//!
//! Guarantees: the cache answers every read without a request; each call counts as one read.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kube_core::Resource;
use kube_informer::{
    Indexer, Lister, Object, ObjectName, SharedInformer, indexer::IndexToken, selector::Selector,
};

/// Number of reads that the caches of one process have answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads(Arc<AtomicU64>);

impl Reads {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The cache of one kind, as a loop reads it.
pub(crate) struct Cache<K> {
    lister: Lister<K>,
    indexer: Indexer<K>,
    reads: Reads,
}

impl<K> Cache<K>
where
    K: Resource + Send + Sync + 'static,
{
    pub(crate) fn new(informer: &SharedInformer<K>, reads: Reads) -> Self {
        Self {
            lister: informer.lister(),
            indexer: informer.indexer(),
            reads,
        }
    }

    /// Returns the object with this name, if it is cached.
    pub(crate) fn find(&self, name: &ObjectName) -> Option<Object<K>> {
        self.read();
        self.lister.find(name)
    }

    /// Returns all objects at one moment.
    pub(crate) fn list(&self) -> Vec<Object<K>> {
        self.read();
        self.lister.list(&Selector::everything()).collect()
    }

    /// Returns the objects with a value in an index of this cache.
    pub(crate) fn by_index(&self, index: &IndexToken, value: &str) -> Vec<Object<K>> {
        self.read();
        self.indexer
            .by_index(index, value)
            .expect("a token is only given out for an index that exists")
    }

    fn read(&self) {
        self.reads.0.fetch_add(1, Ordering::Relaxed);
    }
}
