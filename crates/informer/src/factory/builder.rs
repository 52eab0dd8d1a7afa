//! Builds an informer factory from a client and the default options of the factory's informers.
//!
//! This module does not decide which option applies to an informer. The module `defaults` does.

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

/// Default time for which an unused informer keeps running. A new request within this time needs no list.
const IDLE_GRACE: Duration = Duration::from_secs(60);

/// Configures a [`SharedInformerFactory`]: its client and the options of all its informers.
///
/// An option can be set in three places, in order of precedence:
///
/// - in the [`InformerOptions`] of a request for an informer;
/// - in this builder, for one type;
/// - in this builder, for all informers.
///
/// [`InformerOptions`] has a table of the precedence. If two calls set the same option, the later call
/// applies.
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

    /// Sets the default options for all informers of the type `K`.
    ///
    /// Options that are passed when an informer is requested from the factory have precedence.
    ///
    /// If two calls for one type set the same option, the later call applies. [`InformerOptions`] has a table
    /// of the precedence. This setting corresponds to `ByObject` in controller-runtime.
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

    /// Sets the resync period for informers of the type `K`. Zero disables resyncs.
    ///
    /// This method is a short form of [`FactoryBuilder::for_type`] with a resync period.
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_for<K: 'static>(mut self, period: Duration) -> Self {
        self.defaults
            .set_type(InformerOptions::<K>::new().resync(period));
        self
    }

    /// Sets a function that changes the metadata of every received object of every kind.
    ///
    /// The function runs once per received object state, before all other transforms and before the object is
    /// stored or delivered. It can, for example, remove `managedFields`. No option disables it.
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

    /// Sets a function that changes every received object of the type `K` before it is stored or delivered.
    ///
    /// The function applies to each informer of the type that the factory creates, unless the options in the
    /// request for the informer contain a transform. This method is a short form of
    /// [`FactoryBuilder::for_type`] with a transform.
    #[doc(alias = "WithTransform")]
    pub fn transform_for<K: Resource + 'static>(
        mut self,
        transform: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        self.defaults
            .set_type(InformerOptions::new().transform(transform));
        self
    }

    /// Limits the informers of namespaced kinds to these namespaces. An empty list means all namespaces.
    ///
    /// Each kind has one informer, which covers all these namespaces.
    #[doc(alias = "WithNamespace")]
    #[doc(alias = "DefaultNamespaces")]
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        let namespaces = namespaces.into_iter();
        self.namespaces_with(namespaces.map(|name| (name, NamespaceOptions::new())))
    }

    /// Limits the informers of namespaced kinds to these namespaces, each with its own options.
    ///
    /// An entry with the name `""` covers all namespaces without an entry of their own. For this entry, the
    /// field selector `metadata.namespace!=…` excludes the namespaces of the other entries, so no object is
    /// listed twice.
    ///
    /// The namespaces of an informer are fixed when it is created. To add or remove a namespace, request an
    /// informer with other [namespaces](super::InformerOptions::namespaces), and stop the old informer.
    #[doc(alias = "DefaultNamespaces")]
    pub fn namespaces_with<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<ObjectMeta>)>,
    ) -> Self {
        self.defaults.set_namespaces(namespaces);
        self
    }

    /// Sets the default label selector of all informers.
    ///
    /// A label selector that is set for a type, for a namespace or for a single informer replaces this
    /// default. An informer lists and watches only the objects that match its label selector.
    #[doc(alias = "DefaultLabelSelector")]
    pub fn default_labels(mut self, labels: Selector) -> Self {
        self.defaults.level.everywhere.labels = Some(labels);
        self
    }

    /// Sets the default field selector of all informers.
    ///
    /// A field selector that is set for a type, for a namespace or for a single informer replaces this
    /// default. Every kind supports the field `metadata.name`, and every namespaced kind also supports
    /// `metadata.namespace`. The other supported fields depend on the kind.
    #[doc(alias = "DefaultFieldSelector")]
    pub fn default_fields(mut self, fields: impl Into<String>) -> Self {
        self.defaults.level.everywhere.fields = Some(fields.into());
        self
    }

    /// Sets the time for which an unused informer runs after its last hold is dropped. The default is one
    /// minute.
    ///
    /// This time applies only to an informer for which every request was a request for a
    /// [`Hold`](super::Hold). If the time is zero, the informer ends as soon as its last hold is dropped.
    pub fn idle_grace(mut self, grace: Duration) -> Self {
        self.idle_grace = grace;
        self
    }

    /// Sets a function that changes the options of every list and watch just before the request is sent.
    ///
    /// The function does not affect informers from [`informer_for`](SharedInformerFactory::informer_for).
    #[doc(alias = "WithTweakListOptions")]
    pub fn tweak_list_options(
        mut self,
        tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    /// Makes informers of custom resources react to changes of their `CustomResourceDefinition`.
    ///
    /// The API server deletes all objects of a kind when the kind's definition is deleted. If the definition
    /// is deleted and requests for the kind receive a 404 response, the informer delivers the deletions that
    /// handlers have not received yet. The informer's cache is then empty, the informer sends no more
    /// requests, and its status is [`NotServed`](crate::status::Activity::NotServed).
    ///
    /// When the definition exists again, the informer lists at once and continues with the same handlers. An
    /// informer that waits for a retry after a 404 response also lists at once when its definition is created
    /// or changes.
    ///
    /// Without this option, the informer keeps its cache when its definition is deleted. With this option,
    /// the informer still keeps its cache after a 404 response alone, because this response does not prove
    /// that the objects were deleted.
    ///
    /// The option adds one informer to the factory, which caches the metadata of all definitions. The added
    /// informer runs as long as the factory runs an informer of another kind whose API group contains a dot.
    /// Only such a kind can have a definition. [`SharedInformerFactory::wait_for_cache_sync`] waits for the
    /// added informer too. The client needs permission to list and watch
    /// `customresourcedefinitions.apiextensions.k8s.io`.
    ///
    /// The option applies to typed and dynamic kinds, but not to informers from
    /// [`informer_for`](SharedInformerFactory::informer_for).
    pub fn follow_definitions(mut self) -> Self {
        self.definitions = Some(Definitions::default());
        self
    }

    /// Sets a function that is called for each error of a list or watch, with the informer's name and the
    /// error.
    ///
    /// The function is also called for each object that cannot be stored in the cache. The function must not
    /// block.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&str, &Error) + Send + Sync + 'static) -> Self {
        self.defaults.error_handler = Some(Arc::new(handler));
        self
    }

    /// Sets the collector that receives the metrics of every informer that the factory creates.
    ///
    /// Informers from [`informer_for`](SharedInformerFactory::informer_for) do not use this collector.
    #[doc(alias = "SetInformerMetricsProvider")]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.defaults.metrics = Some(metrics);
        self
    }

    request_methods!(defaults.level.everywhere.requests);

    loop_methods!(defaults.loop_options);

    /// Sets the seed for the random delays and timeouts of all informers. A fixed seed makes test runs
    /// repeatable.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.defaults.seed = Some(seed);
        self
    }

    /// Creates the factory with the settings of this builder. No informer is created yet.
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
