//! Runs an informer ([`Controller`]).
//!
//! The controller runs a loop. The loop moves changes from the queue to the store, and delivers them to the
//! handlers. One task runs the loop, and only this task modifies the queue and the store. Other tasks send
//! commands to the loop, which executes them between two batches of changes.
//!
//! This controller is not a reconciler. Use a [`workqueue`](crate::workqueue) to act on the cluster. Use
//! [`Config`] for a controller that passes deltas to a function, without a store and handlers.

mod applying;
mod availability;
mod bounds;
mod config;
mod end;
mod found_broken;
mod guest;
mod inbox;
mod process_loop;
mod processing;
mod queueing;
mod run;
mod syncing;

pub(crate) use self::{
    applying::Lent,
    availability::Definition,
    bounds::{Bounds, CHANNEL_CAPACITY},
    guest::{Guest, NoSnapshot, settled_snapshot},
    inbox::Inbox,
};
pub use self::{config::Config, end::Ended, process_loop::ProcessLoop, processing::ProcessError};

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::JoinSet,
};
use tracing::Instrument;

use self::{
    applying::report_changes,
    availability::Following,
    end::{GoneGuard, LOOP, serve},
    queueing::queue_delta,
    syncing::Unconfirmed,
};
use crate::{
    clock,
    indexer::{
        Applied, Change, DuplicateIndex, Index, IndexBuild, IndexRef, IndexToken, IndexerWriter,
        NotRemovable, Snapshot, StatusNotes,
    },
    logs::LogLimiter,
    mutation_detector::MutationDetector,
    object::{ObjectName, SourceId},
    processor::{Closing, Listener, ListenerId, Processor},
    queue::Queue,
    reflector::{Delta, DeltaKind, Reflector, Reporter},
    status::{FailureCause, StatusReader, WaitForSync},
};

/// A command for the informer's loop, which the loop executes between two batches.
pub(crate) enum Command<K> {
    AddListener(Listener<K>, Option<BoxFuture<'static, ()>>),
    RemoveListener(ListenerId),
    AddIndices(
        Box<IndexBuild<K>>,
        oneshot::Sender<Result<Vec<IndexToken>, DuplicateIndex>>,
    ),
    /// Removes an index from the store, and replies with the removed index.
    ///
    /// The receiver of the reply drops the index, because freeing a large index could delay the loop.
    RemoveIndex(
        Box<dyn IndexRef + Send>,
        oneshot::Sender<Result<Index<K>, NotRemovable>>,
    ),
    /// Requests a reply after all changes in the store have been added to the handlers' buffers.
    Settle(oneshot::Sender<()>),
    /// Queues objects that were loaded from a file, and requests a reply when the store contains them.
    ///
    /// Each delta contains the complete list of one reflector.
    Fill(Vec<Delta<K>>, oneshot::Sender<()>),
    /// Requests a snapshot of the store. The reply is a [`NoSnapshot`] if the loop can't provide a snapshot.
    Snapshot(oneshot::Sender<Result<Snapshot<K>, NoSnapshot>>),
    /// Marks a stored object as broken because a reader failed to decode it.
    ///
    /// Sent at most once until the object is replaced in the store.
    FoundBroken(ObjectName),
}

/// A reflector that sends its changes to the informer's loop.
pub(crate) type InnerReflector<K> = Reflector<K, Inbox<K>>;

/// The lifecycle phase of an informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Stopping(Closing),
}

/// The components of an informer that its loop owns.
pub(crate) struct Parts<K> {
    pub(crate) queue: Lent<Box<dyn Queue<K>>>,
    pub(crate) indexer: Lent<IndexerWriter<K>>,
    pub(crate) processor: Processor<K>,
    /// Detects modifications of cached objects by handlers, if this detection is enabled.
    pub(crate) mutation_detector: Option<MutationDetector<K>>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command<K>>,
    pub(crate) deltas: mpsc::Receiver<Delta<K>>,
    pub(crate) bounds: Bounds,
    pub(crate) report: Reporter,
    /// Notifies its waiters when the changes of a batch are visible in the store.
    pub(crate) applied: Arc<Notify>,
}

