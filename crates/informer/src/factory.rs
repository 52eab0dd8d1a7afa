//! One informer per kind and scope, however often it is asked for.

mod options;

pub use self::options::{InformerOptions, OptionsConflict, QueueKind};

use std::{
    any::{Any, TypeId},
    fmt,
    future::IntoFuture,
    panic::Location,
    sync::Arc,
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use kube_client::Client;
use kube_core::{ApiResource, DynamicObject, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

use self::options::Scope;
use crate::{
    controller::Controller,
    lister::Lister,
    queue::DeltaFifo,
    shared_informer::SharedInformer,
    status::{SyncError, WaitForSync},
    transport::{ListOptions, client::ListWatch, client::TweakListOptions},
};

/// Makes informers and shares them: whoever asks for the same kind in the same scope gets the same
/// informer, so that it is listed, watched and kept once.
///
/// Clones are the same factory.
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
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    default_resync: Duration,
    namespaces: Vec<String>,
    tweak: Option<TweakListOptions>,
    seed: Option<u64>,
    stop: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which they were first asked for.
    informers: Vec<Shared>,
    running: JoinSet<()>,
    shut_down: bool,
}

struct Shared {
    key: Key,
    options: options::Comparable,
    /// A `SharedInformer<K>`, where `K` is the key's type.
    informer: Box<dyn Any + Send + Sync>,
    wait: WaitForSync,
    /// Runs the informer; taken by the start.
    run: Option<Run>,
}

/// What makes two informers the same: the type (which says the representation), the kind for types
/// that have many, and the scope.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    kind: TypeId,
    api_version_kind: String,
    scope: Scope,
}

type Run = Box<dyn FnOnce(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Settles what all informers of a factory have in common.
#[must_use]
pub struct FactoryBuilder {
    client: Client,
    default_resync: Duration,
    namespaces: Vec<String>,
    tweak: Option<TweakListOptions>,
    seed: Option<u64>,
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

impl FactoryBuilder {
    /// The resync period of informers that say nothing else; zero, the default, means none.
    pub fn default_resync(mut self, period: Duration) -> Self {
        self.default_resync = period;
        self
    }

    /// Only these namespaces, for namespaced kinds; each kind has one informer over all of them.
    #[doc(alias = "WithNamespace")]
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
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

    /// Makes the random parts of all informers the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        let Self {
            client,
            default_resync,
            namespaces,
            tweak,
            seed,
        } = self;
        SharedInformerFactory {
            inner: Arc::new(Inner {
                client,
                default_resync,
                namespaces,
                tweak,
                seed,
                stop: watch::Sender::new(false),
                state: Mutex::new(State::default()),
            }),
        }
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.inner.state.lock().informers.len();
        f.debug_struct("SharedInformerFactory")
            .field("informers", &informers)
            .finish_non_exhaustive()
    }
}

