//! Settles what all informers of a factory have in common.

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

/// An informer that nobody holds any more goes on for so long by default: whoever reads a kind now and
/// then, or replaces one worker by another, does not list it anew each time, and a watch in vain for a
/// minute costs a server less than a list.
const IDLE_GRACE: Duration = Duration::from_secs(60);

/// Settles what all informers of a factory have in common.
///
/// What is nearer to an informer holds: its own [`InformerOptions`], then what is set here for its type, then what
/// is set here for all; [`InformerOptions`] has the table. Of two calls that set the same the later one holds.
/// Only [`FactoryBuilder::tweak_list_options`] and [`FactoryBuilder::transform_metadata`] hold for every informer
/// that the factory makes, whatever else is set.
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

    /// What holds for the informers of one type, where their own options say nothing; controller-runtime has it
    /// as `ByObject`. [`InformerOptions`] has the table of what holds where. Of two calls for one type the later
    /// one holds for each option that it sets.
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

    /// The resync period of the informers of one type; zero means none. Short for
    /// [`FactoryBuilder::for_type`].
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_for<K: 'static>(mut self, period: Duration) -> Self {
        self.defaults
            .set_type(InformerOptions::<K>::new().resync(period));
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
        self.defaults.metadata = Some(Arc::new(transform));
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
            .set_type(InformerOptions::new().transform(transform));
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
        self.defaults.set_namespaces(namespaces);
        self
    }

    /// Only objects with these labels, where nothing nearer says otherwise.
    #[doc(alias = "DefaultLabelSelector")]
    pub fn default_labels(mut self, labels: Selector) -> Self {
        self.defaults.level.everywhere.labels = Some(labels);
        self
    }

    /// Only objects with these fields, where nothing nearer says otherwise. Few fields are those of
    /// every kind: `metadata.name` and `metadata.namespace`.
    #[doc(alias = "DefaultFieldSelector")]
    pub fn default_fields(mut self, fields: impl Into<String>) -> Self {
        self.defaults.level.everywhere.fields = Some(fields.into());
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

    request_methods!(defaults.level.everywhere.requests);

    loop_methods!(defaults.loop_options);

    /// Makes the random parts of all informers the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.defaults.seed = Some(seed);
        self
    }

    /// Makes the factory.
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
