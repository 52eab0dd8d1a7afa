//! Everything that must be settled before a reflector of its own exists.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{
    BackoffConfig, Error, InitialList, Reflector, ReflectorStore, RollbackDetection, Stopped,
    TimeoutConfig, Trust, report::Reporter, settings::Settings,
};
use crate::{
    limits::Limits,
    metrics::Metrics,
    object::{ResourceVersion, SourceId},
    status::StatusWriter,
    transport::ListerWatcher,
};

/// Settles the parts of a reflector; [`ReflectorBuilder::into_indexer`] or
/// [`ReflectorBuilder::into_store`] makes it.
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

    /// A name for logs, errors and metrics; by default kind and scope, such as
    /// `pods in shop with labels app=web`.
    #[doc(alias = "NewNamedReflector")]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// What logs and errors call the expected objects; by default API version and kind.
    #[doc(alias = "TypeDescription")]
    pub fn type_description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.settings.type_description = Some(description.into());
        self
    }

    /// Changes every object once, before the store sees it; for example to drop what nobody reads.
    pub fn transform(self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.try_transform(move |object| {
            transform(object);
            Ok(())
        })
    }

    /// The same with a function that may fail, or panic: that object is broken then, and everything
    /// else goes on.
    pub fn try_transform(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.settings.transform = Some(Arc::new(transform));
        self
    }

    /// Called with every failure of a list or watch, with its class, and with every object that can't
    /// be kept. It must not block.
    #[doc(alias = "WatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.settings.error_handler = Some(Arc::new(handler));
        self
    }

    /// Requests lists in pages of this size; zero is as if it were not called.
    ///
    /// Without this call [`InitialList::Pages`] has pages of 500, and [`InitialList::List`] only where the
    /// watch cache ignores it or does not exist. With it, [`InitialList::List`] requests pages at a revision,
    /// which the API server answers from etcd instead of its watch cache; that costs it much more.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size(objects);
        self
    }

    /// A watch is asked to end after one to two times this, in whole seconds; never less than 5
    /// minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.settings.watch_timeout_min(timeout);
        self
    }

    /// For so long after the first of a series of internal errors (HTTP 500, `InternalError`) inside
    /// watches, these are opened again from the last revision instead of being listed after. A minute
    /// without such an error ends the series. Zero, the default, retries none.
    #[doc(alias = "MaxInternalErrorRetryDuration")]
    pub fn internal_error_retry(mut self, budget: Duration) -> Self {
        self.settings.internal_error_retry(budget);
        self
    }

    /// The pauses after failures.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.settings.backoff(backoff);
        self
    }

    /// Gives figures of this reflector to a collector; without this call nothing is measured.
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.settings.metrics = Some(metrics);
        self
    }

    /// How everything is requested, at the beginning and whenever watching can't bring the cache up to date:
    /// in pages of the newest state by default, which costs the server least. [`InitialList::List`] is for
    /// servers before Kubernetes 1.34, whose watch cache answers no pages.
    pub fn initial_list(mut self, initial_list: InitialList) -> Self {
        self.settings.initial_list(initial_list);
        self
    }

    /// Whether the reflector checks that the server has not gone back in time: on by default. See
    /// [`RollbackDetection`] for what it costs, and when it is in the way.
    pub fn rollback_detection(mut self, detection: RollbackDetection) -> Self {
        self.settings.rollback_detection(detection);
        self
    }

    /// After how long the reflector no longer waits for a streaming list to end, for a silent watch,
    /// and for a full store.
    pub fn timeouts(mut self, timeouts: TimeoutConfig) -> Self {
        self.settings.timeouts(timeouts);
        self
    }

    /// How much of its collection the server may send; see [`Limits`] for the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits(limits);
        self
    }

    /// Makes the random parts (pauses, time-outs) the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Makes a reflector that feeds a store of your own.
    #[doc(alias = "NewReflectorWithOptions")]
    pub fn into_store<S: ReflectorStore<K>>(self, store: S) -> Reflector<K, S>
    where
        K: DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        self.into_reported_store(|_| store)
    }

    /// The same with a store that says in the reflector's status what became of things.
    pub(crate) fn into_reported_store<S: ReflectorStore<K>>(
        self,
        store: impl FnOnce(&Reporter) -> S,
    ) -> Reflector<K, S>
    where
        K: DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let sources = std::slice::from_ref(&self.source);
        let title = self.settings.title(&self.dyntype, sources);
        let mut report = self.settings.reporter(&title, StatusWriter::new(1));
        let status = report.status.reader();
        report.meter = self
            .settings
            .meter(&title, &self.dyntype, |_| Arc::new(status));
        let alone = Some(Stopped(report.status.clone(), SourceId::default()));
        Reflector {
            source: SourceId::default(),
            lister_watcher: self.source,
            decoder: self.settings.decoder(&self.dyntype),
            store: store(&report),
            report,
            config: self.settings.config,
            rng: self.settings.rng(),
            not_before: ResourceVersion::UNSET,
            from: None,
            relists: None,
            trust: Trust::default(),
            alone,
        }
    }
}
