//! [`RateLimitingQueue`]: the handle of a work queue, with waiting and a rate limiter.
//!
//! Every operation acquires the queue's only lock once and does not wait while it holds the lock. A task that
//! waits for an item is woken when an item is added, when a delayed item is due, and at the shut-down.
//! Cancelling a waiting future affects no other task.
//!
//! Why no wake-up is lost: a waiting task registers before it looks for an item, so an item added in between
//! finds the task registered. The task is counted under the lock before it looks, so an `add` that finds no
//! counted task has none to wake. One new item wakes one task, and tokio's `Notify` passes the wake-up on if
//! that task is dropped before it runs. Every waiting task sleeps at most until the earliest delayed item is
//! due. A delayed item that is due earlier wakes all waiting tasks, so any of them may be cancelled.

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

use super::item::Item;
use super::queue::{Next, Phase};
use super::shared::Shared;

/// A queue of keys with delays and a rate limiter; a clone is another handle to the same queue.
///
/// See the [module](super) for the guarantees of the queue. `T`'s `Clone`, `Eq`, `Hash` and `Drop` run under
/// the queue's lock and must not call the queue.
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "RateLimitingInterface")]
#[doc(alias = "DelayingInterface")]
#[doc(alias = "DelayingQueue")]
#[doc(alias = "WorkQueue")]
#[doc(alias = "Interface")]
#[doc(alias = "TypedInterface")]
#[doc(alias = "TypedDelayingInterface")]
#[doc(alias = "Type")]
#[doc(alias = "Typed")]
#[derive_where(Clone)]
pub struct RateLimitingQueue<T: Clone + Eq + Hash> {
    pub(super) shared: Arc<Shared<T>>,
}

/// The result of a look-up by a task that waits for an item.
enum Asked<T: Clone + Eq + Hash> {
    Answered(Option<Item<T>>),
    /// No item is queued; the next delayed item, if any, is due after this time.
    Wait(Option<Duration>),
}

/// Guard that counts a waiting task in the queue's state until the guard is dropped.
struct Waiting<'a, T: Clone + Eq + Hash>(&'a Shared<T>);

impl<'a, T: Clone + Eq + Hash> Waiting<'a, T> {
    fn new(shared: &'a Shared<T>) -> Self {
        shared.state.lock().waiting += 1;
        Self(shared)
    }
}

impl<T: Clone + Eq + Hash> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}

// === impl RateLimitingQueue ===

