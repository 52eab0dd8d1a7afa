//! Builds standalone reflectors, which run without an informer, from their settings.

use std::{fmt, sync::Arc};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{
    Reached, Reflector, ReflectorStore, RelistSignal, StoppedGuard,
    report::Reporter,
    settings::{Settings, settings_methods},
};
use crate::{object::SourceId, status::StatusWriter, transport::ListerWatcher};

/// Builds a standalone reflector, which runs without an informer.
///
/// [`ReflectorBuilder::into_indexer`] and [`ReflectorBuilder::into_store`] create the reflector.
#[must_use]
#[doc(alias = "ReflectorOptions")]
pub struct ReflectorBuilder<K: Resource> {
    source: Arc<dyn ListerWatcher>,
    dyntype: K::DynamicType,
    settings: Settings<K>,
}

impl<K: Resource> fmt::Debug for ReflectorBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorBuilder")
            .field("name", &self.settings.name)
            .finish_non_exhaustive()
    }
}

impl<K: Resource> ReflectorBuilder<K> {
    pub(super) fn new(source: Arc<dyn ListerWatcher>, dyntype: K::DynamicType) -> Self {
        Self {
            source,
            dyntype,
            settings: Settings::default(),
        }
    }

    settings_methods!(settings);

    /// Returns a reflector that delivers its changes to `store`.
    #[doc(alias = "NewReflectorWithOptions")]
    pub fn into_store<S: ReflectorStore<K>>(self, store: S) -> Reflector<K, S>
    where
        K: DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        self.into_reported_store(|_| store)
    }

    /// Returns a reflector that delivers its changes to the store that `store` returns.
    pub(crate) fn into_reported_store<S: ReflectorStore<K>>(
        self,
        store: impl FnOnce(&Reporter) -> S,
    ) -> Reflector<K, S>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        let sources = std::slice::from_ref(&self.source);
        let title = self.settings.title(&self.dyntype, sources);
        let mut report = self.settings.reporter(&title, StatusWriter::new(1));
        let status = report.status.reader();
        report.meter = self
            .settings
            .meter(&title, &self.dyntype, |_| Arc::new(status));
        let alone = Some(StoppedGuard(report.status.clone(), SourceId::default()));
        Reflector {
            source: SourceId::default(),
            lister_watcher: self.source,
            decoder: self.settings.decoder(&self.dyntype),
            store: store(&report),
            report,
            requests: self.settings.requests,
            rng: self.settings.rng(),
            reached: Reached::default(),
            from: None,
            relists: None,
            relist: RelistSignal::default(),
            alone,
        }
    }
}