/// Runs one informer. [`Controller::run`] consumes the controller, so an informer runs at most once.
///
/// Handlers and indices can be added at any time, even before the controller runs. Dropping the controller
/// without running it stops the informer.
#[must_use = "an informer does nothing until its controller runs"]
pub struct Controller<K> {
    reflectors: Vec<InnerReflector<K>>,
    following: Option<Following>,
    drain: Option<Duration>,
    phase: watch::Sender<Phase>,
    serving: JoinSet<Option<FailureCause>>,
    report: Reporter,
    guests: Vec<Box<dyn Guest<K>>>,
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources = self.reflectors.len();
        let name = &self.report.name;
        f.debug_struct("Controller")
            .field("name", name)
            .field("sources", &sources)
            .finish_non_exhaustive()
    }
}

impl<K> Controller<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    pub(crate) fn new(
        parts: Parts<K>,
        reflectors: Vec<InnerReflector<K>>,
        guests: impl Iterator<Item = Box<dyn Guest<K>>>,
    ) -> Self {
        let (phase, told) = watch::channel(Phase::Idle);
        let report = parts.report.clone();
        let served = Serving {
            sources: reflectors.len(),
            arrived: BTreeSet::new(),
            listed: BTreeSet::new(),
            unconfirmed: None,
            snapshot_requests: Vec::new(),
            resyncing: 0,
            notes: StatusNotes::new(report.clone()),
            keyless: LogLimiter::default(),
            phase: told,
            parts,
        };
        let gone = GoneGuard(report.clone(), Arc::clone(&served.parts.applied));
        let mut serving = JoinSet::new();
        serving.spawn(serve(served, gone).instrument(report.span.clone()));
        Self {
            reflectors,
            following: None,
            drain: None,
            phase,
            serving,
            report,
            guests: guests.collect(),
        }
    }

    /// Returns a future that completes when the informer has synced.
    ///
    /// The informer has synced when the cache contains the first list of each of the informer's
    /// `ListerWatcher`s. The future does not borrow the controller.
    pub fn wait_for_sync(&self) -> WaitForSync {
        self.report.wait_for_sync()
    }

    /// Returns a reader for the status of the informer.
    pub fn status(&self) -> StatusReader {
        self.report.status.reader()
    }

    /// Sets the maximum time for which a shutdown delivers buffered events to the handlers.
    ///
    /// By default, a shutdown discards the events in the handlers' buffers, and adds their number to
    /// [`Status::discarded`](crate::status::Status::discarded).
    pub fn drain_at_shutdown(mut self, deadline: Duration) -> Self {
        self.drain = Some(deadline);
        self
    }

    /// Configures the controller to suspend the informer while the server does not serve the kind.
    ///
    /// A suspended informer reports its objects as deleted.
    #[cfg_attr(
        not(feature = "client"),
        expect(dead_code, reason = "only a factory follows definitions")
    )]
    pub(crate) fn follow(mut self, definition: watch::Receiver<Definition>) -> Self {
        self.following = Some(Following::new(definition, self.report.not_served.clone()));
        self
    }
}

/// The informer's loop, which contains all mutable state of the informer. One task owns it.
struct Serving<K> {
    parts: Parts<K>,
    sources: usize,
    /// Sources whose first list the loop has received, but perhaps not yet applied.
    ///
    /// A source is one list and watch of the informer, for one namespace or for all namespaces.
    arrived: BTreeSet<SourceId>,
    /// Sources whose first list is in the store.
    listed: BTreeSet<SourceId>,
    /// Tracks whether the server has confirmed objects from a file; `None` if no objects were loaded.
    unconfirmed: Option<Unconfirmed>,
    snapshot_requests: Vec<oneshot::Sender<Result<Snapshot<K>, NoSnapshot>>>,
    /// Number of changes that the loop must still pop from the queue to complete the current resync.
    ///
    /// The next resync starts only when this number is 0, so that resyncs can't fill the queue.
    resyncing: usize,
    notes: StatusNotes,
    /// Limits the log lines about failures of the queue's key function.
    keyless: LogLimiter,
    phase: watch::Receiver<Phase>,
}

