//! Not a reconciler: the loop inside an informer that moves changes from its queue to its store and
//! on to its handlers. (What acts on the cluster is a program with a work queue, see
//! [`workqueue`](crate::workqueue).)
//!
//! The loop owns queue, store and processor, so no lock is held along the way; whoever wants
//! something of it sends a command, which it obeys between two batches.
//!
//! A program that processes the deltas itself, without store and handlers, makes its controller from parts
//! with [`Config`].

mod applying;
mod availability;
mod bounds;
mod config;
mod consistency;
mod end;
mod found_broken;
mod inbox;
mod process_loop;
mod processing;
mod queueing;
mod run;
mod syncing;
mod restore;

pub(crate) use self::{
    applying::Lent,
    availability::Definition,
    bounds::{Bounds, CHANNEL_CAPACITY},
    inbox::Inbox,
    restore::Restore,
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
    consistency::ConsistencyCheck,
    end::{GoneGuard, LOOP, serve},
    queueing::queue_delta,
    syncing::Unconfirmed,
};
use crate::{
    clock,
    indexer::{
        Applied, Change, DuplicateIndex, Index, IndexBuild, IndexRef, IndexToken, IndexerWriter,
        NotRemovable, StatusNotes,
    },
    logs::LogLimiter,
    mutation_detector::MutationDetector,
    object::{ObjectName, SourceId},
    processor::{Closing, Listener, ListenerId, Processor},
    queue::Queue,
    reflector::{Delta, DeltaKind, Reflector, Reporter},
    status::{FailureCause, StatusReader, WaitForSync},
    warm_start::Moment,
};

/// What the loop is asked to do.
pub(crate) enum Command<K> {
    AddListener(Listener<K>, Option<BoxFuture<'static, ()>>),
    RemoveListener(ListenerId),
    AddIndices(
        Box<IndexBuild<K>>,
        oneshot::Sender<Result<Vec<IndexToken>, DuplicateIndex>>,
    ),
    /// Answered with the index, so that who asked frees it and not the loop.
    RemoveIndex(
        Box<dyn IndexRef + Send>,
        oneshot::Sender<Result<Index<K>, NotRemovable>>,
    ),
    /// Answered between two batches: all that readers can see has been sent to the handlers.
    Settle(oneshot::Sender<()>),
    /// What was saved, a list of each source: where reflectors go on from, if their servers let them.
    /// Answered when all of it is in the store.
    Fill(Vec<Delta<K>>, oneshot::Sender<()>),
    /// Answered with one moment of the store that can be saved, or compared, as soon as there is one.
    Moment(oneshot::Sender<Moment<K>>),
    /// The body of an object was decoded in vain: once per state, by the reader who was the first.
    FoundBroken(ObjectName),
}

/// A reflector that feeds the loop.
pub(crate) type InnerReflector<K> = Reflector<K, Inbox<K>>;

/// Where an informer is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Stopping(Closing),
}

/// What the loop works with.
pub(crate) struct Parts<K> {
    pub(crate) queue: Lent<Box<dyn Queue<K>>>,
    pub(crate) indexer: Lent<IndexerWriter<K>>,
    pub(crate) processor: Processor<K>,
    /// Only if it was asked for.
    pub(crate) mutation_detector: Option<MutationDetector<K>>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command<K>>,
    pub(crate) deltas: mpsc::Receiver<Delta<K>>,
    pub(crate) bounds: Bounds,
    pub(crate) report: Reporter,
    /// Told after each batch that readers can see it.
    pub(crate) applied: Arc<Notify>,
}

