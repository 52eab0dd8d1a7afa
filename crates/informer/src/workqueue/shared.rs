//! [`Shared`] contains the state of one work queue. The handles of the queue share the state with every
//! [`Item`](super::Item) that a worker processes. [`Shared::operate`] changes the state, and wakes the tasks
//! that wait for the change.
//!
//! Guarantees: every operation runs under the queue's only lock. Before the operation, `operate` queues the
//! items whose delay has ended. After it has released the lock, `operate` reports metrics and wakes tasks.

use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::delaying_queue::DelayingQueue;
use super::hashed::Hashed;
use super::queue::Phase;
use super::rate_limiter::RateLimiter;
use crate::metrics::{self, SampledWorkQueue, WorkQueueMetrics, WorkQueueSample};

pub(super) struct Shared<T: Clone + Eq + Hash> {
    pub(super) state: Mutex<State<T>>,
    /// Wakes tasks that wait for an item.
    pub(super) ready: Notify,
    /// Wakes the callers of `shut_down_with_drain` when the drain ends.
    pub(super) drained: Notify,
    /// Creation time of the queue, from which delays and rate limits are measured.
    pub(super) origin: Instant,
    /// Records waiting and processing times of items; `None` without metrics.
    pub(super) metrics: Option<Box<dyn WorkQueueMetrics>>,
}

pub(super) struct State<T> {
    pub(super) delaying: DelayingQueue<T>,
    /// Number of tasks that wait or are about to wait for an item.
    pub(super) waiting: usize,
    pub(super) limiter: Box<dyn RateLimiter<T>>,
    pub(super) dropped: u64,
    pub(super) given_up: u64,
    /// Value of the metric `workqueue_retries_total`: the number of accepted additions with a delay.
    ///
    /// As in client-go, additions with a delay of zero are included.
    pub(super) retries: u64,
}

/// The tasks that [`Shared::operate`] wakes after an operation on the queue.
enum Wake {
    None,
    One,
    All,
    /// All tasks that wait for an item or for the end of a drain.
    Drains,
}

/// The way in which a worker ended the work on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Forget,
    Retry,
    RetryAfter(Duration),
    GiveUp,
    /// The worker dropped the item without calling a method that ends the work.
    Dropped,
}

// === impl Shared ===

impl<T: Clone + Eq + Hash> Shared<T> {
    pub(super) fn requeues(&self, item: &T) -> u32 {
        self.operate(|state| state.limiter.requeues(item))
    }

    pub(super) fn end(&self, item: &Hashed<T>, verdict: Verdict) {
        self.operate(|state| state.end(item, verdict, || self.now()));
    }

    /// Runs `operation` under the lock, and then wakes the tasks that wait for its effects.
    ///
    /// Before `operation` runs, this method queues the items whose delay has ended.
    pub(super) fn operate<R>(&self, operation: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut state = self.state.lock();
        let earliest = state.delaying.earliest();
        if earliest.is_some() {
            state.delaying.promote(self.now());
        }
        let answer = operation(&mut state);
        let wake = state.wake(earliest);
        if let Some(metrics) = &self.metrics {
            let observed = state.delaying.queue().take_observed();
            drop(state);
            if let Some(observed) = observed {
                metrics::guarded(|| metrics.observe(observed));
            }
        } else {
            drop(state);
        }
        match wake {
            Wake::None => {}
            Wake::One => self.ready.notify_one(),
            Wake::All => self.ready.notify_waiters(),
            Wake::Drains => {
                self.ready.notify_waiters();
                self.drained.notify_waiters();
            }
        }
        answer
    }

    pub(super) fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

impl<T: Clone + Eq + Hash + Send> SampledWorkQueue for Shared<T> {
    fn sample(&self) -> WorkQueueSample {
        self.operate(|state| WorkQueueSample {
            delayed: state.delaying.delayed_len(),
            retries: state.retries,
            ..state.delaying.queue().sample()
        })
    }
}

// === impl State ===

impl<T: Clone + Eq + Hash> State<T> {
    pub(super) fn add_after(&mut self, item: T, delay: Duration, now: impl FnOnce() -> Duration) {
        if self.delaying.queue().is_shutting_down() {
            return;
        }
        self.retries += 1;
        if delay.is_zero() {
            self.delaying.queue().add(item);
        } else {
            self.delaying.add_at(item, now().saturating_add(delay));
        }
    }

    pub(super) fn add_rate_limited(&mut self, item: T, now: Duration) {
        // After a shut-down the limiter would keep an item that no worker forgets.
        if self.delaying.queue().is_shutting_down() {
            return;
        }
        let delay = self.limiter.when(&item, now);
        self.add_after(item, delay, || now);
    }

    fn end(&mut self, item: &Hashed<T>, verdict: Verdict, now: impl FnOnce() -> Duration) {
        self.delaying.queue().done(item);
        match verdict {
            Verdict::Done => {}
            Verdict::Forget => self.limiter.forget(item),
            Verdict::Retry => self.add_rate_limited(T::clone(item), now()),
            Verdict::RetryAfter(delay) => self.add_after(T::clone(item), delay, now),
            Verdict::GiveUp => {
                self.limiter.forget(item);
                self.given_up += 1;
            }
            Verdict::Dropped => {
                self.dropped += 1;
                self.add_rate_limited(T::clone(item), now());
            }
        }
    }

    /// Returns the tasks to wake after an operation.
    ///
    /// `earliest` is the result of [`DelayingQueue::earliest`] before the operation. If the earliest delay
    /// now ends sooner, all tasks that wait for an item are woken, to shorten their timers.
    fn wake(&mut self, earliest: Option<Duration>) -> Wake {
        let sooner = match (self.delaying.earliest(), earliest) {
            (Some(now), Some(before)) => now < before,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let queue = self.delaying.queue();
        let wake_ups = queue.take_wake_ups();
        if wake_ups.ending {
            if queue.is_idle() || queue.phase() == Phase::ShutDown {
                Wake::Drains
            } else {
                Wake::All
            }
        } else if self.waiting == 0 {
            Wake::None
        } else if sooner || wake_ups.pushed > 1 {
            Wake::All
        } else if wake_ups.pushed == 1 {
            Wake::One
        } else {
            Wake::None
        }
    }
}
