//! Settles what all informers of a factory have in common.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::{ObjectMeta, Resource};

use super::{
    Inner, SharedInformerFactory,
    defaults::Defaults,
    definitions::Definitions,
    places::Places,
    type_options::{NamespaceOptions, TypeOptions},
};
use crate::{
    limits::Limits,
    metrics::Metrics,
    reflector::{BackoffConfig, Error, InitialList, RollbackDetection, TimeoutConfig},
    selector::Selector,
    transport::{
        ListOptions,
        client::{ClientSource, TweakListOptions},
    },
};

/// An informer that nobody holds any more goes on for so long by default: whoever reads a kind now and
/// then, or replaces one worker by another, does not list it anew each time, and a watch in vain for a
/// minute costs a server less than a list.
const IDLE_GRACE: Duration = Duration::from_secs(60);

/// Settles what all informers of a factory have in common.
///
/// What is nearer to an informer wins: its own [`InformerOptions`](super::InformerOptions), then what
/// is said here of its type, then what is said here of all; [`TypeOptions`] has the table. Of two calls
/// that say the same thing the later one holds. Only [`FactoryBuilder::tweak_list_options`] and
/// [`FactoryBuilder::transform_metadata`] hold for every informer the factory makes, whatever else is
/// said.
#[must_use]
pub struct FactoryBuilder {
    client: Arc<dyn ClientSource>,
    defaults: Defaults,
    idle_grace: Duration,
    definitions: Option<Definitions>,
    tweak: Option<TweakListOptions>,
    seed: Option<u64>,
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("of_all", &self.defaults.of_all)
            .finish_non_exhaustive()
    }
}

impl FactoryBuilder {
    pub(super) fn new(client: Arc<dyn ClientSource>) -> Self {
        Self {
            client,
            defaults: Defaults::default(),
            idle_grace: IDLE_GRACE,
            definitions: None,
            tweak: None,
            seed: None,
        }
    }

    /// The resync period of informers of which nothing else is said; zero, the default, means none.
    pub fn default_resync(mut self, period: Duration) -> Self {
        self.defaults.set_resync(period);
        self
    }

