//! Creates, starts and stops the informers of a program: one shared informer for each kind and scope.
//!
//! Requests for the same kind in the same scope (namespaces and selectors) return the same informer. The
//! factory starts its informers, waits for their caches to sync, and shuts them down. The factory does not
//! start or stop adopted informers, which another part of the program owns.

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

/// Creates informers, and shares each informer between all requests for the same kind and scope.
///
/// The scope consists of namespaces and selectors. Regardless of the number of requests, each informer has
/// one cache. It has one list and one watch for each namespace of its scope, or one list and one watch for
/// all namespaces.
///
/// Clones share the same factory. All methods can be called from several threads at once.
///
/// # Lifecycle of an informer
///
/// The first request for an informer creates it, and the next [`SharedInformerFactory::start`] runs it.
/// [`SharedInformerFactory::shutdown`] ends all informers except [adopted](Self::adopt) ones, and
/// [`SharedInformerFactory::stop_informer`] ends a single informer. An informer that is only requested with
/// [`hold`](SharedInformerFactory::hold) runs at once. It ends when its last [`Hold`] is dropped and the
/// [idle grace period](FactoryBuilder::idle_grace) has passed.
///
/// After the shutdown, requests still return the existing informers. Their caches can be read, but
/// registering a handler fails with [`Stopped`](crate::shared_informer::Stopped). An informer that is first
/// requested after the shutdown is already stopped and has an empty cache.
///
/// An informer can also stop while the factory continues, for example an adopted informer that its owner
/// stops. The next request for a stopped informer creates a new informer that replaces it. Existing
/// references to the old informer stay valid.
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
    /// State of the watched `CustomResourceDefinition` objects; `None` if the factory does not watch them.
    definitions: Option<Definitions>,
}

/// Error of [`SharedInformerFactory::adopt`]: the factory already has another informer of the same kind.
///
/// The other informer has not stopped, and the factory returns it for requests that set no options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the factory already has another informer of {kind}; stop that one first, or use it")]
pub struct AlreadyRegistered {
    kind: String,
}

