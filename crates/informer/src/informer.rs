//! The plain informer: one source, one store, one handler.
//!
//! It hears more than a handler of a [`SharedInformer`]: every item of every list and every resync
//! comes as an update, changed or not. And it can begin with what was known last time, so that what
//! vanished meanwhile is told as deleted.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_informer::{ObjectName, client::ListWatch, enqueue, informer::Informer, workqueue::{self, RateLimitingQueue}};
//! # async fn example(client: kube_client::Client, mypod: Pod) -> Result<(), Box<dyn std::error::Error>> {
//! let queue = RateLimitingQueue::<ObjectName>::new(workqueue::rate_limiter::controller_default());
//! let (indexer, controller) = Informer::builder(ListWatch::<Pod>::new(client).namespace("default"))
//!     .known_objects([mypod])?
//!     .handler(enqueue(&queue))
//!     .build();
//! let synced = controller.wait_for_sync();
//! let running = tokio::spawn(controller.run(async { tokio::signal::ctrl_c().await.unwrap() }));
//! synced.await?;
//! # Ok(()) }
//! ```

use std::{fmt, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::{
    controller::Controller,
    event_handler::{Callbacks, EventHandler},
    indexer::{DuplicateIndex, Indexer, Indexers},
    limits::Limits,
    metrics::Metrics,
    object::{Nameless, Object},
    processor::Tells,
    queue::Queue,
    reflector::{BackoffConfig, Error, InitialList, RollbackDetection, TimeoutConfig},
    shared_informer::{self, SharedInformer},
    transport::ListerWatcher,
};

/// Begins a plain informer.
#[doc(alias = "NewInformer")]
#[doc(alias = "NewIndexerInformer")]
#[doc(alias = "NewInformerWithOptions")]
#[doc(alias = "NewTransformingInformer")]
#[doc(alias = "NewTransformingIndexerInformer")]
#[derive(Debug)]
pub struct Informer;

impl Informer {
    /// An informer over a source, which has no handler yet. Its default name is kind and scope.
    pub fn builder<K>(source: impl ListerWatcher) -> InformerBuilder<K, Callbacks<K>>
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Default,
    {
        Self::builder_with_type(source, K::DynamicType::default())
    }

    /// The same for a type known at run time only.
    pub fn builder_with_type<K>(
        source: impl ListerWatcher,
        dyntype: K::DynamicType,
    ) -> InformerBuilder<K, Callbacks<K>>
    where
        K: Resource + Send + Sync + 'static,
    {
        InformerBuilder {
            shared: SharedInformer::builder_with_type(source, dyntype),
            handler: Callbacks::new(),
        }
    }
}

/// Settles the parts of a plain informer.
#[must_use]
pub struct InformerBuilder<K: Resource, H> {
    shared: shared_informer::Builder<K>,
    handler: H,
}

impl<K: Resource, H> fmt::Debug for InformerBuilder<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerBuilder")
            .field(&self.shared)
            .finish()
    }
}

