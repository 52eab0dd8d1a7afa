//! One informer per kind and scope, however often it is asked for.

mod builder;
mod cache_sync;
mod defaults;
mod discovery;
mod kind;
mod options;
mod places;

pub use self::{
    builder::FactoryBuilder,
    cache_sync::{CacheSyncError, WaitForCacheSync, wait_for_cache_sync},
    discovery::{DiscoverError, Discovered},
    kind::{KindError, KindRef},
    options::{InformerOptions, OptionsConflict, QueueKind},
};

use std::{any::TypeId, borrow::Cow, fmt, panic::Location, sync::Arc, time::Duration};

use k8s_openapi::ClusterResourceScope;
use kube_core::{DynamicObject, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use self::{
    defaults::Defaults,
    options::{Comparable, Scope},
    places::{Key, Made, Places, Run},
};
use crate::{
    controller::Controller,
    lister::Lister,
    queue::DeltaFifo,
    shared_informer::SharedInformer,
    transport::client::{ClientSource, ListWatch, TweakListOptions},
};

/// Makes informers and shares them: whoever asks for the same kind in the same scope gets the same
/// informer, so that it is listed, watched and kept once.
///
/// Clones are the same factory. All of it may be used from several threads at once.
///
/// # The life of an informer
///
/// It is made when it is first asked for, runs from the next [`SharedInformerFactory::start`] on, and
/// ends with [`SharedInformerFactory::shutdown`]. Whoever asks for it afterwards gets it still: its
/// cache can be read, and handlers are refused with [`Stopped`](crate::shared_informer::Stopped). What
/// is asked for the first time after the shutdown is an informer that has stopped, with an empty cache.
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
    namespaces: Vec<String>,
    tweak: Option<TweakListOptions>,
    seed: Option<u64>,
    stop: watch::Sender<bool>,
    places: Places,
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
    #[track_caller]
    #[doc(alias = "InformerFor")]
    pub fn informer<K>(&self) -> SharedInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Default + 'static,
    {
        self.get_or_make(
            K::DynamicType::default(),
            InformerOptions::new(),
            &self.inner.namespaces,
            Location::caller(),
        )
        .0
    }

    /// The informer of a kind with options of its own. Selectors and namespaces make it another
    /// informer; everything else must be the same as when it was first asked for. Must be called
    /// inside a Tokio runtime.
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
        let namespaces = &self.inner.namespaces;
        let (informer, has) = self.get_or_make(dyntype, options, namespaces, Location::caller());
        wanted.must_equal(&has, &kind)?;
        Ok(informer)
    }

    /// The informer of a kind that is known at run time only. Must be called inside a Tokio runtime.
    ///
    /// The factory's namespaces apply, unless the kind comes from
    /// [discovery](SharedInformerFactory::discover) and has none. Of a kind that the server does not
    /// know, waiting for the sync says so, with
    /// [`fail_fast`](crate::status::WaitForSync::fail_fast) at once.
    ///
    /// # Errors
    /// A name of the kind is missing or can't stand in a URL, or discovery says that the server does
    /// not list and watch it.
    #[track_caller]
    #[doc(alias = "ForResource")]
    #[doc(alias = "GenericInformer")]
    pub fn for_resource(
        &self,
        kind: &(impl KindRef + ?Sized),
    ) -> Result<SharedInformer<DynamicObject>, KindError> {
        kind::check(kind)?;
        let namespaces = match kind.is_namespaced() {
            Some(false) => &[],
            _ => self.inner.namespaces.as_slice(),
        };
        let resource = kind.api_resource().clone();
        let options = InformerOptions::new();
        Ok(self
            .get_or_make(resource, options, namespaces, Location::caller())
            .0)
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

    /// The informer of a kind, made by a constructor of your own if there is none yet: it then is what
    /// everybody gets who asks for the kind, and this factory runs it. Must be called inside a Tokio
    /// runtime.
    ///
    /// `make` gets the factory's client and the type's resync period, and is called at most once for a
    /// type, also from two threads; the second one waits. Namespaces, tweaks and transforms of the
    /// factory are its own business. If it asks this factory for the same type, it gets the usual
    /// informer, and that keeps the place.
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
        let key = self.usual_key::<K>();
        let fill = || {
            let period = self.inner.defaults.resync::<K>();
            let (informer, controller) = make(Arc::clone(&self.inner.client), period);
            Made {
                informer,
                options: Comparable::constructed(),
                run: run(controller),
            }
        };
        self.inner.places.get_or_make(&key, fill).0
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
        let adopted = self.inner.places.adopt(&self.usual_key::<K>(), informer);
        adopted.then_some(()).ok_or(PlaceTaken { kind })
    }

    /// What the server knows under one of the names that `kubectl` takes: `pods`, `pod`, `Pod`, `po`,
    /// `deployments.apps`, `deployments.v1.apps`; in any case. Without a group the core group comes
    /// first, then the others in the server's order; without a version, the one its group prefers. A
    /// short name counts if nothing is called so in full.
    ///
    /// It takes one request if the name says its group, or is a full name of the core group, and two
    /// otherwise. Nothing is kept: a definition that was added since is found.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     factory: kube_informer::SharedInformerFactory,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let kind = factory.discover("widgets.example.com").await?;
    /// let widgets = factory.for_resource(&kind)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The server knows no such kind, or can't be asked: it does not answer, within a minute at the
    /// latest, or it is older than aggregated discovery (Kubernetes 1.27).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "RESTMapper")]
    pub async fn discover(&self, name: &str) -> Result<Discovered, DiscoverError> {
        discovery::discover(&*self.inner.client, name).await
    }

    /// Every kind that the server knows, in the version its group prefers, in the server's order; two
    /// requests. Some can only be created, see [`Discovered::serves`].
    ///
    /// # Errors
    /// The server can't be asked, as for [`SharedInformerFactory::discover`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    #[doc(alias = "ServerPreferredResources")]
    pub async fn discover_all(&self) -> Result<Vec<Discovered>, DiscoverError> {
        discovery::discover_all(&*self.inner.client).await
    }

    /// Runs every informer that is not running yet. To be called again after new ones have been asked
    /// for; does nothing after the shutdown. Must be called inside a Tokio runtime.
    pub fn start(&self) {
        self.inner.places.start(&self.inner.stop);
    }

    /// Waits until every informer that has been started, and every adopted one, has synced. Polls
    /// nothing.
    pub fn wait_for_cache_sync(&self) -> WaitForCacheSync {
        WaitForCacheSync(self.inner.places.waits())
    }

    /// Ends all informers but the adopted ones, and waits until their tasks have ended: no task is
    /// left. May be called several times, also at once; each call waits. (Dropping the last clone of a
    /// factory ends its informers too, without waiting: their handlers are cut off at an await.)
    ///
    /// # Cancel safety
    /// All informers are told to end at the first poll; dropping the future only stops waiting.
    pub async fn shutdown(&self) {
        self.inner.places.shut_down();
        self.inner.stop.send_replace(true);
        // Every running informer holds a receiver until its last task has ended.
        self.inner.stop.closed().await;
    }

    /// The place of a type for which nothing special is asked.
    fn usual_key<K>(&self) -> Key
    where
        K: Resource + 'static,
        K::DynamicType: Default,
    {
        let scope = InformerOptions::<K>::new().scope(namespaces_of::<K>(&self.inner.namespaces));
        key::<K>(&K::DynamicType::default(), scope)
    }

    fn get_or_make<K>(
        &self,
        dyntype: K::DynamicType,
        options: InformerOptions<K>,
        namespaces: &[String],
        place: &Location<'_>,
    ) -> (SharedInformer<K>, Comparable)
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let key = key::<K>(&dyntype, options.scope(namespaces_of::<K>(namespaces)));
        let fill = || {
            let comparable = options.comparable();
            let name = place.to_string();
            let (informer, controller) = self.make(dyntype, options, &key.scope, name);
            Made {
                informer,
                options: comparable,
                run: run(controller),
            }
        };
        self.inner.places.get_or_make(&key, fill)
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
        let inner = &self.inner;
        let source = |namespace: Option<&String>| {
            let mut source = ListWatch::<K>::with_type(Arc::clone(&inner.client), &dyntype)
                .labels(&scope.labels)
                .fields(scope.fields.clone());
            if let Some(namespace) = namespace {
                source = source.namespace(namespace);
            }
            match inner.tweak.clone() {
                Some(tweak) => source.tweak_list_options(move |options| tweak(options)),
                None => source,
            }
        };
        let mut namespaces = scope.namespaces.iter();
        let first = source(namespaces.next());
        let others: Vec<_> = namespaces
            .map(|namespace| source(Some(namespace)))
            .collect();
        let resync = options.resync.unwrap_or(inner.defaults.resync::<K>());
        let builder = SharedInformer::<K>::builder_with_type(first, dyntype);
        let mut builder = inner
            .defaults
            .reflectors(&name, builder)
            .name(name)
            .resync(resync);
        for other in others {
            builder = builder.source(other);
        }
        if options.queue == QueueKind::DeltaFifo {
            builder = builder.queue(DeltaFifo::new());
        }
        if let Some(changes) = options.batch_size {
            builder = builder.batch_size(changes);
        }
        if let Some(changes) = options.queue_capacity {
            builder = builder.queue_capacity(changes);
        }
        if let Some(transform) = inner.defaults.transform(options.transform) {
            builder = builder.try_transform(move |object| transform(object));
        }
        if let Some(detector) = options.mutation_detector {
            builder = builder.mutation_detector(detector());
        }
        if let Some(seed) = inner.seed {
            builder = builder.rng_seed(seed);
        }
        builder.build()
    }
}

fn key<K: Resource + 'static>(dyntype: &K::DynamicType, scope: Scope) -> Key {
    Key {
        kind: TypeId::of::<K>(),
        names: [
            K::api_version(dyntype),
            K::kind(dyntype),
            K::plural(dyntype),
        ]
        .map(Cow::into_owned),
        scope,
    }
}

/// None of them for a type that is known to be in no namespace.
fn namespaces_of<K: Resource + 'static>(namespaces: &[String]) -> &[String] {
    let is_cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
    if is_cluster_scoped { &[] } else { namespaces }
}

/// Runs an informer until it is told to stop.
fn run<K>(controller: Controller<K>) -> Run
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    Box::new(|stop| {
        Box::pin(async move {
            let mut told = stop.clone();
            let stopped = async move {
                // An error says that the factory is gone, which ends its informers too.
                let _ = told.wait_for(|stop| *stop).await;
            };
            controller.run(stopped).await;
            // Held until here: the shutdown waits for it.
            drop(stop);
        })
    })
}
