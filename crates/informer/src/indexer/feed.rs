//! A store that is fed by a reflector directly, without queue or handlers.

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

/// An [`IndexerWriter`] behind a reflector; made by
/// [`ReflectorBuilder::into_indexer`].
///
/// Every change is in the store, whole, when it has been accepted. What an index function can't
/// place, and which objects are broken, stands in the reflector's status.
#[derive(Debug)]
pub struct IndexerFeed<K> {
    writer: IndexerWriter<K>,
    notes: StatusNotes,
}

impl<K: Resource> ReflectorBuilder<K> {
    /// Makes a reflector that feeds an indexer: list and watch straight into the store.
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
        // Nobody hears of the changes, so nobody asks whether they belong to a first list.
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

/// Keeps a status up to date with what is broken and what could not be indexed; costs next to nothing
/// while nothing changes.
#[derive_where(Debug)]
pub(crate) struct StatusNotes {
    #[derive_where(skip)]
    report: Reporter,
    /// Which broken objects the status tells of.
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
