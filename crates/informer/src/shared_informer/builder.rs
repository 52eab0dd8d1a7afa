//! Everything that must be settled before an informer exists.

use std::{fmt, panic::Location, sync::Arc, time::Duration};

use kube_core::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, mpsc};

use super::{Shared, SharedInformer};
use crate::{
    controller::{CHANNEL_CAPACITY, Controller, Parts},
    decode::{Decoder, Transform},
    indexer::{self, DuplicateIndex, Indexer, IndexerWriter, Indexers},
    object::{Object, SourceId},
    processor::Processor,
    queue::{InOrder, Queue},
    reflector::{BackoffConfig, Error, MachineConfig, Reflector, Reporter, WatchErrorHandler},
    status::StatusWriter,
    transport::ListerWatcher,
};

/// Settles the parts of an informer; [`Builder::build`] makes it.
#[must_use]
pub struct Builder<K: Resource> {
    sources: Vec<Arc<dyn ListerWatcher>>,
    dyntype: K::DynamicType,
    name: Arc<str>,
    store: (Indexer<K>, IndexerWriter<K>),
    queue: Box<dyn Queue<K>>,
    resync: Duration,
    transform: Option<Transform<K>>,
    error_handler: Option<WatchErrorHandler>,
    config: MachineConfig,
    seed: Option<u64>,
    known: Vec<Object<K>>,
}

impl<K: Resource> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<K> Builder<K>
where
    K: Resource + Send + Sync + 'static,
{
    pub(super) fn new(
        source: Arc<dyn ListerWatcher>,
        dyntype: K::DynamicType,
        place: &Location<'_>,
    ) -> Self {
        Self {
            sources: vec![source],
            dyntype,
            name: Arc::from(place.to_string()),
            store: indexer::empty(),
            queue: Box::new(InOrder::new()),
            resync: Duration::ZERO,
            transform: None,
            error_handler: None,
            config: MachineConfig::default(),
            seed: None,
            known: Vec::new(),
        }
    }

    /// Fills the store before the first list; for the plain informer.
    pub(crate) fn known(mut self, known: Vec<Object<K>>) -> Self {
        self.known = known;
        self
    }

    /// Adds a source, for example another namespace. The informer is over all of them together: it has
    /// synced when each has, and a list of one deletes only what that one brought. Their objects must
    /// be different ones.
    pub fn source(mut self, source: impl ListerWatcher) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// A name for logs and errors; by default where the builder was made.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The indices to begin with. More can be added at any time.
    ///
    /// # Errors
    /// Two of them have the same name.
    pub fn indexers(mut self, indexers: Indexers<K>) -> Result<Self, DuplicateIndex> {
        self.store = indexer::new(indexers)?;
        Ok(self)
    }

    /// The queue between reflectors and store; by default [`InOrder`].
    pub fn queue(mut self, queue: impl Queue<K> + 'static) -> Self {
        self.queue = Box::new(queue);
        self
    }

    /// How often handlers that say nothing else hear of every object again, and how often it is looked
    /// whether anyone is due; zero, the default, means never, whatever a handler asks for.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// Changes every object once, before cache and handlers see it; for example to drop what nobody
    /// reads.
    #[doc(alias = "SetTransform")]
    pub fn transform(self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.try_transform(move |object| {
            transform(object);
            Ok(())
        })
    }

    /// The same with a function that may fail, or panic: that object is broken then, and everything
    /// else goes on.
    pub fn try_transform(
        mut self,
        transform: impl Fn(&mut K) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Called with every failure of a list or watch, with its class, and with every object that can't
    /// be kept. It must not block.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.error_handler = Some(Arc::new(handler));
        self
    }

    /// Asks for lists in pages of this size, whatever the revision. The API server answers a paged
    /// list from etcd instead of its watch cache, which costs it much more; without this call lists
    /// are paged (500) only where the watch cache ignores it or does not exist.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.config.page_size = Some(objects);
        self
    }

    /// A watch is asked to end after one to two times this; never less than 5 minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.config.watch_timeout_min = timeout;
        self
    }

    /// The pauses after failures.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// Makes the random parts (pauses, time-outs) the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the informer: its handle, and the controller that runs it. Must be called inside a Tokio
    /// runtime: the informer's loop exists from now on, idle, so that handlers and indices can be
    /// added at any time.
    pub fn build(self) -> (SharedInformer<K>, Controller<K>)
    where
        K: DeserializeOwned,
        K::DynamicType: 'static,
    {
        #[expect(
            clippy::disallowed_methods,
            reason = "commands come from the user's own code, one per call, and adding a handler must neither wait nor fail"
        )]
        let (commands, to_obey) = mpsc::unbounded_channel();
        let (deltas, arriving) = mpsc::channel(CHANNEL_CAPACITY);
        let (indexer, mut writer) = self.store;
        writer.warm(self.known);
        let status = StatusWriter::new(self.sources.len());
        let (applied, room) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let report = Reporter {
            name: Arc::clone(&self.name),
            status: status.clone(),
            error_handler: self.error_handler,
        };
        let mut rng = self
            .seed
            .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let decoder = Decoder::new(&self.dyntype, self.transform);
        let reflectors = (0..).zip(self.sources).map(|(number, lister_watcher)| {
            let reflector = Reflector {
                source: SourceId::new(number),
                lister_watcher,
                decoder: decoder.clone(),
                deltas: deltas.clone(),
                report: report.clone(),
            };
            (reflector, rng.fork())
        });
        let parts = Parts {
            queue: self.queue,
            indexer: writer,
            processor: Processor::new(self.resync, Arc::clone(&room)),
            commands: to_obey,
            deltas: arriving,
            report: report.clone(),
            applied: Arc::clone(&applied),
        };
        let shared = Shared {
            name: self.name,
            kind: K::kind(&self.dyntype).into_owned(),
            commands,
            indexer,
            status: status.reader(),
            applied,
            room,
            listeners: std::sync::atomic::AtomicU64::new(0),
            buffers: Mutex::new(Vec::new()),
        };
        let controller = Controller::new(parts, reflectors.collect(), self.config);
        let informer = SharedInformer {
            shared: Arc::new(shared),
        };
        (informer, controller)
    }
}
