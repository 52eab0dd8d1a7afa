//! Connects a reflector directly to a store, without a queue, an informer or handlers.
//!
//! [`IndexerFeed`] applies each delta of the reflector to the store. The reflector's status reports the
//! objects that can't be decoded, and the errors of index functions.

use std::sync::Arc;

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    index::IndexError,
    snapshot::Snapshot,
    writer::{Applied, IndexerWriter},
};
use crate::{
    logs::LogLimiter,
    object::{Known, ObjectName, SourceId},
    queue::Batch,
    reflector::{Delta, Reflector, ReflectorBuilder, ReflectorStore, Reporter, StoreError},
    status::Status,
};

/// Writes the changes of a reflector to a store, without a queue between them.
///
/// [`ReflectorBuilder::into_indexer`] creates this value from the [`IndexerWriter`] of the store.
///
/// Readers see each change and each list either completely or not at all. The reflector's status reports
/// objects that can't be decoded and the errors of index functions.
#[derive(Debug)]
pub struct IndexerFeed<K> {
    writer: IndexerWriter<K>,
    notes: StatusNotes,
}

impl<K: Resource> ReflectorBuilder<K> {
    /// Creates a reflector that writes the objects of its lists and watches directly to the store of
    /// `writer`.
    #[doc(alias = "NewNamespaceKeyedIndexerAndReflector")]
    pub fn into_indexer(self, writer: IndexerWriter<K>) -> Reflector<K, IndexerFeed<K>>
    where
        K: DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        self.into_reported_store(|report| IndexerFeed {
            writer,
            notes: StatusNotes::new(report.clone()),
        })
    }
}

impl<K: Send + Sync + 'static> ReflectorStore<K> for IndexerFeed<K> {
    async fn accept(&mut self, delta: Delta<K>) -> Result<(), StoreError> {
        // No handler receives the changes, so the flag for a first list is not used.
        let Applied { index_errors, .. } = self.writer.apply(Batch {
            reached: crate::queue::reached(std::slice::from_ref(&delta)),
            deltas: vec![delta],
            in_initial_list: false,
            completes: None,
        });
        self.notes.note(&self.writer.snapshot(), &index_errors);
        Ok(())
    }

    fn known(&self) -> Option<Arc<dyn Known<K> + Send + Sync>> {
        Some(Arc::new(self.writer.snapshot()))
    }

    fn is_full(&self, source: SourceId, object: &ObjectName, limit: usize) -> bool {
        self.writer.snapshot().is_full(source, object, limit)
    }
}

/// Reports a store's decode errors and index errors in the [`Status`] of its reflector or informer.
///
/// Also logs the index errors.
#[derive_where(Debug)]
pub(crate) struct StatusNotes {
    #[derive_where(skip)]
    report: Reporter,
    /// [`Snapshot::broken_version`] at the last status update.
    broken_version: u64,
    not_indexed: LogLimiter,
}

impl StatusNotes {
    pub(crate) fn new(report: Reporter) -> Self {
        Self {
            report,
            broken_version: 0,
            not_indexed: LogLimiter::default(),
        }
    }

    pub(crate) fn note<K>(&mut self, snapshot: &Snapshot<K>, index_errors: &[IndexError]) {
        let Reporter { name, status, .. } = &self.report;
        for error in index_errors {
            let now = Instant::now();
            let objects = self.not_indexed.left_out(now);
            if objects > 0 {
                tracing::warn!(informer = %name, objects, "more were not indexed within a minute");
            }
            if self.not_indexed.line(now) {
                tracing::warn!(informer = %name, %error, "not indexed");
            }
        }
        let version = snapshot.broken_version();
        if index_errors.is_empty() && version == self.broken_version {
            return;
        }
        self.broken_version = version;
        let broken = snapshot.broken().take(Status::BROKEN_LISTED);
        let broken: Vec<_> = broken.map(|(_, error)| error.clone()).collect();
        status.update(|status| {
            status.index_errors += index_errors.len() as u64;
            if let Some(last) = index_errors.last() {
                status.last_index_error = Some(last.to_string());
            }
            status.broken = broken;
            status.broken_count = snapshot.broken_count();
        });
    }
}
