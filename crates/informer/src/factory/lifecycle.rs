//! One informer of a factory that ends before the others: because it is stopped, or because nobody
//! holds it any more.

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
    registry::{Ending, EntryId, Found, Registry, Want},
    request::Request,
};
use crate::{shared_informer::SharedInformer, status::Status};

/// Holds an informer of a factory: it runs for as long as somebody does, and for the factory's
/// [grace](super::FactoryBuilder::idle_grace) after that. Clones hold it too.
///
/// It is used as the [`SharedInformer`] it holds. A clone of that one, a lister, a registration, a
/// subscription, and whoever waits for something hold nothing: whoever goes on needing the informer
/// keeps the hold.
///
/// Dropping the last one may be done anywhere, also outside of a runtime and inside a handler; the
/// informer's own task ends it.
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
    /// The informer of a kind, for as long as somebody holds it: it runs from now on, without
    /// [`SharedInformerFactory::start`], and ends by itself when the last hold has been dropped and
    /// nobody has taken a new one within the factory's
    /// [grace](super::FactoryBuilder::idle_grace). Whoever takes one within it gets the same informer,
    /// which has not been listed again; whoever comes later gets a new one. Must be called inside a
    /// Tokio runtime.
    ///
    /// It is the informer that [`SharedInformerFactory::informer`] gives. Who asks for it there pins
    /// it: it runs until it is stopped, or the factory ends, whoever holds it.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(
    /// #     factory: kube_informer::SharedInformerFactory,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = factory.hold::<Pod>();
    /// pods.wait_for_sync().await?;
    /// println!("{} pods", pods.indexer().len());
    /// drop(pods); // a minute later nothing is watched any more, unless somebody else holds it
    /// # Ok(()) }
    /// ```
    pub fn hold<K>(&self) -> Hold<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        self.hold_requested(Request::of_type(InformerOptions::new()))
    }

    /// The same with options of its own, as for [`SharedInformerFactory::informer_with`].
    ///
    /// # Errors
    /// There is an informer for this kind and scope with other options.
    pub fn hold_with<K>(&self, options: InformerOptions<K>) -> Result<Hold<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let request = Request::of_type(options);
        let found = self.get_with_options(request, Want::Held)?;
        Ok(self.held(found))
    }

    /// The same for a kind that is known at run time only, as for
    /// [`SharedInformerFactory::for_resource`].
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

    fn held<K>(&self, found: Found<K>) -> Hold<K> {
        Hold {
            informer: found.informer,
            id: found.id,
            registry: Arc::downgrade(&self.inner.registry),
        }
    }

    /// Ends the informer that [`SharedInformerFactory::informer`] gives, if there is one; see
    /// [`SharedInformerFactory::stop_informer`].
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

    /// Ends one informer of the factory, and waits until its tasks have ended; whether the factory had
    /// it. Its place is free from the first poll on: whoever asks for it next gets a new one, with an
    /// empty cache and no handlers, which the next [`SharedInformerFactory::start`] runs.
    ///
    /// Those who have the old one keep it: its cache, also through listers, stays what it was last, its
    /// handlers hear nothing more (what they had not been told is discarded and counted), and new ones
    /// are refused with [`Stopped`](crate::shared_informer::Stopped). Handlers are not taken over by
    /// the new one. Pins and [holds](Hold) were of the old one too.
    ///
    /// An adopted informer leaves its place and goes on, for others run it. After the shutdown, and
    /// for an informer whose place has gone to another one, this does nothing. May be called several
    /// times, also at once; each call waits for the end.
    ///
    /// Waiting for it inside one of the informer's own handlers waits for ever.
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
    /// The informer is told to end at the first poll; dropping the future only stops waiting.
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
                // Its loop existed all the same, and is gone when it says so.
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
