//! Everything that must be settled before an informer exists.

mod keeping;

use std::{fmt, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, mpsc};

use self::keeping::Keeping;
use super::{Shared, SharedInformer, roster::Roster, sampled::Figures};
use crate::{
    controller::{Bounds, Command, Controller, Inbox, Lent, Parts, WarmUp},
    decode::Decoder,
    indexer::{self, DuplicateIndex, Indexer, IndexerWriter, Indexers, Snapshot},
    limits::Limits,
    logs,
    metrics::Metrics,
    mutation_detector::MutationDetector,
    object::{Object, ResourceVersion, SourceId},
    processor::Processor,
    pruning::Storable,
    queue::{InOrder, Queue},
    reflector::{
        BackoffConfig, Error, InitialList, Reflector, RollbackDetection, Settings, TimeoutConfig,
        Trust,
    },
    status::StatusWriter,
    transport::ListerWatcher,
    warm_start::{Keeper, SavedStore, Storing},
};

/// Settles the parts of an informer; [`Builder::build`] makes it.
#[must_use]
pub struct Builder<K: Resource> {
    sources: Vec<Arc<dyn ListerWatcher>>,
    dyntype: K::DynamicType,
    reflectors: Settings<K>,
    store: (Indexer<K>, IndexerWriter<K>),
    queue: Option<Box<dyn Queue<K>>>,
    bounds: Bounds,
    resync: Duration,
    known: Vec<Object<K>>,
    mutation_detector: Option<MutationDetector<K>>,
    storing: Option<Storing<K>>,
    consistency_check: Duration,
    keeping: Keeping<K>,
}

impl<K: Resource> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.reflectors.name)
            .finish_non_exhaustive()
    }
}

