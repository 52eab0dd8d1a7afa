//! [`Inbox`]: where the reflectors of an informer put what they hear.

use tokio::sync::mpsc;

use crate::{
    indexer::Indexer,
    object::{Object, ObjectName},
    reflector::{Delta, ReflectorStore, StoreError},
};

/// The channel to the loop, and the cache that the loop keeps, to see how full it is.
pub(crate) struct Inbox<K> {
    deltas: mpsc::Sender<Delta<K>>,
    cache: Indexer<K>,
    /// How many reflectors fill it.
    sources: usize,
}

impl<K> Inbox<K> {
    pub(crate) fn new(deltas: mpsc::Sender<Delta<K>>, cache: Indexer<K>, sources: usize) -> Self {
        Self {
            deltas,
            cache,
            sources,
        }
    }
}

impl<K> Clone for Inbox<K> {
    fn clone(&self) -> Self {
        Self {
            deltas: self.deltas.clone(),
            cache: self.cache.clone(),
            sources: self.sources,
        }
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for Inbox<K> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        self.deltas.accept(delta).await
    }

    /// Of each source, on average: whose an object is, only the loop knows.
    fn objects(&self) -> usize {
        self.cache.len() / self.sources.max(1)
    }

    fn object_after(&self, name: Option<&ObjectName>) -> Option<Object<K>> {
        self.cache.snapshot().after(name).cloned()
    }
}