impl SharedInformerFactory {
    /// Begins a factory whose informers use this client.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder {
            client,
            default_resync: Duration::ZERO,
            namespaces: Vec::new(),
            tweak: None,
            seed: None,
        }
    }

    /// The informer of a kind; made when it is first asked for, and running after the next
    /// [`SharedInformerFactory::start`]. Must be called inside a Tokio runtime.
    ///
    /// After the factory's shutdown it is an informer that has stopped.
    #[track_caller]
    #[doc(alias = "InformerFor")]
    pub fn informer<K>(&self) -> SharedInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let options = InformerOptions::new();
        self.get_or_make(K::DynamicType::default(), options, Location::caller())
            .0
    }

    /// The informer of a kind with options of its own. Selectors and namespaces make it another
    /// informer; everything else must be the same as when it was first asked for.
    ///
    /// # Errors
    /// There is an informer for this kind and scope with other options.
    #[track_caller]
    pub fn informer_with<K>(
        &self,
        options: InformerOptions<K>,
    ) -> Result<SharedInformer<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        let wanted = options.comparable();
        let dyntype = K::DynamicType::default();
        let kind = K::kind(&dyntype).into_owned();
        let (informer, has) = self.get_or_make(dyntype, options, Location::caller());
        wanted.must_equal(&has, &kind)?;
        Ok(informer)
    }

    /// The informer of a kind that is known at run time only. The factory's namespaces apply, for
    /// nothing says whether the kind has any.
    #[track_caller]
    #[doc(alias = "ForResource")]
    pub fn for_resource(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        self.get_or_make(resource.clone(), InformerOptions::new(), Location::caller())
            .0
    }

    /// Reads from the cache of a kind; asks for its informer.
    #[track_caller]
    pub fn lister<K>(&self) -> Lister<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        self.informer::<K>().lister()
    }

    /// Runs every informer that is not running yet. To be called again after new ones have been asked
    /// for; does nothing after the shutdown. Must be called inside a Tokio runtime.
    pub fn start(&self) {
        let mut state = self.inner.state.lock();
        let State {
            informers, running, ..
        } = &mut *state;
        for run in informers
            .iter_mut()
            .filter_map(|informer| informer.run.take())
        {
            running.spawn(run(self.inner.stop.subscribe()));
        }
    }

    /// Waits until every informer that has been started has synced. Polls nothing.
    pub fn wait_for_cache_sync(&self) -> WaitForCacheSync {
        let state = self.inner.state.lock();
        let started = state
            .informers
            .iter()
            .filter(|informer| informer.run.is_none());
        WaitForCacheSync(started.map(|informer| informer.wait.clone()).collect())
    }

    /// Ends all informers and waits until their tasks have ended: no task is left. May be called
    /// several times, also at once; each call waits. (Dropping the last clone of a factory ends its
    /// informers too, without waiting: their handlers are cut off at an await.)
    ///
    /// # Cancel safety
    /// All informers are told to end at the first poll; dropping the future only stops waiting.
    pub async fn shutdown(&self) {
        {
            let mut state = self.inner.state.lock();
            state.shut_down = true;
            // Those that never ran end with their controllers.
            for informer in &mut state.informers {
                informer.run = None;
            }
        }
        self.inner.stop.send_replace(true);
        // Every running informer holds a receiver until its last task has ended.
        self.inner.stop.closed().await;
    }

    fn get_or_make<K>(
        &self,
        dyntype: K::DynamicType,
        options: InformerOptions<K>,
        place: &Location<'_>,
    ) -> (SharedInformer<K>, options::Comparable)
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let cluster_scoped =
            TypeId::of::<K::Scope>() == TypeId::of::<k8s_openapi::ClusterResourceScope>();
        let key = Key {
            kind: TypeId::of::<K>(),
            api_version_kind: format!("{}/{}", K::api_version(&dyntype), K::kind(&dyntype)),
            scope: options.scope(if cluster_scoped {
                &[]
            } else {
                &self.inner.namespaces
            }),
        };
        let mut state = self.inner.state.lock();
        let known = state.informers.iter().find(|informer| informer.key == key);
        if let Some(known) = known
            && let Some(informer) = known.informer.downcast_ref::<SharedInformer<K>>()
        {
            return (informer.clone(), known.options.clone());
        }
        let comparable = options.comparable();
        let name = format!("{} ({place})", K::plural(&dyntype));
        let (informer, controller) = self.make(dyntype, options, &key.scope, name);
        let run: Run = Box::new(move |stop| Box::pin(run_until(controller, stop)));
        let shut_down = state.shut_down;
        state.informers.push(Shared {
            key,
            options: comparable.clone(),
            informer: Box::new(informer.clone()),
            wait: informer.wait_for_sync(),
            run: (!shut_down).then_some(run),
        });
        (informer, comparable)
    }

    fn make<K>(
        &self,
        dyntype: K::DynamicType,
        options: InformerOptions<K>,
        scope: &Scope,
        name: String,
    ) -> (SharedInformer<K>, Controller<K>)
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let source = |namespace: Option<&String>| {
            let mut source = ListWatch::<K>::with_type(self.inner.client.clone(), &dyntype)
                .labels(&scope.labels)
                .fields(scope.fields.clone());
            if let Some(namespace) = namespace {
                source = source.namespace(namespace);
            }
            match self.inner.tweak.clone() {
                Some(tweak) => source.tweak_list_options(move |options| tweak(options)),
                None => source,
            }
        };
        let mut namespaces = scope.namespaces.iter();
        let first = source(namespaces.next());
        let others: Vec<_> = namespaces
            .map(|namespace| source(Some(namespace)))
            .collect();
        let mut builder = SharedInformer::<K>::builder_with_type(first, dyntype)
            .name(name)
            .resync(options.resync.unwrap_or(self.inner.default_resync));
        for other in others {
            builder = builder.source(other);
        }
        if options.queue == QueueKind::DeltaFifo {
            builder = builder.queue(DeltaFifo::new());
        }
        if let Some(transform) = options.transform {
            builder = builder.try_transform(move |object| transform(object));
        }
        if let Some(seed) = self.inner.seed {
            builder = builder.rng_seed(seed);
        }
        builder.build()
    }
}

async fn run_until<K>(controller: Controller<K>, stop: watch::Receiver<bool>)
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    let mut told = stop.clone();
    let stopped = async move {
        // An error says that the factory is gone, which ends its informers too.
        let _ = told.wait_for(|stop| *stop).await;
    };
    controller.run(stopped).await;
    // Held until here: the shutdown waits for it.
    drop(stop);
}

/// Waits for several informers, of any types and factories, to have synced; resolves when awaited.
///
/// # Cancel safety
/// Dropping it loses nothing.
#[must_use = "nothing waits until this is awaited"]
#[derive(Debug)]
pub struct WaitForCacheSync(Vec<WaitForSync>);

/// Waits for these; see [`SharedInformer::wait_for_sync`].
#[doc(alias = "WaitForNamedCacheSync")]
pub fn wait_for_cache_sync(waits: impl IntoIterator<Item = WaitForSync>) -> WaitForCacheSync {
    WaitForCacheSync(waits.into_iter().collect())
}

impl WaitForCacheSync {
    /// Gives up after so long.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|wait| wait.deadline(deadline))
                .collect(),
        )
    }

    /// Gives up on an informer at the first error that trying again does not change.
    pub fn fail_fast(self) -> Self {
        Self(self.0.into_iter().map(WaitForSync::fail_fast).collect())
    }
}

/// Some informers have not synced; names each, and why.
#[derive(Clone, Debug)]
pub struct CacheSyncError {
    /// One per informer that has not.
    pub unsynced: Vec<SyncError>,
}

impl fmt::Display for CacheSyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.unsynced.iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CacheSyncError {}

impl IntoFuture for WaitForCacheSync {
    type Output = Result<(), CacheSyncError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let results = join_all(self.0.into_iter().map(IntoFuture::into_future)).await;
            let unsynced: Vec<_> = results.into_iter().filter_map(Result::err).collect();
            if unsynced.is_empty() {
                Ok(())
            } else {
                Err(CacheSyncError { unsynced })
            }
        })
    }
}
