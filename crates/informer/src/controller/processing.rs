//! Passes deltas from a channel through a [`DeltaFifo`] to a process function ([`Processing`]).
//!
//! Guarantees: the changes of a key are processed in order, also when a failed change is retried. Errors of
//! the process function do not block other keys.
//!
//! This module does not store objects.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use super::{Bounds, queue_delta};
use crate::{
    clock,
    limits::{MESSAGE_BYTES, one_line},
    logs::LogLimiter,
    object::Known,
    panics::{Panicked, confined},
    queue::{DeltaFifo, Popped, Queue},
    reflector::{Delta, DeltaKind, Error, Reporter},
};

/// Length of the first pause after the process function has failed for all queued keys.
///
/// Each further pause is twice as long, up to [`RETRY_PAUSE_MAX`], until the process function succeeds. The
/// value is the base delay of client-go's work queues.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(5);

/// Maximum length of a pause after the process function has failed for all queued keys.
///
/// The value is the maximum backoff of client-go's reflector.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

pub(super) type Process<K> = Box<dyn FnMut(&Popped<K>) -> Result<(), ProcessError> + Send>;

/// The error type of a process function.
pub type ProcessError = Box<dyn std::error::Error + Send + Sync>;

/// The user's store of known objects, shared by the queue and the reflector.
pub(super) type Shared<K> = Arc<dyn Known<K> + Send + Sync>;

/// Passes a reflector's changes through a queue to the process function.
///
/// Also runs resyncs, and retries failed changes if `retry` is set.
pub(super) struct Processing<K> {
    pub(super) queue: DeltaFifo<K>,
    pub(super) process: Process<K>,
    pub(super) known: Shared<K>,
    pub(super) deltas: mpsc::Receiver<Delta<K>>,
    pub(super) report: Reporter,
    /// Limits the rate of logs about objects for which the queue's key function failed.
    pub(super) keyless: LogLimiter,
    /// Limits the rate of logs about failures of the process function.
    pub(super) unprocessed: LogLimiter,
    pub(super) resync: ResyncTimer,
    /// Number of keys to pop from the queue before the next resync can start.
    ///
    /// Each resync sets this number to the length of the queue. Frequent resyncs therefore can't fill the
    /// queue.
    pub(super) resyncing: usize,
    pub(super) retry: Option<Retry>,
}

impl<K: Send + Sync + 'static> Processing<K> {
    /// Processes changes until the reflector that sends them is dropped.
    pub(super) async fn run(&mut self) {
        let bounds = Bounds::default();
        let mut arrived = Vec::new();
        self.resync.restart();
        loop {
            let more = self.process_batch(bounds.batch);
            let room = bounds.room(Queue::len(&self.queue));
            let resumes = self.resumes();
            tokio::select! {
                biased;
                () = clock::until(self.resync.due), if self.resyncing == 0 => self.resync(bounds),
                () = clock::until(resumes) => self.resume(),
                () = tokio::task::yield_now(), if more => {}
                count = self.deltas.recv_many(&mut arrived, room), if room > 0 => {
                    if count == 0 {
                        return;
                    }
                    for delta in arrived.drain(..) {
                        self.accept(delta);
                    }
                }
            }
        }
    }

    /// Returns the number of unprocessed changes in the queue and the channel.
    pub(super) fn waiting(&self) -> usize {
        Queue::len(&self.queue) + self.deltas.len()
    }

    /// Processes at most `keys` keys, and returns whether more can be processed immediately.
    fn process_batch(&mut self, keys: usize) -> bool {
        for _ in 0..keys {
            if self.resumes().is_some() {
                break;
            }
            let Some(popped) = self.queue.pop() else {
                break;
            };
            self.resyncing = self.resyncing.saturating_sub(1);
            self.process(popped);
        }
        let status = &self.report.status;
        if !status.is_synced() && self.queue.has_synced() {
            status.set_synced();
        }
        self.resumes().is_none() && !self.queue.is_empty()
    }

    fn process(&mut self, popped: Popped<K>) {
        let reason = match confined(|| (self.process)(&popped)) {
            Ok(Ok(())) => {
                self.retry = self.retry.take().map(|_| Retry::default());
                return;
            }
            Ok(Err(error)) => one_line(&error.to_string(), MESSAGE_BYTES),
            Err(Panicked) => "the process function panicked".to_owned(),
        };
        let error = Error::Process {
            object: popped.name.clone(),
            reason,
            retried: self.retry.is_some(),
        };
        self.report.unprocessed(&error, &mut self.unprocessed);
        if let Some(retry) = &mut self.retry {
            // The queue has not changed since the key was popped, so it contains no newer deltas of the key.
            let requeued = self.queue.add_if_not_present(popped);
            debug_assert!(requeued.is_ok(), "a popped key is not in the queue");
            retry.failed(self.queue.len());
        }
    }

    fn accept(&mut self, delta: Delta<K>) {
        let is_change = !matches!(delta.kind, DeltaKind::Bookmark { .. });
        for error in queue_delta(&mut self.queue, delta, &*self.known) {
            self.report.skipped(&error, &mut self.keyless);
        }
        if is_change {
            self.resume();
        }
    }

    /// Restarts the resync timer, and runs a resync if [`ResyncTimer::should_resync`] returns `true`.
    ///
    /// A resync first queues the changes from the channel, up to the queue's limit. Then it queues every
    /// object in the user's store that has no changes in the queue. The limit does not apply to these
    /// objects.
    fn resync(&mut self, bounds: Bounds) {
        self.resync.restart();
        if !(self.resync.should_resync)() {
            return;
        }
        while bounds.room(Queue::len(&self.queue)) > 0
            && let Ok(delta) = self.deltas.try_recv()
        {
            self.accept(delta);
        }
        Queue::resync(&mut self.queue, &*self.known);
        self.resyncing = self.queue.len();
        self.resume();
    }

    /// Returns the time at which the current pause ends, or `None` if there is no pause.
    fn resumes(&self) -> Option<Instant> {
        self.retry.as_ref().and_then(|retry| retry.resumes)
    }

    fn resume(&mut self) {
        if let Some(retry) = &mut self.retry {
            retry.resumes = None;
        }
    }
}

/// Timer for resyncs, which queue all known objects again.
pub(super) struct ResyncTimer {
    /// Interval between resyncs; zero disables resyncs.
    pub(super) period: Duration,
    /// Time of the next resync, or `None` if resyncs are disabled.
    pub(super) due: Option<Instant>,
    pub(super) should_resync: Box<dyn FnMut() -> bool + Send>,
}

impl ResyncTimer {
    fn restart(&mut self) {
        self.due = (!self.period.is_zero()).then(|| clock::from_now(self.period));
    }
}

/// State of the retries and pauses after failures of the process function.
#[derive(Default)]
pub(super) struct Retry {
    /// Number of consecutive failures since the last success or pause.
    failed: usize,
    /// Length of the latest pause; zero if there was no pause since the last success of the process function.
    pause: Duration,
    /// Time at which the current pause ends; `None` if there is no pause.
    resumes: Option<Instant>,
}

impl Retry {
    /// Records a failure of the process function. Starts a pause if all queued keys may have failed.
    ///
    /// The pause starts after `waiting` consecutive failures, where `waiting` is the number of queued keys.
    fn failed(&mut self, waiting: usize) {
        self.failed += 1;
        if self.failed >= waiting {
            self.failed = 0;
            self.pause = (self.pause * 2).clamp(RETRY_PAUSE_MIN, RETRY_PAUSE_MAX);
            self.resumes = Some(clock::from_now(self.pause));
        }
    }
}
