//! Reads objects from an informer's cache, and counts the reads.
//!
//! Guarantees: a read sends no request to the server, and each call counts as one read. The demo prints the
//! counts, to show how many requests its control loops would send without caches.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kube_core::Resource;
use kube_informer::{
    Indexer, Lister, Object, ObjectName, SharedInformer, indexer::IndexToken, selector::Selector,
};

/// Counter of cache reads in one process, shared by all clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads(Arc<AtomicU64>);

impl Reads {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads objects of kind `K` from an informer's cache, and adds each read to the counter [`Reads`].
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

    pub(crate) fn find(&self, name: &ObjectName) -> Option<Object<K>> {
        self.read();
        self.lister.find(name)
    }

    /// Returns all objects of the cache, from one snapshot.
    pub(crate) fn list(&self) -> Vec<Object<K>> {
        self.read();
        self.lister.list(&Selector::everything()).collect()
    }

    /// Returns the objects in the namespace of `name`.
    pub(crate) fn beside(&self, name: &ObjectName) -> Vec<Object<K>> {
        self.read();
        let namespace = self.lister.namespace(name.namespace().unwrap_or_default());
        namespace.list(&Selector::everything()).collect()
    }

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
