//! One informer per kind and scope, however often it is asked for.

mod builder;
mod cache_sync;
mod defaults;
mod definitions;
mod discovery;
mod dynamic;
mod kind;
mod lifecycle;
mod make;
mod options;
mod places;
mod scope;
mod term;
mod type_options;

pub use self::{
    builder::FactoryBuilder,
    cache_sync::{CacheSyncError, WaitForCacheSync, wait_for_cache_sync},
    discovery::{DiscoverError, Discovered},
    kind::{KindError, KindRef},
    lifecycle::Hold,
    options::{InformerOptions, OptionsConflict, QueueKind},
    type_options::{NamespaceOptions, TypeOptions},
};

use std::{fmt, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use self::{
    defaults::Defaults,
    definitions::Definitions,
    make::Request,
    options::Comparable,
    places::{Made, Places, Want},
};
use crate::{
    controller::Controller,
    lister::Lister,
    shared_informer::SharedInformer,
    status::InformerError,
    transport::client::{ClientSource, TweakListOptions},
};

/// Makes informers and shares them: whoever asks for the same kind in the same scope gets the same
/// informer, so that it is listed, watched and kept once.
///
/// Clones are the same factory. All of it may be used from several threads at once.
///
/// # The life of an informer
///
/// It is made when it is first asked for, runs from the next [`SharedInformerFactory::start`] on, and
/// ends with [`SharedInformerFactory::shutdown`], or alone with
/// [`SharedInformerFactory::stop_informer`]. One that is only [held](SharedInformerFactory::hold) runs at
/// once, and ends when nobody holds it any more.
///
/// After the shutdown whoever asks for it gets it still: its cache can be read, and handlers are
/// refused with [`Stopped`](crate::shared_informer::Stopped). What is asked for the first time then is
/// an informer that has stopped, with an empty cache.
///
/// One that has stopped while the factory goes on, as an adopted one may, is replaced by a new one
/// when it is next asked for; those who have the old one keep it.
///
/// ```no_run
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::{client, factory::SharedInformerFactory};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = client::connect(kube_client::Config::infer().await?)?;
/// let factory = SharedInformerFactory::builder(client).default_resync(Duration::from_secs(60)).build();
/// let pods = factory.informer::<Pod>();
/// pods.on_delete(|gone| println!("{} is gone", gone.object_name())).register()?;
/// factory.start();
/// factory.wait_for_cache_sync().deadline(Duration::from_secs(30)).await?;
/// // … read with pods.lister() …
/// factory.shutdown().await;
/// # Ok(()) }
/// ```
#[doc(alias = "NewSharedInformerFactory")]
#[doc(alias = "NewSharedInformerFactoryWithOptions")]
#[doc(alias = "NewFilteredSharedInformerFactory")]
#[doc(alias = "DynamicSharedInformerFactory")]
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
}

struct Inner {
    client: Arc<dyn ClientSource>,
    defaults: Defaults,
    tweak: Option<TweakListOptions>,
    seed: Option<u64>,
    places: Arc<Places>,
    /// Only if they are to be followed.
    definitions: Option<Definitions>,
}

/// The type's place among the factory's informers has another informer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the factory has another informer of {kind} already")]
pub struct PlaceTaken {
    kind: String,
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("informers", &self.inner.places.len())
            .finish_non_exhaustive()
    }
}

impl SharedInformerFactory {
    /// Begins a factory whose informers use this client: a [`Client`](kube_client::Client), or one that
    /// renews itself.
    pub fn builder(client: impl ClientSource) -> FactoryBuilder {
        FactoryBuilder::new(Arc::new(client))
    }

