//! One informer per kind and scope, however often it is requested.

mod builder;
mod cache_sync;
mod constructing;
mod defaults;
mod definitions;
mod discovery;
mod dynamic;
mod kind;
mod lifecycle;
mod listing;
mod make;
mod namespace_options;
mod options;
mod registry;
mod request;
mod scope;

pub use self::{
    builder::FactoryBuilder,
    cache_sync::{CacheSyncError, WaitForCacheSync, wait_for_cache_sync},
    discovery::{DiscoverError, Discovered},
    kind::{KindError, KindRef},
    lifecycle::Hold,
    listing::{AnyInformer, Coverage, CoveredNamespace, Representation},
    namespace_options::NamespaceOptions,
    options::{InformerOptions, OptionsConflict, QueueKind},
};

use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use self::{
    constructing::Constructing,
    defaults::Defaults,
    definitions::Definitions,
    listing::Registered,
    registry::{New, Registry, Want},
    request::Request,
};
use crate::{
    controller::Controller,
    lister::Lister,
    shared_informer::SharedInformer,
    status::InformerError,
    transport::client::{ClientSource, TweakListOptions},
};

/// Makes informers and shares them: all requests for the same kind in the same scope get the same informer, so
/// that it is listed, watched and kept once.
///
/// Clones are the same factory. All of it may be used from several threads at once.
///
/// # The life of an informer
///
/// It is made when it is first requested, runs from the next [`SharedInformerFactory::start`] on, and
/// ends with [`SharedInformerFactory::shutdown`], or alone with
/// [`SharedInformerFactory::stop_informer`]. One that is only [held](SharedInformerFactory::hold) runs at
/// once, and ends when it is no longer held.
///
/// After the shutdown a request still gets it: its cache can be read, and handlers are refused with
/// [`Stopped`](crate::shared_informer::Stopped). What is requested for the first time then is an informer that
/// has stopped, with an empty cache.
///
/// One that has stopped while the factory goes on, as an adopted one may, is replaced by a new one at the next
/// request; those who have the old one keep it.
///
/// ```no_run
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::{client, factory::SharedInformerFactory};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = client::connect(kube_client::Config::infer().await?)?;
/// let factory = SharedInformerFactory::builder(client).resync(Duration::from_secs(60)).build();
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
    registry: Arc<Registry>,
    /// Only if they are to be followed.
    definitions: Option<Definitions>,
}

/// The factory has another informer of the type, which can't be replaced by the one that was to be adopted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the factory has another informer of {kind} already")]
pub struct AlreadyRegistered {
    kind: String,
}

/// A constructor given to [`SharedInformerFactory::informer_for`] asks for the informer that it was to make,
/// from the same factory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the constructor of the informer of {kind} requested that informer from its own factory")]
pub struct RecursiveConstructor {
    kind: String,
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("informers", &self.inner.registry.len())
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
        let found = self.get_with_options(request, Want::Pinned)?;
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

    /// The informer of a kind, made by a constructor of the program's if there is none yet: every later request
    /// for the kind gets it, and this factory runs it. Must be called inside a Tokio runtime.
    ///
    /// `make` receives the factory's client and the type's resync period. It runs without any lock, so it may
    /// request other informers from this factory. If several threads call this at once for a type, several
    /// constructors may run; the first informer that is made is the type's, and the others are dropped without
    /// having run. Namespaces, tweaks and transforms of the factory are for the constructor to apply.
    ///
    /// # Errors
    /// The constructor asks for the informer of its own type from this factory. If it did so in a way other
    /// than this method, the type has a usual informer from then on.
    #[doc(alias = "NewInformerFunc")]
    #[doc(alias = "InformerFor")]
    pub fn informer_for<K>(
        &self,
        make: impl FnOnce(Arc<dyn ClientSource>, Duration) -> (SharedInformer<K>, Controller<K>),
    ) -> Result<SharedInformer<K>, RecursiveConstructor>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let (inner, options) = (&self.inner, InformerOptions::<K>::new());
        let complete = inner.defaults.complete(options.clone());
        let key = self.key(&Request::of_type(options));
        let any = |_: Option<&InformerOptions<K>>| Ok::<_, Infallible>(());
        let Ok(found) = inner.registry.get_if(&key, Want::Pinned, any);
        if let Some(found) = found {
            return Ok(found.informer);
        }
        let recursive = || RecursiveConstructor {
            kind: key.kind.kind.clone(),
        };
        let constructing = Constructing::begin(inner.registry.id(), &key).ok_or_else(recursive)?;
        let (informer, controller) =
            make(Arc::clone(&inner.client), complete.loop_options.resync());
        if constructing.recursed() {
            return Err(recursive());
        }
        let registered = Registered {
            informer,
            kind: key.kind.clone(),
            coverage: None,
            options: None,
        };
        let run = Some(make::run(controller, || None));
        let new = || New { registered, run };
        let registry = &inner.registry;
        let Ok(found) = registry.get_if_or_make(&key, Want::Pinned, any, new);
        Ok(found.informer)
    }

    /// Registers an informer that something else runs, for example another factory: every later request for its
    /// type gets it. This factory waits for its sync, and neither starts nor stops it. Adopting it again changes
    /// nothing.
    ///
    /// # Errors
    /// There is another informer of the type, which has not stopped.
    pub fn adopt<K>(&self, informer: SharedInformer<K>) -> Result<(), AlreadyRegistered>
    where
        K: Resource + Send + Sync + 'static,
        K::DynamicType: Default,
    {
        let kind = informer.kind().to_owned();
        let key = self.key(&Request::<K>::of_type(InformerOptions::new()));
        constructing::note(self.inner.registry.id(), &key);
        let adopted = self.inner.registry.adopt(&key, informer);
        adopted.then_some(()).ok_or(AlreadyRegistered { kind })
    }

    /// The informers that this factory has, in the order in which they were first requested, adopted ones
    /// included: what each covers, what it is doing and what it costs.
    ///
    /// ```no_run
    /// # fn example(factory: &kube_informer::SharedInformerFactory) {
    /// for informer in factory.informers() {
    ///     println!("{}: {}", informer.name(), informer.memory());
    /// }
    /// # }
    /// ```
    pub fn informers(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.inner.registry.list()
    }

    /// Runs every informer that is not running yet. To be called again after new ones have been asked
    /// for; does nothing after the shutdown. Must be called inside a Tokio runtime.
    pub fn start(&self) {
        self.inner.registry.start();
    }

    /// Waits until every informer that has been started, and every adopted one, has synced. Polls nothing. Before
    /// the first [`start`](Self::start) it fails at once with
    /// [`SyncFailure::NotStarted`](crate::status::SyncFailure::NotStarted) if the factory has made an informer, since
    /// nothing would end the wait (client-go's returns as if all were synced).
    pub fn wait_for_cache_sync(&self) -> WaitForCacheSync {
        WaitForCacheSync(self.inner.registry.waits())
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
        let mut failure = self.inner.registry.failure.subscribe();
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
        self.inner.registry.shut_down();
        self.inner.registry.all_ended().await;
    }
}
