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

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::{
    controller::Controller,
    event_handler::{Callbacks, EventHandler},
    indexer::{DuplicateIndex, Indexer, Indexers},
    object::{Nameless, Object},
    processor::Delivery,
    queue::Queue,
    reflector::settings_methods,
    shared_informer::{self, SharedInformer, keeping_methods, loop_methods},
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
#[derive_where(Debug)]
pub struct InformerBuilder<K: Resource, H> {
    shared: shared_informer::Builder<K>,
    #[derive_where(skip)]
    handler: H,
}

impl<K, H> InformerBuilder<K, H>
where
    K: Resource + Send + Sync + 'static,
    H: EventHandler<K>,
{
    settings_methods!(shared.reflectors);

    loop_methods!(shared.loop_options);

    keeping_methods!(shared.keeping);

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
        self.shared.known = known?;
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

    /// The queue between reflector and store.
    pub fn queue(mut self, queue: impl Queue<K> + 'static) -> Self {
        self.shared = self.shared.queue(queue);
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
        let mut handler = informer.handler(self.handler);
        handler.delivery = Delivery::All;
        let registered = handler.register();
        debug_assert!(
            registered.is_ok(),
            "the controller is held, so the informer has not stopped"
        );
        (informer.indexer(), controller)
    }
}
