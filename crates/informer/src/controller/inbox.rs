//! Passes the changes of an informer's reflectors to the informer's loop ([`Inbox`]).
//!
//! The module does not apply the changes to the cache: the loop does.

use std::sync::Arc;

use derive_where::derive_where;
use tokio::sync::mpsc;

use crate::{
    indexer::Indexer,
    object::{Known, Object, ObjectName, SourceId},
    reflector::{Delta, ReflectorStore, StoreError},
};

/// The [`ReflectorStore`] of an informer's reflectors, which sends their changes to the informer's loop.
#[derive_where(Clone)]
pub(crate) struct Inbox<K> {
    deltas: mpsc::Sender<Delta<K>>,
    cache: Indexer<K>,
}

impl<K> Inbox<K> {
    pub(crate) fn new(deltas: mpsc::Sender<Delta<K>>, cache: Indexer<K>) -> Self {
        Self { deltas, cache }
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for Inbox<K> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        self.deltas.accept(delta).await
    }

    fn is_full(&self, source: SourceId, object: &ObjectName, limit: usize) -> bool {
        self.cache.snapshot().is_full(source, object, limit)
    }

    fn known(&self) -> Option<Arc<dyn Known<K> + Send + Sync>> {
        Some(Arc::new(self.cache.snapshot()))
    }

    fn object_after(&self, name: Option<&ObjectName>) -> Option<Object<K>> {
        self.cache.snapshot().after(name).cloned()
    }
}