impl<K> Builder<K>
where
    K: Resource + Send + Sync + 'static,
{
    pub(super) fn new(source: Arc<dyn ListerWatcher>, dyntype: K::DynamicType) -> Self {
        Self {
            sources: vec![source],
            dyntype,
            reflectors: Settings::default(),
            store: indexer::empty(),
            queue: None,
            bounds: Bounds::default(),
            resync: Duration::ZERO,
            known: Vec::new(),
            mutation_detector: None,
            storing: None,
            consistency_check: Duration::ZERO,
            keeping: Keeping::default(),
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

    /// A name for logs, errors and metrics, which need not be unique; by default kind and scope, such as
    /// `pods in shop with labels app=web`.
    #[doc(alias = "InformerName")]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.reflectors.name = Some(name.into());
        self
    }

    /// What logs and errors call the expected objects; by default API version and kind.
    #[doc(alias = "ObjectDescription")]
    pub fn type_description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.reflectors.type_description = Some(description.into());
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
        self.queue = Some(Box::new(queue));
        self
    }

    /// At most so many changes are applied to the cache at one go, before the informer looks for
    /// anything else to do; by default [`BATCH`](crate::queue::BATCH), at least 1. A whole list is one
    /// change. A queue given with [`Builder::queue`] has a batch size of its own beside that.
    #[doc(alias = "PopBatch")]
    pub fn batch_size(mut self, changes: usize) -> Self {
        self.bounds.batch = changes.max(1);
        self
    }

    /// At most so many changes wait in the queue, and as many on their way to it, for all sources
    /// together; by default two batches, at least 1. Then each source holds one more, and reads no
    /// further from its list or watch. A whole list is one change, on a
    /// [`DeltaFifo`](crate::queue::DeltaFifo) one for each of its objects, however many that makes.
    ///
    /// Changes wait for long only behind a full [`ListenerBuffer::Block`](super::ListenerBuffer).
    pub fn queue_capacity(mut self, changes: usize) -> Self {
        self.bounds.waiting = changes.clamp(1, Semaphore::MAX_PERMITS);
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
        self.reflectors.transform = Some(Arc::new(transform));
        self
    }

    /// Called with every failure of a list or watch, with its class, and with every object that can't
    /// be kept. It must not block.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.reflectors.error_handler = Some(Arc::new(handler));
        self
    }

    /// Looks for objects that are changed in the cache, for types with interior mutability: every
    /// state is copied before anybody sees it, and compared each second of tokio's clock and at the
    /// end. One that differs is reported once: to the log, to [`Builder::on_error`] as
    /// [`Error::Mutated`], and in [`Status::mutated`](crate::status::Status::mutated).
    ///
    /// Off by default, and meant for tests: it doubles the memory of the cache, and `Clone` and
    /// `PartialEq` of the type run in the informer's loop. What a clone shares with its original
    /// (an `Arc` in a field) can't be seen to change.
    #[doc(alias = "CacheMutationDetector")]
    #[doc(alias = "MutationDetector")]
    pub fn detect_mutations(self) -> Self
    where
        K: Clone + PartialEq,
    {
        self.mutation_detector(MutationDetector::new())
    }

    pub(crate) fn mutation_detector(mut self, detector: MutationDetector<K>) -> Self {
        self.mutation_detector = Some(detector);
        self
    }

    /// Asks for lists in pages of this size; see
    /// [`ReflectorBuilder::page_size`](crate::reflector::ReflectorBuilder::page_size), also for what it
    /// costs the server.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.reflectors.page_size(objects);
        self
    }

    /// A watch is asked to end after one to two times this, in whole seconds; never less than 5
    /// minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.reflectors.watch_timeout_min(timeout);
        self
    }

    /// For so long, watches that the server ends with internal errors are opened again instead of
    /// being listed after; see
    /// [`ReflectorBuilder::internal_error_retry`](crate::reflector::ReflectorBuilder::internal_error_retry).
    #[doc(alias = "MaxInternalErrorRetryDuration")]
    pub fn internal_error_retry(mut self, budget: Duration) -> Self {
        self.reflectors.internal_error_retry(budget);
        self
    }

    /// The pauses after failures.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.reflectors.backoff(backoff);
        self
    }

    /// Gives figures of this informer to a collector; without this call nothing is measured.
    #[doc(alias = "InformerMetricsProvider")]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.reflectors.metrics = Some(metrics);
        self
    }

    /// How everything is requested, at the beginning and whenever watching can't bring the cache up to date:
    /// in pages of the newest state by default, which costs the server least. [`InitialList::List`] is for
    /// servers before Kubernetes 1.34, whose watch cache answers no pages.
    pub fn initial_list(mut self, initial_list: InitialList) -> Self {
        self.reflectors.initial_list(initial_list);
        self
    }

    /// Whether each reflector checks that the server has not gone back in time: on by default. See
    /// [`RollbackDetection`] for what it costs, and when it is in the way.
    pub fn rollback_detection(mut self, detection: RollbackDetection) -> Self {
        self.reflectors.rollback_detection(detection);
        self
    }

    /// After how long the reflector no longer waits for a streaming list to end, for a silent watch,
    /// and for a full store.
    pub fn timeouts(mut self, timeouts: TimeoutConfig) -> Self {
        self.reflectors.timeouts(timeouts);
        self
    }

    /// How much of each source the server may send; see [`Limits`] for the defaults.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.reflectors.limits(limits);
        self
    }

    /// Begins with what was saved, if it fits, and saves at the end: see [`warm_start`](crate::warm_start)
    /// for what it promises. [`Status::warm_start`](crate::status::Status::warm_start) says how the start
    /// came out.
    ///
    /// The objects are written and read by the type's `Serialize` and `Deserialize`, which must be each
    /// other's inverse.
    #[doc(alias = "initialState")]
    pub fn warm_start(self, store: SavedStore) -> Self
    where
        K: Storable + DeserializeOwned,
    {
        self.storing(Storing::new(store))
    }

    pub(crate) fn storing(mut self, storing: Storing<K>) -> Self {
        self.storing = Some(storing);
        self
    }

    /// Compares the cache with the server every so often, after half this period to a whole one (a
    /// second at least); zero, the default, means never.
    ///
    /// A watch tells what changes, so what it fails to tell stays wrong: an event that a proxy or a
    /// server has lost, a server that was restored from a backup. A check asks for the metadata of what
    /// the server had at the very revision that the cache is of, and compares names, uids and revisions;
    /// so what changes meanwhile is no difference. If there is one, it is reported (to the log, to
    /// [`Builder::on_error`] as [`Error::Inconsistent`], and in
    /// [`Status::consistency`](crate::status::Status::consistency)), and everything is listed anew.
    /// Handlers hear of all of it, also of what looks as it was: after the restore of a backup another
    /// state can have the same uid and revision. A difference that is the same after that list is counted,
    /// not told again, and listed for after 1, 2, 4, … 64 checks and then once in 64: the list may have
    /// lost the same as the watch, or the object may be one that can't be kept.
    ///
    /// This is the only way to find a server that was restored from a backup and had come as far as the
    /// cache before it was asked for anything, and it takes at least one object that is missing,
    /// surplus, or of another uid or revision. If all of them are the same, nothing can tell.
    ///
    /// # Cost
    /// A list of metadata per period and source, in pages of 500. A server with snapshots in its watch
    /// cache (Kubernetes 1.34) answers it from there, an older one from etcd, so think of hours rather
    /// than minutes. Here it costs a pointer for each object while the check lasts, and nothing else: a
    /// check holds nobody up. It takes place only while the cache is synced and its source watches, and
    /// one that fails is not repeated before its next turn. A revision that the server has compacted
    /// can't be checked; bookmarks, which come each minute, keep the cache's revision young.
    ///
    /// A source of one's own is compared too: see
    /// [`ListerWatcher::list_metadata`].
    #[doc(alias = "DetectCacheInconsistency")]
    #[doc(alias = "CheckDataConsistency")]
    pub fn consistency_check(mut self, period: Duration) -> Self {
        self.consistency_check = period;
        self
    }

    /// Makes the random parts (pauses, time-outs) the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.reflectors.seed = Some(seed);
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
        let (commands, to_obey) = command_channel();
        let (deltas, arriving) = mpsc::channel(self.bounds.waiting);
        let (indexer, mut writer) = self.store;
        let (status, channel) = (status_of(&self.sources), deltas.downgrade());
        let (applied, room, roster) = (Arc::default(), Arc::default(), Arc::new(Roster::new()));
        let title = self.reflectors.title(&self.dyntype, &self.sources);
        let mut report = self.reflectors.reporter(&title, status.clone());
        report.span = logs::informer_span(&report.name, &report.expects);
        report.meter = self.reflectors.meter(&title, &self.dyntype, |queued| {
            Arc::new(Figures {
                indexer: indexer.clone(),
                status: status.reader(),
                roster: Arc::clone(&roster),
                queued,
                channel: channel.clone(),
            })
        });
        let keeper = |it| Keeper::new(it, &self.dyntype, &self.sources, &self.keeping.pruning);
        let keeper = self.storing.map(keeper).map(Arc::new);
        let decoder = self.reflectors.decoder(&self.dyntype);
        let decoder = self.keeping.of(decoder, &report, commands.downgrade());
        prepare(&mut writer, &decoder, self.known);
        let warmed = |it| WarmUp::new(it, commands.clone(), deltas.clone(), report.clone());
        let warm_up = keeper.clone().map(warmed);
        let mut rng = self.reflectors.rng();
        let inbox = Inbox::new(deltas, indexer.clone());
        let sources = (0..).map(SourceId::new).zip(self.sources);
        let reflector = |(source, lister_watcher)| Reflector {
            alone: None,
            source,
            lister_watcher,
            decoder: decoder.clone(),
            store: inbox.clone(),
            report: report.clone(),
            config: self.reflectors.config,
            rng: rng.fork(),
            not_before: ResourceVersion::UNSET,
            from: None,
            relists: None,
            trust: Trust::default(),
        };
        let parts = Parts {
            queue: Lent::new(self.queue.unwrap_or_else(|| in_order(self.bounds.batch))),
            bounds: self.bounds,
            mutation_detector: copied(self.mutation_detector, &writer.snapshot()),
            indexer: Lent::new(writer),
            processor: Processor::new(self.resync, Arc::clone(&room)),
            commands: to_obey,
            deltas: arriving,
            report: report.clone(),
            applied: Arc::clone(&applied),
        };
        let shared = Arc::new(Shared {
            name: Arc::clone(&report.name),
            expects: Arc::clone(&report.expects),
            kind: K::kind(&self.dyntype).into_owned(),
            commands,
            indexer,
            status: status.reader(),
            applied,
            room,
            listeners: std::sync::atomic::AtomicU64::new(0),
            roster,
            span: report.span.clone(),
            keeper,
            channel,
        });
        let controller = Controller::new(parts, sources.map(reflector).collect(), warm_up);
        let controller = controller.checked(self.consistency_check, &shared.commands, rng);
        (SharedInformer { shared }, controller)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "commands come from the user's own code, one per call, and adding a handler must neither wait nor fail"
)]
fn command_channel<K>() -> (
    mpsc::UnboundedSender<Command<K>>,
    mpsc::UnboundedReceiver<Command<K>>,
) {
    mpsc::unbounded_channel()
}