impl<K> Serving<K>
where
    K: Send + Sync + 'static,
{
    async fn serve(mut self) {
        let mut arrived = Vec::new();
        loop {
            let more = self.pop().await;
            self.reply_with_snapshots();
            self.parts.report.meter.queued(self.parts.queue.len());
            let Parts {
                queue,
                processor,
                mutation_detector,
                commands,
                deltas,
                bounds,
                ..
            } = &mut self.parts;
            let room = bounds.room(queue.len());
            let next_check = mutation_detector.as_ref().and_then(MutationDetector::due);
            tokio::select! {
                biased;
                Some(command) = commands.recv() => self.obey(command).await,
                phase = self.phase.changed() => {
                    match *self.phase.borrow_and_update() {
                        Phase::Running if phase.is_ok() => processor.started(),
                        _ => break,
                    }
                }
                // Retries the pop, because a handler's buffer may not be full any more.
                () = processor.room_made(), if !queue.is_empty() => {}
                () = processor.next_resync(), if self.resyncing == 0 => self.resync().await,
                () = clock::until(next_check) => self.detect_mutations(),
                () = tokio::task::yield_now(), if more => {}
                count = deltas.recv_many(&mut arrived, room), if room > 0 => {
                    if count == 0 {
                        break;
                    }
                    for delta in arrived.drain(..) {
                        self.accept(delta).await;
                    }
                }
            }
        }
        self.close().await;
    }

    /// Applies queued changes to the store, and delivers them to the handlers.
    ///
    /// Returns true after at least [`Bounds::batch`] changes. The caller can then call the method again
    /// immediately. Returns false if the queue is empty, or if [`Self::room`] is 0.
    async fn pop(&mut self) -> bool {
        let batch = self.parts.bounds.batch;
        let mut told = 0;
        loop {
            self.sync();
            if told >= batch {
                return true;
            }
            let room = self.room();
            let waiting = self.parts.queue.len();
            let Some(popped) = self.parts.queue.pop_batch(room) else {
                break;
            };
            let handed_out = waiting - self.parts.queue.len();
            if let Some(unconfirmed) = &mut self.unconfirmed {
                unconfirmed.popped(handed_out);
            }
            self.resyncing = self.resyncing.saturating_sub(handed_out);
            told += popped.deltas.len().max(1);
            let meter = &self.parts.report.meter;
            let mut timer = meter.batch(|| (popped.deltas.len(), popped.received()));
            let Applied {
                changes,
                index_errors,
            } = self.apply(popped).await;
            self.parts.applied.notify_waiters();
            if let Some(timer) = &mut timer {
                timer.visible();
            }
            self.notes
                .note(&self.parts.indexer.snapshot(), &index_errors);
            for change in &changes {
                if let Change::Listed(source) = change {
                    self.listed.insert(*source);
                }
            }
            let meter = self.parts.report.meter.clone();
            let changes = report_changes(meter, changes).await;
            self.parts.processor.distribute(&changes).await;
            self.parts.report.meter.batch_ended(timer);
        }
        false
    }

    async fn accept(&mut self, delta: Delta<K>) {
        let told_by = delta.source;
        // Copies the objects before any other code can access them. The queue's key function is the first.
        if let Some(detector) = &mut self.parts.mutation_detector {
            detector.take_in(&delta.kind);
        }
        let objects = match &delta.kind {
            DeltaKind::ReplacedAll { objects, .. } => {
                self.arrived.insert(told_by);
                objects.len()
            }
            _ => 1,
        };
        let queued = self.queue_up(objects, |queue, known| queue_delta(queue, delta, known));
        let errors = queued.await;
        let Parts { queue, report, .. } = &mut self.parts;
        if let Some(unconfirmed) = &mut self.unconfirmed {
            unconfirmed.told(told_by, queue.len());
        }
        for error in errors {
            report.skipped(&error, &mut self.keyless);
        }
    }

    fn detect_mutations(&mut self) {
        let Parts {
            mutation_detector,
            report,
            ..
        } = &mut self.parts;
        for error in mutation_detector
            .iter_mut()
            .flat_map(MutationDetector::check)
        {
            report.mutated(&error);
        }
    }

    async fn resync(&mut self) {
        let Parts {
            queue,
            processor,
            deltas,
            bounds,
            ..
        } = &mut self.parts;
        if !processor.tick() {
            return;
        }
        // Received changes are queued before the resync, which then skips their keys.
        let mut arrived = Vec::new();
        while queue.len() + arrived.len() < bounds.waiting
            && let Ok(delta) = deltas.try_recv()
        {
            arrived.push(delta);
        }
        for delta in arrived {
            self.accept(delta).await;
        }
        let Reporter { name, expects, .. } = &self.parts.report;
        tracing::debug!(informer = %name, %expects, "forcing a resync");
        let stored = self.parts.indexer.snapshot().len();
        self.queue_up(stored, |queue, known| queue.resync(known))
            .await;
        self.resyncing = self.parts.queue.len();
    }

    async fn obey(&mut self, command: Command<K>) {
        let mut next = Some(command);
        while let Some(command) = next.take() {
            next = self.obey_one(command).await;
        }
    }

    /// Executes one command. Executes consecutive [`Command::FoundBroken`] commands together.
    ///
    /// If the method has also received a command of another type, returns that command. The caller must
    /// execute the returned command.
    async fn obey_one(&mut self, command: Command<K>) -> Option<Command<K>> {
        let Parts {
            indexer,
            processor,
            report,
            ..
        } = &mut self.parts;
        match command {
            Command::AddListener(listener, task) => {
                let synced = report.status.is_synced();
                processor.add(listener, task, indexer.snapshot(), synced);
            }
            Command::RemoveListener(id) => processor.remove(id),
            // The caller may have dropped the receiver.
            Command::Settle(reply) => drop(reply.send(())),
            Command::Snapshot(reply) => self.snapshot_requests.push(reply),
            Command::Fill(lists, reply) => self.fill(lists, reply).await,
            Command::FoundBroken(name) => return self.find_broken(name),
            Command::AddIndices(build, reply) => {
                let added = indexer.install(*build).map(|(tokens, errors)| {
                    self.notes.note(&indexer.snapshot(), &errors);
                    tokens
                });
                // The caller may have dropped the receiver; the index is added nevertheless.
                let _ = reply.send(added);
            }
            Command::RemoveIndex(index, reply) => {
                let _ = reply.send(indexer.take_index(&*index));
            }
        }
        None
    }

    async fn close(mut self) {
        let stopping = self
            .phase
            .wait_for(|phase| matches!(phase, Phase::Stopping(_)))
            .await;
        let closing = match stopping.map(|phase| *phase) {
            Ok(Phase::Stopping(closing)) => closing,
            _ => Closing::Discard,
        };
        // Rejects new commands and drops the pending ones, so that their callers receive an error.
        self.parts.commands.close();
        while self.parts.commands.recv().await.is_some() {}
        self.snapshot_requests.clear();
        let discarded = self.parts.processor.close(closing).await;
        // Reports mutations since the last check, including those by the last callbacks.
        let detector = self.parts.mutation_detector.iter_mut();
        for error in detector.flat_map(MutationDetector::check_all) {
            self.parts.report.mutated(&error);
        }
        self.parts
            .report
            .status
            .update(|status| status.discarded += discarded);
    }
}

#[cfg(test)]
mod tests;