/// Runs one informer; consumed by [`Controller::run`], so an informer runs at most once.
///
/// The loop exists, idle, from the moment the informer is built: handlers and indices can be added
/// at any time. Dropping the controller instead of running it ends the informer.
#[must_use = "an informer does nothing until its controller runs"]
pub struct Controller<K> {
    reflectors: Vec<InnerReflector<K>>,
    following: Option<Following>,
    drain: Option<Duration>,
    phase: watch::Sender<Phase>,
    serving: JoinSet<Option<FailureCause>>,
    report: Reporter,
    restore: Option<Restore<K>>,
    consistency_check: Option<ConsistencyCheck<K>>,
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
        restore: Option<Restore<K>>,
    ) -> Self {
        let (phase, told) = watch::channel(Phase::Idle);
        let report = parts.report.clone();
        let served = Serving {
            sources: reflectors.len(),
            arrived: BTreeSet::new(),
            listed: BTreeSet::new(),
            unconfirmed: None,
            moments: Vec::new(),
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
            restore,
            consistency_check: None,
        }
    }

    /// Compares the store with the server every so often; never, if that is zero.
    pub(crate) fn checked(
        mut self,
        every: Duration,
        commands: &mpsc::UnboundedSender<Command<K>>,
        rng: fastrand::Rng,
    ) -> Self {
        if !every.is_zero() {
            let (commands, report) = (commands.clone(), self.report.clone());
            let reflectors = &mut self.reflectors;
            let check = ConsistencyCheck::new(every, reflectors, commands, report, rng);
            self.consistency_check = Some(check);
        }
        self
    }

    /// Waits until the first list is in the cache. Owns what it needs, so the controller can run
    /// meanwhile.
    pub fn wait_for_sync(&self) -> WaitForSync {
        self.report.wait_for_sync()
    }

    /// What the informer is doing.
    pub fn status(&self) -> StatusReader {
        self.report.status.reader()
    }

    /// At the end, what handlers have not been told yet is told, for at most so long. Without this it
    /// is discarded and counted in [`Status::discarded`](crate::status::Status::discarded).
    pub fn drain_at_shutdown(mut self, deadline: Duration) -> Self {
        self.drain = Some(deadline);
        self
    }

    /// Lets the informer rest while the definition of its kind is deleted and the server does not know
    /// the kind: its objects are gone then.
    #[cfg_attr(
        not(feature = "client"),
        expect(dead_code, reason = "only a factory follows definitions")
    )]
    pub(crate) fn follow(mut self, definition: watch::Receiver<Definition>) -> Self {
        self.following = Some(Following::new(definition, self.report.not_served.clone()));
        self
    }
}

/// The task: everything that changes is its own.
struct Serving<K> {
    parts: Parts<K>,
    sources: usize,
    /// Whose first list has come.
    arrived: BTreeSet<SourceId>,
    /// Whose first list has been told.
    listed: BTreeSet<SourceId>,
    /// Of a store that was filled before its sources: what is missing until it counts as confirmed.
    unconfirmed: Option<Unconfirmed>,
    /// Who wants a moment of the store.
    moments: Vec<oneshot::Sender<Moment<K>>>,
    /// Changes that the queue hands out before the last resync is delivered. The next resync waits until
    /// this is 0. Otherwise it would requeue the objects that were just delivered, and keep the queue at
    /// its capacity and new changes out of it.
    resyncing: usize,
    notes: StatusNotes,
    /// Objects that the queue could not name.
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
            self.hand_out_moments();
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
                // What is left in the queue waits for room, which may have come since it was looked for.
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

    /// Applies and tells what the listeners have room for, up to a batch; whether there may be more.
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
        // Before anyone can see it: the queue's key function is the first that does.
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
        // What has arrived goes first, so that its keys are passed over.
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

    /// The command that was found behind it, if one was.
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
            // Whoever asked may have stopped waiting.
            Command::Settle(reply) => drop(reply.send(())),
            Command::Moment(reply) => self.moments.push(reply),
            Command::Fill(lists, reply) => self.fill(lists, reply).await,
            Command::FoundBroken(name) => return self.find_broken(name),
            Command::AddIndices(build, reply) => {
                let added = indexer.install(*build).map(|(tokens, errors)| {
                    self.notes.note(&indexer.snapshot(), &errors);
                    tokens
                });
                // Whoever asked may have stopped waiting; the index is there all the same.
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
        // From here on commands are refused. Those that were on their way are let go of, so that
        // whoever is waiting for an answer hears of the end.
        self.parts.commands.close();
        while self.parts.commands.recv().await.is_some() {}
        self.moments.clear();
        let discarded = self.parts.processor.close(closing).await;
        // What was changed since the last check, by the last callbacks too.
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