fn in_order<K: Send + Sync + 'static>(batch: usize) -> Box<dyn Queue<K>> {
    Box::new(InOrder::new().batch_size(batch))
}

/// Makes an empty store that of an informer, with the objects that are known before the first list.
fn prepare<K>(writer: &mut IndexerWriter<K>, decoder: &Decoder<K>, known: Vec<Object<K>>)
where
    K: Send + Sync + 'static,
{
    writer.freeing_offloaded();
    if let Some(unread) = decoder.unread() {
        writer.count_unread(unread);
    }
    writer.warm(decoder.kept(known));
}

/// A status that has a place for each source.
fn status_of(sources: &[Arc<dyn ListerWatcher>]) -> StatusWriter {
    let status = StatusWriter::new(sources.len());
    status.update(|status| {
        for (source, lister_watcher) in status.sources.iter_mut().zip(sources) {
            source.description = Arc::from(lister_watcher.description());
        }
    });
    status
}

/// Copies what is in the store from the beginning.
fn copied<K>(
    mut detector: Option<MutationDetector<K>>,
    known: &Snapshot<K>,
) -> Option<MutationDetector<K>> {
    for object in known.iter() {
        if let Some(detector) = &mut detector {
            detector.copy(object);
        }
    }
    detector
}

#[cfg(test)]
mod tests;