    /// The informer of a kind; made when it is first asked for, and running after the next
    /// [`SharedInformerFactory::start`]. Must be called inside a Tokio runtime.
    #[doc(alias = "InformerFor")]
    pub fn informer<K>(&self) -> SharedInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let request = Request::of_type(InformerOptions::new());
        self.get_or_make(request, Want::Pinned).informer
    }

    /// The informer of a kind with options of its own. Selectors and namespaces make it another
    /// informer; everything else must be the same as when it was first asked for. Must be called
    /// inside a Tokio runtime.
    ///
    /// # Errors
    /// There is an informer for this kind and scope with other options.
    pub fn informer_with<K>(
        &self,
        options: InformerOptions<K>,
    ) -> Result<SharedInformer<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let request = Request::of_type(options);
        let found = self.asked_for(request, Want::Pinned)?;
        Ok(found.informer)
    }

    /// Reads from the cache of a kind; asks for its informer.
    pub fn lister<K>(&self) -> Lister<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        self.informer::<K>().lister()
    }

    /// The informer of a kind, made by a constructor of your own if there is none yet: it then is what
    /// everybody gets who asks for the kind, and this factory runs it. Must be called inside a Tokio
    /// runtime.
    ///
    /// `make` gets the factory's client and the type's resync period, and is called at most once for a
    /// type, also from two threads; the second one waits. Namespaces, tweaks and transforms of the
    /// factory are its own business. If it asks this factory for the same type, also through the
    /// constructor of another type that asks for this one, be it in another thread, then who asks gets
    /// the usual informer, and that keeps the place.
    #[doc(alias = "NewInformerFunc")]
    #[doc(alias = "InformerFor")]
    pub fn informer_for<K>(
        &self,
        make: impl FnOnce(Arc<dyn ClientSource>, Duration) -> (SharedInformer<K>, Controller<K>),
    ) -> SharedInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let key = self.key(&Request::<K>::of_type(InformerOptions::new()));
        let fill = || {
            let period = self.inner.defaults.resync::<K>();
            let (informer, controller) = make(Arc::clone(&self.inner.client), period);
            Made {
                informer,
                options: Comparable::constructed(),
                run: Some(make::run(controller, || None)),
            }
        };
        self.inner
            .places
            .get_or_make(&key, Want::Pinned, fill)
            .informer
    }

    /// Lets an informer that somebody else runs, for example another factory, take its type's place:
    /// everybody who asks this factory for the type gets it. This factory waits for its sync, and
    /// neither starts nor stops it. Adopting it again changes nothing.
    ///
    /// # Errors
    /// The place has another informer, which has not stopped.
    pub fn adopt<K>(&self, informer: SharedInformer<K>) -> Result<(), PlaceTaken>
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Default,
    {
        let kind = informer.kind().to_owned();
        let key = self.key(&Request::<K>::of_type(InformerOptions::new()));
        let adopted = self.inner.places.adopt(&key, informer);
        adopted.then_some(()).ok_or(PlaceTaken { kind })
    }

    /// Runs every informer that is not running yet. To be called again after new ones have been asked
    /// for; does nothing after the shutdown. Must be called inside a Tokio runtime.
    pub fn start(&self) {
        self.inner.places.start();
    }

    /// Waits until every informer that has been started, and every adopted one, has synced. Polls
    /// nothing.
    pub fn wait_for_cache_sync(&self) -> WaitForCacheSync {
        WaitForCacheSync(self.inner.places.waits())
    }

    /// Waits until an informer of this factory fails, and returns which one and why; for ever if none
    /// does. If several fail, each call returns the first. An informer that fails takes no other with it,
    /// and its place is free: the next request for it makes a new one.
    ///
    /// An informer fails only where waiting and retrying can't help, see
    /// [`FailureCause`](crate::status::FailureCause); no error of a server does. A program that must not
    /// go on with a cache that is no longer updated selects on this:
    ///
    /// ```no_run
    /// # async fn example(factory: kube_informer::SharedInformerFactory) -> anyhow::Result<()> {
    /// tokio::select! {
    ///     failure = factory.failed() => return Err(failure.into()),
    ///     signal = tokio::signal::ctrl_c() => signal?,
    /// }
    /// factory.shutdown().await;
    /// # Ok(()) }
    /// ```
    ///
    /// An [adopted](Self::adopt) informer reports its failure to whoever runs it. The future holds nothing
    /// of the factory.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub fn failed(&self) -> impl Future<Output = InformerError> + Send + use<> {
        let mut failure = self.inner.places.failure.subscribe();
        async move {
            let failed = failure.wait_for(Option::is_some).await;
            match failed.ok().and_then(|failed| failed.clone()) {
                Some(failure) => failure,
                // The factory is gone, and no informer of it can fail any more.
                None => std::future::pending().await,
            }
        }
    }

    /// Ends all informers but the adopted ones, and waits until their tasks have ended: no task is
    /// left. May be called several times, also at once; each call waits. (Dropping the last clone of a
    /// factory ends its informers too, without waiting: their handlers are cut off at an await.)
    ///
    /// Waiting for it inside a handler of one of the informers waits for ever.
    ///
    /// # Cancel safety
    /// All informers are told to end at the first poll; dropping the future only stops waiting.
    pub async fn shutdown(&self) {
        self.inner.places.shut_down();
        self.inner.places.all_ended().await;
    }
}
