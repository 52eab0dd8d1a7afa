//! Defines the plain informer, which has one list and watch, one store and one handler.
//!
//! The handler of a plain informer receives more events than a handler of a [`SharedInformer`]. After each
//! list and each resync, the handler receives an update for every object that the store already contains,
//! even if the object has not changed. A plain informer can start with objects from an earlier run. If such
//! an object no longer exists, the handler receives its deletion.
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

/// Creates builders of plain informers, which have one list and watch, one store and one handler.
#[doc(alias = "NewInformer")]
#[doc(alias = "NewIndexerInformer")]
#[doc(alias = "NewInformerWithOptions")]
#[doc(alias = "NewTransformingInformer")]
#[doc(alias = "NewTransformingIndexerInformer")]
#[derive(Debug)]
pub struct Informer;

impl Informer {
    /// Returns a builder of an informer that lists and watches `source`. The builder has no handler yet.
    ///
    /// The default name of the informer describes the listed objects, such as `pods in shop` for the pods in
    /// namespace `shop`.
    pub fn builder<K>(source: impl ListerWatcher) -> InformerBuilder<K, Callbacks<K>>
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Default,
    {
        Self::builder_with_type(source, K::DynamicType::default())
    }

    /// Returns a builder like [`builder`](Self::builder), for an object type that is known only at run time.
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

/// Builder of a plain informer, which has one list and watch, one store and one handler.
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

    /// Sets the handler of the informer. Use [`Callbacks`] to build a handler from closures.
    pub fn handler<H2: EventHandler<K>>(self, handler: H2) -> InformerBuilder<K, H2> {
        InformerBuilder {
            shared: self.shared,
            handler,
        }
    }

    /// Adds objects to the store before the first list, for example objects from an earlier run. The handler
    /// receives no events for these additions.
    ///
    /// If the first list contains a known object, the handler receives an update. If the first list does not
    /// contain a known object, the handler receives [`Deleted::FinalStateUnknown`](crate::object::Deleted).
    ///
    /// # Errors
    /// Returns an error if an object has no name.
    pub fn known_objects(
        mut self,
        known: impl IntoIterator<Item = K>,
    ) -> Result<Self, Nameless<K>> {
        let known: Result<Vec<_>, _> = known.into_iter().map(Object::new).collect();
        self.shared.known = known?;
        Ok(self)
    }

    /// Sets the indices of the store.
    ///
    /// # Errors
    /// Returns an error if two of the indices have the same name.
    pub fn indexers(mut self, indexers: Indexers<K>) -> Result<Self, DuplicateIndex> {
        self.shared = self.shared.indexers(indexers)?;
        Ok(self)
    }

    /// Sets the queue that passes changes from the reflector to the store.
    pub fn queue(mut self, queue: impl Queue<K> + 'static) -> Self {
        self.shared = self.shared.queue(queue);
        self
    }

    /// Creates the informer. Returns a read handle to its store, and the controller that runs the informer.
    ///
    /// Must be called inside a Tokio runtime.
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