impl<K, H> InformerBuilder<K, H>
where
    K: Resource + Send + Sync + 'static,
    H: EventHandler<K>,
{
    /// A name for logs and errors.
    pub fn name(mut self, name: &str) -> Self {
        self.shared = self.shared.name(name);
        self
    }

    /// What logs and errors call the expected objects; by default API version and kind.
    #[doc(alias = "ObjectDescription")]
    pub fn type_description(mut self, description: &str) -> Self {
        self.shared = self.shared.type_description(description);
        self
    }

    /// The handler; [`Callbacks`] makes one of closures.
    pub fn handler<H2: EventHandler<K>>(self, handler: H2) -> InformerBuilder<K, H2> {
        InformerBuilder {
            shared: self.shared,
            handler,
        }
    }

    /// What was known before: it is in the store from the beginning, and the handler is not told of
    /// it. One that the first list has comes as an update, one that it does not have as
    /// [`Deleted::FinalStateUnknown`](crate::object::Deleted).
    ///
    /// # Errors
    /// An object without a name.
    pub fn known_objects(
        mut self,
        known: impl IntoIterator<Item = K>,
    ) -> Result<Self, Nameless<K>> {
        let known: Result<Vec<_>, _> = known.into_iter().map(Object::new).collect();
        self.shared = self.shared.known(known?);
        Ok(self)
    }

    /// The indices of the store.
    ///
    /// # Errors
    /// Two of them have the same name.
    pub fn indexers(mut self, indexers: Indexers<K>) -> Result<Self, DuplicateIndex> {
        self.shared = self.shared.indexers(indexers)?;
        Ok(self)
    }

    /// How often the handler hears of everything again; zero, the default, means never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.shared = self.shared.resync(period);
        self
    }

    /// The queue between reflector and store.
    pub fn queue(mut self, queue: impl Queue<K> + 'static) -> Self {
        self.shared = self.shared.queue(queue);
        self
    }

    /// At most so many changes are applied at one go; see
    /// [`batch_size`](shared_informer::Builder::batch_size) of the shared informer.
    pub fn batch_size(mut self, changes: usize) -> Self {
        self.shared = self.shared.batch_size(changes);
        self
    }

    /// At most so many changes wait in the queue; see
    /// [`queue_capacity`](shared_informer::Builder::queue_capacity) of the shared informer.
    pub fn queue_capacity(mut self, changes: usize) -> Self {
        self.shared = self.shared.queue_capacity(changes);
        self
    }

    /// Changes every object once, before store and handler see it.
    #[doc(alias = "TransformFunc")]
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.shared = self.shared.transform(transform);
        self
    }

    /// The same with a function that may fail, or panic: that object is broken then, and everything
    /// else goes on.
    pub fn try_transform(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.shared = self.shared.try_transform(transform);
        self
    }

    /// Asks for lists in pages of this size; see
    /// [`ReflectorBuilder::page_size`](crate::reflector::ReflectorBuilder::page_size).
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.shared = self.shared.page_size(objects);
        self
    }

    /// A watch is asked to end after one to two times this, in whole seconds; never less than 5
    /// minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.shared = self.shared.watch_timeout_min(timeout);
        self
    }

    /// For so long, watches that the server ends with internal errors are opened again instead of
    /// being listed after; see
    /// [`ReflectorBuilder::internal_error_retry`](crate::reflector::ReflectorBuilder::internal_error_retry).
    #[doc(alias = "MaxInternalErrorRetryDuration")]
    pub fn internal_error_retry(mut self, budget: Duration) -> Self {
        self.shared = self.shared.internal_error_retry(budget);
        self
    }

    /// The pauses after failures.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.shared = self.shared.backoff(backoff);
        self
    }

    /// How everything is requested, at the beginning and whenever watching can't bring the cache up to date:
    /// in pages of the newest state by default, which costs the server least. [`InitialList::List`] is for
    /// servers before Kubernetes 1.34, whose watch cache answers no pages.
    pub fn initial_list(mut self, initial_list: InitialList) -> Self {
        self.shared = self.shared.initial_list(initial_list);
        self
    }

    /// Whether the reflector checks that the server has not gone back in time: on by default. See
    /// [`RollbackDetection`] for what it costs, and when it is in the way.
    pub fn rollback_detection(mut self, detection: RollbackDetection) -> Self {
        self.shared = self.shared.rollback_detection(detection);
        self
    }

    /// After how long the reflector no longer waits for a streaming list to end, for a silent watch,
    /// and for a full store.
    pub fn timeouts(mut self, timeouts: TimeoutConfig) -> Self {
        self.shared = self.shared.timeouts(timeouts);
        self
    }

    /// How much of its collection the server may send; see [`Limits`] for the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.shared = self.shared.limits(limits);
        self
    }

    /// Called with every failure. It must not block.
    #[doc(alias = "WatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.shared = self.shared.on_error(handler);
        self
    }

    /// Looks for objects that are changed in the cache; see
    /// [`detect_mutations`](shared_informer::Builder::detect_mutations) of the shared informer.
    pub fn detect_mutations(mut self) -> Self
    where
        K: Clone + PartialEq,
    {
        self.shared = self.shared.detect_mutations();
        self
    }

    /// Compares the store with the server every so often; see
    /// [`consistency_check`](shared_informer::Builder::consistency_check) of the shared informer.
    pub fn consistency_check(mut self, period: Duration) -> Self {
        self.shared = self.shared.consistency_check(period);
        self
    }

    /// Gives figures of this informer to a collector; without this call nothing is measured.
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.shared = self.shared.metrics(metrics);
        self
    }

    /// Makes the random parts the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.shared = self.shared.rng_seed(seed);
        self
    }

    /// Makes the informer: its store to read from, and the controller that runs it. Must be called
    /// inside a Tokio runtime.
    pub fn build(self) -> (Indexer<K>, Controller<K>)
    where
        K: DeserializeOwned,
        K::DynamicType: 'static,
    {
        let (informer, controller) = self.shared.build();
        let registered = informer
            .handler(self.handler)
            .tells(Tells::Everything)
            .register();
        debug_assert!(
            registered.is_ok(),
            "the controller is held, so the informer has not stopped"
        );
        (informer.indexer(), controller)
    }
}