/// Error of [`SharedInformerFactory::informer_for`]: a constructor requested the informer that it was
/// creating.
///
/// The constructor is the function that the program passed to `informer_for`. It must return the informer
/// without requesting this informer from the same factory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the constructor of the informer of {kind} requested that informer from its own factory; build the informer in the constructor instead"
)]
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
    /// Returns a builder of a factory whose informers send their requests with `client`.
    ///
    /// `client` is a [`Client`](kube_client::Client), or another [`ClientSource`], which selects a client for
    /// each list and each watch.
    pub fn builder(client: impl ClientSource) -> FactoryBuilder {
        FactoryBuilder::new(Arc::new(client))
    }

    /// Returns the informer of the kind `K` with the factory's default options. Creates the informer if it
    /// does not exist.
    ///
    /// The informer starts at the next [`SharedInformerFactory::start`]. This method must be called inside a
    /// Tokio runtime.
    #[doc(alias = "InformerFor")]
    pub fn informer<K>(&self) -> SharedInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let request = Request::of_type(InformerOptions::new());
        self.get_or_make(request, Want::Pinned).informer
    }

    /// Returns the informer of the kind `K` with the given options. The first request creates the informer.
    ///
    /// Requests with different selectors or namespaces return different informers. Requests with equal
    /// selectors and namespaces return the same informer, and their other options must be equal too. This
    /// method must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// Returns [`OptionsConflict`] if the informer of this kind, these namespaces and these selectors exists
    /// with other options.
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

    /// Returns a lister that reads the cache of the kind `K`. Creates the kind's informer if it does not
    /// exist.
    ///
    /// This method must be called inside a Tokio runtime.
    pub fn lister<K>(&self) -> Lister<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        self.informer::<K>().lister()
    }

    /// Returns the informer of the kind `K`. If there is none, calls `make` to create the informer.
    ///
    /// The factory runs this informer. Later calls of [`informer`](Self::informer), and other requests for
    /// the kind without options, return the same informer. This method must be called inside a Tokio runtime.
    ///
    /// `make` receives the factory's client and the factory's resync period for the type `K`. The factory
    /// does not apply its namespaces, list options and transforms to this informer. `make` must apply them.
    ///
    /// The factory holds no lock while `make` runs, so `make` can request other informers from this factory.
    /// If several threads call this method at once for the same type, several calls of `make` can run. The
    /// factory keeps the first informer that is created, and drops the others without running them.
    ///
    /// # Errors
    /// Returns [`RecursiveConstructor`] if `make` requests the informer of the kind `K` from this factory. If
    /// `make` calls [`informer`](Self::informer) for `K`, that call creates an informer with the default
    /// options. The factory keeps that informer, although `informer_for` returns an error.
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

    /// Registers an informer that this factory does not run, for example an informer of another factory.
    ///
    /// Every later request for the kind `K` that sets no options returns this informer.
    /// [`SharedInformerFactory::wait_for_cache_sync`] also waits for this informer. The factory neither
    /// starts nor stops it. Adopting the same informer again has no effect.
    ///
    /// # Errors
    /// Returns [`AlreadyRegistered`] if the factory already has another informer for these requests, and that
    /// informer has not stopped.
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

    /// Returns the informers of this factory, including [adopted](Self::adopt) ones.
    ///
    /// They are in the order in which the program first requested or adopted them.
    ///
    /// Each element reports which objects the informer covers, its status and its memory use.
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

    /// Starts every informer of this factory that is not running yet, except [adopted](Self::adopt) ones.
    ///
    /// Another part of the program runs the adopted informers. Call this method again after the factory has
    /// created another informer. After [`shutdown`](Self::shutdown), this method has no effect. This method
    /// must be called inside a Tokio runtime.
    pub fn start(&self) {
        self.inner.registry.start();
    }

    /// Returns a future that waits until all started and all adopted informers have synced.
    ///
    /// If [`start`](Self::start) was never called, the future does not wait for informers that are not
    /// started. Instead, the future returns
    /// [`SyncFailure::NotStarted`](crate::status::SyncFailure::NotStarted) for each of them. client-go's
    /// `WaitForCacheSync` ignores such informers.
    pub fn wait_for_cache_sync(&self) -> WaitForCacheSync {
        WaitForCacheSync(self.inner.registry.waits())
    }

    /// Waits until an informer of this factory fails, and returns the informer's name and the cause.
    ///
    /// If no informer fails, the future never resolves. If several informers fail, every call of this method
    /// returns the first failure. A failed informer does not affect other informers. The next request for a
    /// failed informer creates a new one.
    ///
    /// An informer fails only for a reason that retries cannot fix, see
    /// [`FailureCause`](crate::status::FailureCause). Errors of a server are always retried. A program that
    /// must stop when one of its caches is no longer updated can select on this future:
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
    /// This future does not report the failure of an [adopted](Self::adopt) informer. The owner of that
    /// informer must observe the failure. The future does not keep the factory alive.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait. A later call still returns the failure.
    pub fn failed(&self) -> impl Future<Output = InformerError> + Send + use<> {
        let mut failure = self.inner.registry.failure.subscribe();
        async move {
            let failed = failure.wait_for(Option::is_some).await;
            match failed.ok().and_then(|failed| failed.clone()) {
                Some(failure) => failure,
                // The factory is dropped, so none of its informers can fail any more.
                None => std::future::pending().await,
            }
        }
    }

    /// Ends all informers of this factory except [adopted](Self::adopt) ones, and waits until all their tasks
    /// have ended.
    ///
    /// Another part of the program runs the adopted informers. The method can be called several times, also
    /// concurrently. Each call waits.
    ///
    /// Dropping the last clone of a factory also ends these informers, but does not wait. The drop cancels
    /// each handler in progress at an `.await`.
    ///
    /// A handler of one of these informers must not wait for this future, because this future waits for the
    /// end of the handler.
    ///
    /// # Cancel safety
    /// The first poll signals these informers to end. Dropping the future only stops the wait.
    pub async fn shutdown(&self) {
        self.inner.registry.shut_down();
        self.inner.registry.all_ended().await;
    }
}