impl<T: Clone + Eq + Hash + Send + 'static> RateLimitingQueue<T> {
    /// Adds an item, unless it is queued already. An item in work is queued again when it is done.
    ///
    /// After a shut-down this has no effect.
    #[doc(alias = "Add")]
    pub fn add(&self, item: T) {
        self.shared
            .operate(|state| state.delaying.queue().add(item));
    }

    /// Adds an item after `delay`; at once if `delay` is zero.
    ///
    /// The call never blocks. If the item is delayed already, it is added once, at the earlier time. After a
    /// shut-down the call has no effect; a shut-down also drops all delayed items.
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, item: T, delay: Duration) {
        let shared = &*self.shared;
        shared.operate(|state| state.add_after(item, delay, || shared.now()));
    }

    /// Adds an item after the limiter's delay; the limiter counts a failure.
    ///
    /// After a shut-down this has no effect.
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, item: T) {
        let shared = &*self.shared;
        shared.operate(|state| state.add_rate_limited(item, shared.now()));
    }

    /// Resets the limiter's count of failures for an item. The item stays queued, delayed or in work.
    #[doc(alias = "Forget")]
    pub fn forget(&self, item: &T) {
        self.shared.operate(|state| state.limiter.forget(item));
    }

    /// Returns the number of failures of an item since it was last forgotten, according to the limiter.
    #[doc(alias = "NumRequeues")]
    pub fn num_requeues(&self, item: &T) -> u32 {
        self.shared.requeues(item)
    }

    /// Cancels a delayed item, and returns whether the item was delayed.
    ///
    /// An item whose delay is over is queued already, and stays queued.
    pub fn cancel_delayed(&self, item: &T) -> bool {
        self.shared.operate(|state| state.delaying.cancel(item))
    }

    /// Returns the delayed items with their remaining delays, earliest first.
    pub fn delayed(&self) -> Vec<(T, Duration)> {
        let shared = &*self.shared;
        shared.operate(|state| {
            let now = shared.now();
            state
                .delaying
                .delayed()
                .map(|(item, at)| (item.clone(), at.saturating_sub(now)))
                .collect()
        })
    }

    /// Returns the number of queued items, including delayed items that are due; items in work are not
    /// included.
    ///
    /// The number may have changed when the call returns; use it for display only.
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.operate(|state| state.delaying.queue().len())
    }

    /// Returns whether no item is queued; see [`RateLimitingQueue::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items in work; see [`RateLimitingQueue::len`].
    pub fn processing(&self) -> usize {
        self.shared
            .operate(|state| state.delaying.queue().processing())
    }

    /// Returns the number of items that a worker dropped without ending the work on them; see [`Item`].
    pub fn dropped_items(&self) -> u64 {
        self.shared.operate(|state| state.dropped)
    }

    /// Returns the number of items that were [given up](Item::give_up).
    pub fn given_up_items(&self) -> u64 {
        self.shared.operate(|state| state.given_up)
    }

    /// Waits for the next item; `None` after a shut-down, when no item is left.
    ///
    /// Several tasks may wait; each item is returned to one of them. During a drain, `None` is returned only when no
    /// item can be queued again: an item that was added before the shut-down while it was in work is still returned.
    /// Delayed items need a runtime with time enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item and no wake-up.
    #[doc(alias = "Get")]
    pub async fn get(&self) -> Option<Item<T>> {
        // A worker that never has to wait must still yield to other tasks of its thread.
        tokio::task::coop::consume_budget().await;
        if let Asked::Answered(answer) = self.ask() {
            return answer;
        }
        let _waiting = Waiting::new(&self.shared);
        loop {
            let mut told = pin!(self.shared.ready.notified());
            told.as_mut().enable();
            match self.ask() {
                Asked::Answered(answer) => return answer,
                Asked::Wait(None) => told.await,
                Asked::Wait(Some(delay)) => tokio::select! {
                    biased;
                    () = told => {}
                    () = tokio::time::sleep(delay) => {}
                },
            }
        }
    }

    /// Stops accepting items, and drops delayed items.
    ///
    /// Workers receive the remaining queued items, and then `None`. The call returns at once, and ends all waiting
    /// drains.
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.shared
            .operate(|state| state.delaying.shut_down(Phase::ShutDown));
    }

    /// Shuts the queue down and waits until no item is queued and none is in work.
    ///
    /// The wait also ends at a later [`RateLimitingQueue::shut_down`].
    ///
    /// Workers must continue to call `get` until it returns `None`. Delayed items are dropped. Several tasks may
    /// wait; all waits end together.
    ///
    /// # Cancel safety
    ///
    /// The shut-down starts at the first poll. Dropping the future afterwards only ends the wait.
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn shut_down_with_drain(&self) {
        let shared = &*self.shared;
        let drained = shared.operate(|state| {
            state.delaying.shut_down(Phase::Draining);
            // Created under the lock, it receives the next change even before its first poll.
            (!state.delaying.queue().is_idle()).then(|| shared.drained.notified())
        });
        if let Some(drained) = drained {
            drained.await;
        }
    }

    /// Returns whether a shut-down of either kind has started.
    #[doc(alias = "ShuttingDown")]
    pub fn is_shutting_down(&self) -> bool {
        self.shared
            .operate(|state| state.delaying.queue().is_shutting_down())
    }

    fn ask(&self) -> Asked<T> {
        let shared = &*self.shared;
        shared.operate(|state| match state.delaying.queue().next() {
            Next::Item(key) => Asked::Answered(Some(Item::new(key, Arc::clone(&self.shared)))),
            Next::End => Asked::Answered(None),
            Next::Nothing => {
                let due = state.delaying.earliest();
                Asked::Wait(due.map(|due| due.saturating_sub(shared.now())))
            }
        })
    }
}

impl<T: Clone + Eq + Hash> fmt::Debug for RateLimitingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queued, processing, phase) = self.shared.operate(|state| {
            let queue = state.delaying.queue();
            (queue.len(), queue.processing(), queue.phase())
        });
        f.debug_struct("RateLimitingQueue")
            .field("queued", &queued)
            .field("processing", &processing)
            .field("phase", &phase)
            .finish_non_exhaustive()
    }
}