    /// What holds for the informers of one type, where their own options say nothing; controller-runtime
    /// has it as `ByObject`. `DynamicObject` is one type, whatever its kinds.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::{Pod, Secret};
    /// # use kube_informer::{SharedInformerFactory, factory::{NamespaceOptions, TypeOptions}};
    /// # fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let ours = "managed-by=us".parse()?;
    /// let factory = SharedInformerFactory::builder(client)
    ///     .namespaces(["shop", "billing"])
    ///     .for_type::<Pod>(TypeOptions::new().transform(|pod: &mut Pod| pod.status = None))
    ///     .for_type::<Secret>(TypeOptions::new().namespaces_with([
    ///         ("shop", NamespaceOptions::new().labels(ours)),
    ///         ("kube-system", NamespaceOptions::new().fields("metadata.name=ca")),
    ///     ]))
    ///     .build();
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ByObject")]
    pub fn for_type<K: Resource + 'static>(mut self, options: TypeOptions<K>) -> Self {
        self.defaults.set_type(options);
        self
    }

    /// The resync period of the informers of one type; zero means none. Short for
    /// [`FactoryBuilder::for_type`].
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_for<K: 'static>(mut self, period: Duration) -> Self {
        self.defaults
            .set_type(TypeOptions::<K>::new().resync(period));
        self
    }

    /// Changes the metadata of every object of every kind once, before cache and handlers see it; for
    /// example to drop `managedFields`. It comes before any other transform, and is left out by none.
    ///
    /// An object's name and revision are what the server said, whatever becomes of its metadata.
    #[doc(alias = "WithTransform")]
    pub fn transform_metadata(
        mut self,
        transform: impl Fn(&mut ObjectMeta) + Send + Sync + 'static,
    ) -> Self {
        self.defaults.set_metadata_transform(Arc::new(transform));
        self
    }

    /// Changes every object of one type once, before cache and handlers see it, in informers whose
    /// options have no transform of their own. Short for [`FactoryBuilder::for_type`].
    #[doc(alias = "WithTransform")]
    pub fn transform_for<K: Resource + 'static>(
        mut self,
        transform: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        self.defaults
            .set_type(TypeOptions::new().transform(transform));
        self
    }

    /// Only these namespaces, for namespaced kinds; each kind has one informer over all of them. None
    /// means all.
    #[doc(alias = "WithNamespace")]
    #[doc(alias = "DefaultNamespaces")]
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        let namespaces = namespaces.into_iter();
        self.namespaces_with(namespaces.map(|name| (name, NamespaceOptions::new())))
    }

    /// Only these namespaces, for namespaced kinds, each with options of its own. The name `""` stands
    /// for all namespaces that are not named beside it; they are left out of that source by the server
    /// (`metadata.namespace!=…`), so no object is listed twice.
    ///
    /// An informer's namespaces are settled when it is made. To add or remove one, ask for an informer
    /// with other [namespaces](super::InformerOptions::namespaces), and stop the old one.
    #[doc(alias = "DefaultNamespaces")]
    pub fn namespaces_with<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<ObjectMeta>)>,
    ) -> Self {
        let namespaces = namespaces.into_iter();
        let namespaces = namespaces.map(|(name, options)| (name.into(), options));
        self.defaults.set_namespaces(namespaces.collect());
        self
    }

    /// Only objects with these labels, where nothing nearer says otherwise.
    #[doc(alias = "DefaultLabelSelector")]
    pub fn default_labels(mut self, labels: Selector) -> Self {
        self.defaults.of_all.everywhere.labels = Some(labels);
        self
    }

    /// Only objects with these fields, where nothing nearer says otherwise. Few fields are those of
    /// every kind: `metadata.name` and `metadata.namespace`.
    #[doc(alias = "DefaultFieldSelector")]
    pub fn default_fields(mut self, fields: impl Into<String>) -> Self {
        self.defaults.of_all.everywhere.fields = Some(fields.into());
        self
    }

    /// So long an informer that was only [held](SharedInformerFactory::hold) goes on when nobody holds
    /// it any more; one minute without this call, and zero ends it at once.
    pub fn idle_grace(mut self, grace: Duration) -> Self {
        self.idle_grace = grace;
        self
    }

    /// Changes the options of every list and watch just before it is sent.
    #[doc(alias = "WithTweakListOptions")]
    pub fn tweak_list_options(
        mut self,
        tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    /// Lets informers of custom kinds follow the definitions of their kinds
    /// (`CustomResourceDefinition`), typed and dynamic ones alike.
    ///
    /// A definition that is deleted takes all objects of its kind with it. When it is gone, and the
    /// server answers the kind's requests with 404, handlers hear the deletion of whatever they were
    /// not told of yet, the cache is empty, and the informer asks for nothing any more: its status says
    /// [`NotServed`](crate::status::Activity::NotServed). When the definition is back, it lists at
    /// once, and goes on by itself, with its handlers. A definition that comes late, or changes, is
    /// noticed at once too, instead of after the back-off's pause.
    ///
    /// Without this, and when only one of the two is so, an informer keeps what it has and asks again
    /// with the pauses of its [back-off](FactoryBuilder::backoff), a minute at most by default: a 404
    /// alone does not say that objects were deleted.
    ///
    /// It costs one more informer, of the definitions' metadata, which runs as long as informers of kinds
    /// do that may have a definition (their group has a dot), and is waited for like all others; the
    /// client must be allowed to list and watch `customresourcedefinitions.apiextensions.k8s.io`.
    /// Informers of an own constructor are not concerned.
    pub fn follow_definitions(mut self) -> Self {
        self.definitions = Some(Definitions::default());
        self
    }

    /// Called with an informer's name and every failure of its lists and watches, and every object
    /// that can't be kept. It must not block.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&str, &Error) + Send + Sync + 'static) -> Self {
        self.defaults.error_handler = Some(Arc::new(handler));
        self
    }

    /// Gives figures of every informer that the factory makes to a collector; what
    /// [`informer_for`](SharedInformerFactory::informer_for) makes takes its own.
    #[doc(alias = "SetInformerMetricsProvider")]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.defaults.metrics = Some(metrics);
        self
    }

    /// Watches are asked to end after one to two times this, in whole seconds; never less than 5
    /// minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.defaults.watch_timeout_min = timeout;
        self
    }

    /// For so long, watches that the server ends with internal errors are opened again instead of
    /// being listed after; see
    /// [`ReflectorBuilder::internal_error_retry`](crate::reflector::ReflectorBuilder::internal_error_retry).
    #[doc(alias = "MaxInternalErrorRetryDuration")]
    pub fn internal_error_retry(mut self, budget: Duration) -> Self {
        self.defaults.internal_error_retry = budget;
        self
    }

    /// The pauses after failures.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.defaults.backoff = backoff;
        self
    }

    /// How everything is requested, at the beginning and whenever watching can't bring the cache up to date:
    /// in pages of the newest state by default, which costs the server least. [`InitialList::List`] is for
    /// servers before Kubernetes 1.34, whose watch cache answers no pages.
    pub fn initial_list(mut self, initial_list: InitialList) -> Self {
        self.defaults.initial_list = initial_list;
        self
    }

    /// Whether reflectors check that the server has not gone back in time: on by default. See
    /// [`RollbackDetection`] for what it costs, and when it is in the way.
    pub fn rollback_detection(mut self, detection: RollbackDetection) -> Self {
        self.defaults.rollback_detection = detection;
        self
    }

    /// After how long reflectors no longer wait for a streaming list to end, for a silent watch,
    /// and for a full store.
    pub fn timeouts(mut self, timeouts: TimeoutConfig) -> Self {
        self.defaults.timeouts = timeouts;
        self
    }

    /// How much of each collection the server may send; see [`Limits`] for the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.defaults.limits = limits;
        self
    }

    /// How often the caches are compared with the server; zero, the default, means never. See
    /// [`consistency_check`](crate::shared_informer::Builder::consistency_check) of the shared informer,
    /// also for what it costs.
    pub fn consistency_check(mut self, period: Duration) -> Self {
        self.defaults.set_consistency_check(period);
        self
    }

    /// Makes the random parts of all informers the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        let Self {
            client,
            defaults,
            idle_grace,
            definitions,
            tweak,
            seed,
        } = self;
        SharedInformerFactory {
            inner: Arc::new(Inner {
                client,
                defaults,
                tweak,
                seed,
                places: Places::new(idle_grace),
                definitions,
            }),
        }
    }
}
