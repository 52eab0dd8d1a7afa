//! Ends single informers of a factory, on request or after their last hold is dropped.
//!
//! The other informers of the factory continue.

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

/// Keeps an informer of a factory running until the last hold is dropped.
///
/// The informer then runs for the factory's [grace](super::FactoryBuilder::idle_grace) and ends. A clone is
/// another hold.
///
/// A hold dereferences to its [`SharedInformer`]. Clones of that informer, listers, registrations,
/// subscriptions and waits do not hold it. Keep the hold for as long as the informer is needed.
///
/// A hold can be dropped anywhere, also outside of a runtime and inside a handler. The informer's own task ends
/// the informer.
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
    /// Returns a hold of the informer of a kind; the informer runs at once.
    ///
    /// The informer needs no [`SharedInformerFactory::start`]. It ends if the last hold is dropped and no new
    /// hold is requested within the factory's [grace](super::FactoryBuilder::idle_grace). A request within
    /// this time returns the same informer without a new list. A later request returns a new informer. Must
    /// be called inside a Tokio runtime.
    ///
    /// [`SharedInformerFactory::informer`] returns the same informer, and pins it: it then runs until it is
    /// stopped or the factory ends, even without a hold.
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

    /// Returns a hold of an informer with the given options, see [`SharedInformerFactory::informer_with`].
    ///
    /// # Errors
    /// An informer of this kind and scope exists with other options.
    pub fn hold_with<K>(&self, options: InformerOptions<K>) -> Result<Hold<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let request = Request::of_type(options);
        let found = self.get_with_options(request, Want::Held)?;
        Ok(self.held(found))
    }

    /// Returns a hold of the informer of a kind that is known only at run time.
    ///
    /// See [`SharedInformerFactory::for_resource`].
    ///
    /// # Errors
    /// As for [`SharedInformerFactory::for_resource`].
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

    /// Ends the informer that [`SharedInformerFactory::informer`] returns; returns whether there was one.
    ///
    /// See [`SharedInformerFactory::stop_informer`].
    ///
    /// # Cancel safety
    /// As for [`SharedInformerFactory::stop_informer`].
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
    /// The method returns whether the factory had the informer. From the first poll on, the next request
    /// creates a new informer with an empty cache and no handlers. The next [`SharedInformerFactory::start`]
    /// runs the new informer.
    ///
    /// Existing references to the old informer stay valid. Its cache and its listers keep their last content.
    /// Its handlers receive no more events; undelivered events are discarded and counted. Registering a handler
    /// fails with [`Stopped`](crate::shared_informer::Stopped). The new informer does not inherit handlers,
    /// pins or [holds](Hold).
    ///
    /// An adopted informer leaves the factory and keeps running, because the factory does not run it. This
    /// method has no effect after the shutdown, or if another informer has replaced this one. It can be called
    /// several times, also concurrently; each call waits for the end.
    ///
    /// A handler of this informer must not wait for this future: the wait would never end.
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
    /// The first poll signals the informer to end. Dropping the future only stops the wait.
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
