//! The builder of a factory: its client and the defaults of its informers.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::{ObjectMeta, Resource};

use super::{
    Inner, SharedInformerFactory, defaults::Defaults, definitions::Definitions,
    namespace_options::NamespaceOptions, options::InformerOptions, registry::Registry,
};
use crate::{
    metrics::Metrics,
    reflector::{Error, request_methods},
    selector::Selector,
    shared_informer::loop_methods,
    transport::{
        ListOptions,
        client::{ClientSource, TweakListOptions},
    },
};

/// Default time for which an informer runs after its last hold is dropped.
///
/// Within one minute, a program that reads a kind occasionally or replaces a worker needs no new list. An
/// unused watch for one minute costs a server less than a list.
const IDLE_GRACE: Duration = Duration::from_secs(60);

/// Configures a factory: its client and the options of all its informers.
///
/// The most specific setting applies: the informer's own [`InformerOptions`], then the settings here for its
/// type, then the settings here for all informers. [`InformerOptions`] has the table. If two calls set the same
/// option, the later call applies. Only [`FactoryBuilder::tweak_list_options`] and
/// [`FactoryBuilder::transform_metadata`] always apply to every informer that the factory creates.
#[must_use]
pub struct FactoryBuilder {
    client: Arc<dyn ClientSource>,
    defaults: Defaults,
    idle_grace: Duration,
    definitions: Option<Definitions>,
    tweak: Option<TweakListOptions>,
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("level", &self.defaults.level)
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
        }
    }

    /// Sets the options for informers of one type; the options of a single informer have precedence.
    ///
    /// This is `ByObject` in controller-runtime. [`InformerOptions`] has the table of precedence. If two calls
    /// for one type set the same option, the later call applies to it.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::{Pod, Secret};
    /// # use kube_informer::{SharedInformerFactory, factory::{InformerOptions, NamespaceOptions}};
    /// # fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let ours = "managed-by=us".parse()?;
    /// let factory = SharedInformerFactory::builder(client)
    ///     .namespaces(["shop", "billing"])
    ///     .for_type::<Pod>(InformerOptions::new().transform(|pod: &mut Pod| pod.status = None))
    ///     .for_type::<Secret>(InformerOptions::new().namespaces_with([
    ///         ("shop", NamespaceOptions::new().labels(ours)),
    ///         ("kube-system", NamespaceOptions::new().fields("metadata.name=ca")),
    ///     ]))
    ///     .build();
    /// # Ok(()) }
    /// ```
    #[doc(alias = "ByObject")]
    pub fn for_type<K: Resource + 'static>(mut self, options: InformerOptions<K>) -> Self {
        self.defaults.set_type(options);
        self
    }

    /// Sets the resync period for informers of one type; zero disables the resync.
    ///
    /// This is a short form of [`FactoryBuilder::for_type`].
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_for<K: 'static>(mut self, period: Duration) -> Self {
        self.defaults
            .set_type(InformerOptions::<K>::new().resync(period));
        self
    }

    /// Sets a function that changes the metadata of each object of every kind once.
    ///
    /// It runs before the cache and handlers receive the object, for example to drop `managedFields`. It runs
    /// before all other transforms, and no option disables it.
    ///
    /// The cache uses the name and revision that the server sent, even if the function changes the metadata.
    #[doc(alias = "WithTransform")]
    pub fn transform_metadata(
        mut self,
        transform: impl Fn(&mut ObjectMeta) + Send + Sync + 'static,
    ) -> Self {
        self.defaults.metadata = Some(Arc::new(transform));
        self
    }

    /// Sets a function that changes each object of one type once before the cache and handlers receive it.
    ///
    /// It applies to informers whose own options have no transform. This is a short form of
    /// [`FactoryBuilder::for_type`].
    #[doc(alias = "WithTransform")]
    pub fn transform_for<K: Resource + 'static>(
        mut self,
        transform: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        self.defaults
            .set_type(InformerOptions::new().transform(transform));
        self
    }

    /// Limits namespaced kinds to these namespaces; an empty list means all namespaces.
    ///
    /// Each kind has one informer over all of its namespaces.
    #[doc(alias = "WithNamespace")]
    #[doc(alias = "DefaultNamespaces")]
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        let namespaces = namespaces.into_iter();
        self.namespaces_with(namespaces.map(|name| (name, NamespaceOptions::new())))
    }

    /// Limits namespaced kinds to these namespaces, each with its own options.
    ///
    /// The name `""` means all namespaces that the call does not name. The server excludes the named ones from
    /// that source (`metadata.namespace!=…`), so no object is listed twice.
    ///
    /// The namespaces of an informer are fixed when it is created. To add or remove a namespace, request an
    /// informer with other [namespaces](super::InformerOptions::namespaces), and stop the old one.
    #[doc(alias = "DefaultNamespaces")]
    pub fn namespaces_with<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<ObjectMeta>)>,
    ) -> Self {
        self.defaults.set_namespaces(namespaces);
        self
    }

    /// Selects only objects with these labels, unless more specific options set labels.
    #[doc(alias = "DefaultLabelSelector")]
    pub fn default_labels(mut self, labels: Selector) -> Self {
        self.defaults.level.everywhere.labels = Some(labels);
        self
    }

    /// Selects only objects with these fields, unless more specific options set fields.
    ///
    /// Only a few fields exist for every kind: `metadata.name` and `metadata.namespace`.
    #[doc(alias = "DefaultFieldSelector")]
    pub fn default_fields(mut self, fields: impl Into<String>) -> Self {
        self.defaults.level.everywhere.fields = Some(fields.into());
        self
    }

    /// Sets how long an informer runs after its last hold is dropped; the default is one minute.
    ///
    /// It applies to an informer that is only [held](SharedInformerFactory::hold). Zero ends it at once.
    pub fn idle_grace(mut self, grace: Duration) -> Self {
        self.idle_grace = grace;
        self
    }

    /// Sets a function that changes the options of every list and watch just before the request is sent.
    #[doc(alias = "WithTweakListOptions")]
    pub fn tweak_list_options(
        mut self,
        tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    /// Makes informers of custom resources follow their `CustomResourceDefinition`.
    ///
    /// It applies to typed and dynamic kinds.
    ///
    /// The deletion of a definition deletes all objects of its kind. When the definition is deleted and the
    /// server responds to requests for the kind with 404, handlers receive the deletions that were not
    /// delivered yet. The cache is then empty, the informer sends no more requests, and its status is
    /// [`NotServed`](crate::status::Activity::NotServed). When the definition exists again, the informer lists
    /// at once and continues with the same handlers. The informer also reacts at once to a definition that is
    /// added late or changes, instead of after the back-off delay.
    ///
    /// Without this option, or if only one of the two conditions holds, an informer keeps its cache and retries
    /// with the delays of its [back-off](FactoryBuilder::backoff), by default at most one minute apart. A 404
    /// alone does not mean that the objects were deleted.
    ///
    /// The cost is one more informer, of the definitions' metadata. It runs while at least one informer runs
    /// whose kind has a group with a dot, because only such kinds can have a definition.
    /// [`SharedInformerFactory::wait_for_cache_sync`] includes it. The client needs permission to list and
    /// watch `customresourcedefinitions.apiextensions.k8s.io`. Informers of a custom constructor do not follow
    /// definitions.
    pub fn follow_definitions(mut self) -> Self {
        self.definitions = Some(Definitions::default());
        self
    }

    /// Sets a function that receives the informer's name and each error of its lists and watches.
    ///
    /// The function must not block. It also receives an error for each object that cannot be cached.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&str, &Error) + Send + Sync + 'static) -> Self {
        self.defaults.error_handler = Some(Arc::new(handler));
        self
    }

    /// Sets the collector that receives the metrics of every informer that the factory creates.
    ///
    /// Informers from [`informer_for`](SharedInformerFactory::informer_for) use their own collector.
    #[doc(alias = "SetInformerMetricsProvider")]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.defaults.metrics = Some(metrics);
        self
    }

    request_methods!(defaults.level.everywhere.requests);

    loop_methods!(defaults.loop_options);

    /// Sets the seed for the random delays of all informers, so that every test run is the same.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.defaults.seed = Some(seed);
        self
    }

    /// Returns the factory.
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory {
            inner: Arc::new(Inner {
                client: self.client,
                defaults: self.defaults,
                tweak: self.tweak,
                registry: Registry::new(self.idle_grace),
                definitions: self.definitions,
            }),
        }
    }
}
