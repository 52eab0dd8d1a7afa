//! Builds a shared informer from its options, its indices, its queue and the collections to list and watch.
//!
//! The module sends no requests. The controller that the builder returns runs the informer.

mod reporting;

use std::{fmt, sync::Arc};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{
    Shared, SharedInformer,
    options::{Keeping, LoopOptions, keep_method, keeping_methods, loop_methods},
    roster::Roster,
    sampled::Figures,
};
use crate::{
    consistency::ConsistencyCheck,
    controller::{Command, Controller, Inbox, Lent, Parts},
    decode::Decoder,
    indexer::{self, DuplicateIndex, Indexer, IndexerWriter, Indexers, Snapshot},
    logs,
    mutation_detector::MutationDetector,
    object::{Object, SourceId},
    processor::Processor,
    pruning::Pruned,
    queue::{InOrder, Queue},
    reflector::{Reached, Reflector, RelistSignal, RequestOptions, Settings, settings_methods},
    status::StatusWriter,
    transport::ListerWatcher,
    warm_start::{Restore, Snapshotter},
};

/// Builder of a shared informer. [`Builder::build`] creates the informer.
#[must_use]
pub struct Builder<K: Resource> {
    sources: Vec<Arc<dyn ListerWatcher>>,
    dyntype: K::DynamicType,
    pub(crate) reflectors: Settings<K>,
    /// Request options per source, in the order of `sources`. A source without an entry uses
    /// `reflectors.requests`.
    pub(crate) requests: Vec<RequestOptions>,
    store: (Indexer<K>, IndexerWriter<K>),
    queue: Option<Box<dyn Queue<K>>>,
    pub(crate) known: Vec<Object<K>>,
    pub(crate) loop_options: LoopOptions,
    pub(crate) keeping: Keeping<K>,
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
            requests: Vec::new(),
            store: indexer::empty(),
            queue: None,
            known: Vec::new(),
            loop_options: LoopOptions::default(),
            keeping: Keeping::default(),
        }
    }

    /// Adds a source, for example another namespace.
    ///
    /// The informer is synced when all its sources are synced. A list of one source deletes only objects of
    /// that source. Two sources must not contain the same object.
    pub fn source(mut self, source: impl ListerWatcher) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    settings_methods!(reflectors);

    loop_methods!(loop_options);

    keeping_methods!(keeping);

    /// Sets the initial indices. [`SharedInformer::add_index`] can add more indices at any time.
    ///
    /// # Errors
    /// Returns an error if two of the indices have the same name.
    pub fn indexers(mut self, indexers: Indexers<K>) -> Result<Self, DuplicateIndex> {
        self.store = indexer::new(indexers)?;
        Ok(self)
    }

    /// Sets the queue that holds the changes from the reflectors until the cache applies them. The default is
    /// [`InOrder`].
    pub fn queue(mut self, queue: impl Queue<K> + 'static) -> Self {
        self.queue = Some(Box::new(queue));
        self
    }

    /// Returns the snapshotter if [`warm_start`](Self::warm_start) is set.
    fn snapshotter(&self) -> Option<Arc<Snapshotter<K>>> {
        let storing = self.keeping.storing.clone()?;
        let snapshotter =
            Snapshotter::new(storing, &self.dyntype, &self.sources, &self.keeping.pruning);
        Some(Arc::new(snapshotter))
    }

    /// Creates the informer. Returns a handle to the informer, and the controller that runs it.
    ///
    /// The method must be called inside a Tokio runtime, because it spawns the informer's loop. The loop is
    /// idle until the controller runs. Handlers and indices can be added as soon as the method has returned.
    pub fn build(self) -> (SharedInformer<K>, Controller<K>)
    where
        K: DeserializeOwned,
        K::DynamicType: 'static,
    {
        let (commands, to_obey) = command_channel();
        let (options, every) = (self.loop_options, self.loop_options.consistency_check());
        let bounds = options.bounds();
        let (deltas, arriving) = mpsc::channel(bounds.waiting);
        let (snapshotter, mut requests) = (self.snapshotter(), self.requests.into_iter());
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
        let decoder = self.reflectors.decoder(&self.dyntype);
        let decoder = reporting::decoder(decoder, &self.keeping, &report, commands.downgrade());
        prepare(&mut writer, &decoder, self.known);
        let restore = Restore::guest(snapshotter.as_ref(), &commands, &deltas, &report);
        let (mut rng, inbox) = (self.reflectors.rng(), Inbox::new(deltas, indexer.clone()));
        let sources = (0..).map(SourceId::new).zip(self.sources);
        let reflector = |(source, lister_watcher)| Reflector {
            alone: None,
            source,
            lister_watcher,
            decoder: decoder.clone(),
            store: inbox.clone(),
            report: report.clone(),
            requests: requests.next().unwrap_or(self.reflectors.requests),
            rng: rng.fork(),
            reached: Reached::default(),
            from: None,
            relists: None,
            relist: RelistSignal::default(),
        };
        let parts = Parts {
            queue: Lent::new(self.queue.unwrap_or_else(|| in_order(bounds.batch))),
            bounds,
            mutation_detector: copied(self.keeping.mutation_detector, &writer.snapshot()),
            indexer: Lent::new(writer),
            processor: Processor::new(options.resync(), Arc::clone(&room)),
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
            snapshotter,
            channel,
        });
        let reflectors = sources.map(reflector).collect();
        let check = ConsistencyCheck::guest(every, &shared.commands, report, rng);
        let controller = Controller::new(parts, reflectors, restore.into_iter().chain(check));
        (SharedInformer { shared }, controller)
    }
}

impl<K> Builder<Pruned<K>>
where
    Pruned<K>: Resource + Send + Sync + 'static,
{
    keep_method!(keeping);
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

/// Configures the cache of a new informer, and adds the objects `known`.
fn prepare<K>(writer: &mut IndexerWriter<K>, decoder: &Decoder<K>, known: Vec<Object<K>>)
where
    K: Send + Sync + 'static,
{
    writer.freeing_offloaded();
    if let Some(unread) = decoder.form().unread() {
        writer.count_unread(unread);
    }
    writer.put_known(decoder.kept(known));
}

fn status_of(sources: &[Arc<dyn ListerWatcher>]) -> StatusWriter {
    let status = StatusWriter::new(sources.len());
    status.update(|status| {
        for (source, lister_watcher) in status.sources.iter_mut().zip(sources) {
            source.description = Arc::from(lister_watcher.description());
        }
    });
    status
}

/// Creates a mutation detector with copies of the objects in `known`; `None` if detection is not enabled.
fn copied<K>(
    detector: Option<fn() -> MutationDetector<K>>,
    known: &Snapshot<K>,
) -> Option<MutationDetector<K>> {
    let mut detector = detector.map(|new| new());
    for object in known.iter() {
        if let Some(detector) = &mut detector {
            detector.copy(object);
        }
    }
    detector
}

#[cfg(test)]
mod tests;
