//! Ends a single informer of a factory, on request or after the informer's last [`Hold`] is dropped.
//!
//! A hold is a handle that keeps one informer running. The end of one informer does not affect the factory's
//! other informers.

use std::{
    ops::Deref,
    sync::{Arc, Weak},
};

use derive_where::derive_where;
use kube_core::{DynamicObject, Resource};
use serde::de::DeserializeOwned;

use super::{
    SharedInformerFactory,
    kind::{KindError, KindRef},
    options::{InformerOptions, OptionsConflict},
    registry::{Ending, EntryId, Lookup, Registry, Want},
    request::Request,
};
use crate::{shared_informer::SharedInformer, status::Status};

/// Handle that keeps one informer of a factory running until the last hold of that informer is dropped.
///
/// After the last hold is dropped, the informer still runs for the factory's [idle grace
/// period](super::FactoryBuilder::idle_grace), and then ends. Each clone of a hold counts as another hold.
///
/// A hold dereferences to its [`SharedInformer`]. Clones of that `SharedInformer` do not keep the informer
/// running. Listers, registrations, subscriptions and waits do not either. Keep the hold for as long as the
/// informer is needed.
///
/// A hold can also be dropped outside of a runtime and inside a handler. The drop does not wait for the
/// informer to end.
#[derive_where(Debug)]
pub struct Hold<K> {
    informer: SharedInformer<K>,
    id: EntryId,
    registry: Weak<Registry>,
}

impl<K> Deref for Hold<K> {
    type Target = SharedInformer<K>;

    fn deref(&self) -> &SharedInformer<K> {
        &self.informer
    }
}

impl<K> Clone for Hold<K> {
    fn clone(&self) -> Self {
        if let Some(registry) = self.registry.upgrade() {
            registry.hold(self.id);
        }
        Self {
            informer: self.informer.clone(),
            id: self.id,
            registry: Weak::clone(&self.registry),
        }
    }
}

impl<K> Drop for Hold<K> {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.release(self.id);
        }
    }
}

impl SharedInformerFactory {
    /// Returns a [`Hold`] of the informer of the kind `K`, and starts the informer at once.
    ///
    /// The first request creates the informer. No call of [`SharedInformerFactory::start`] is needed. The
    /// informer ends if its last hold is dropped and no new hold is requested within the factory's [idle
    /// grace period](super::FactoryBuilder::idle_grace). This method must be called inside a Tokio runtime.
    ///
    /// [`SharedInformerFactory::informer`] returns the same informer, but also pins it. A pinned informer
    /// runs until it is stopped or the factory ends, even if no hold exists.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(
    /// #     factory: kube_informer::SharedInformerFactory,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = factory.hold::<Pod>();
    /// pods.wait_for_sync().await?;
    /// println!("{} pods", pods.indexer().len());
    /// drop(pods); // a minute later the watch ends, unless another hold exists
    /// # Ok(()) }
    /// ```
    pub fn hold<K>(&self) -> Hold<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        self.hold_requested(Request::of_type(InformerOptions::new()))
    }

    /// Returns a [`Hold`] of the informer with the given options, and starts the informer at once.
    ///
    /// Requests with different selectors or namespaces return holds of different informers, as
    /// [`SharedInformerFactory::informer_with`] describes. This method must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// Returns [`OptionsConflict`] if the informer of this kind, these namespaces and these selectors exists
    /// with other options.
    pub fn hold_with<K>(&self, options: InformerOptions<K>) -> Result<Hold<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let request = Request::of_type(options);
        let found = self.get_with_options(request, Want::Held)?;
        Ok(self.held(found))
    }

    /// Returns a [`Hold`] of the informer of a kind that is known only at run time, and starts the informer
    /// at once.
    ///
    /// The informer is the one that [`SharedInformerFactory::for_resource`] returns. This method must be
    /// called inside a Tokio runtime.
    ///
    /// # Errors
    /// Returns [`KindError`] for the same reasons as [`SharedInformerFactory::for_resource`].
    pub fn hold_resource(
        &self,
        kind: &(impl KindRef + ?Sized),
    ) -> Result<Hold<DynamicObject>, KindError> {
        let request = Request::of_resource(kind, InformerOptions::new())?;
        Ok(self.hold_requested(request))
    }

    pub(super) fn hold_requested<K>(&self, request: Request<K>) -> Hold<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        self.held(self.get_or_make(request, Want::Held))
    }

    fn held<K>(&self, found: Lookup<K>) -> Hold<K> {
        Hold {
            informer: found.informer,
            id: found.id,
            registry: Arc::downgrade(&self.inner.registry),
        }
    }

    /// Ends the informer that [`SharedInformerFactory::informer`] returns for `K`, and waits until it has
    /// ended.
    ///
    /// Returns `false` if the factory does not have this informer. [`SharedInformerFactory::stop_informer`]
    /// describes the effects.
    ///
    /// # Cancel safety
    /// The first poll signals the informer to end. Dropping the future only ends the wait.
    pub async fn stop<K>(&self) -> bool
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Default,
    {
        let key = self.key(&Request::<K>::of_type(InformerOptions::new()));
        match self.inner.registry.look::<K>(&key) {
            Some(informer) => self.stop_informer(&informer).await,
            None => false,
        }
    }

    /// Ends one informer of the factory, and waits until its tasks have ended.
    ///
    /// Returns `false` if the factory does not have this informer or was shut down. After the first poll of
    /// this future, the next request for the informer creates a new informer with an empty cache and without
    /// handlers and [holds](Hold). The next [`SharedInformerFactory::start`] runs the new informer.
    ///
    /// Existing references to the old informer stay valid. Its cache and its listers keep their last content.
    /// Its handlers receive no more events. Undelivered events are discarded. Registering a handler fails
    /// with [`Stopped`](crate::shared_informer::Stopped).
    ///
    /// An informer that was added with [`adopt`](SharedInformerFactory::adopt) is only removed from the
    /// factory. It keeps running, because the factory does not run it.
    ///
    /// The method can be called several times, also concurrently. Each call waits until the informer's tasks
    /// have ended.
    ///
    /// A handler of `informer` must not wait for this future, because this future waits for the end of the
    /// handler.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(factory: kube_informer::SharedInformerFactory) {
    /// let old = factory.informer::<Pod>();
    /// factory.stop_informer(&old).await;
    /// let new = factory.informer::<Pod>();
    /// factory.start();
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// The first poll signals the informer to end. Dropping the future only ends the wait.
    #[doc(alias = "RemoveInformer")]
    pub async fn stop_informer<K>(&self, informer: &SharedInformer<K>) -> bool
    where
        K: Send + Sync + 'static,
    {
        match self.inner.registry.end(informer) {
            Ending::NotHere => false,
            Ending::Left(None) => true,
            Ending::Left(never_ran) => {
                drop(never_ran);
                // The dropped controller loop reports its end in the status.
                let mut status = informer.status();
                status.wait_for(Status::is_stopped).await;
                true
            }
            Ending::Told(demand) => {
                demand.closed().await;
                true
            }
        }
    }
}
