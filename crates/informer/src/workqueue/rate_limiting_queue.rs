//! [`RateLimitingQueue`] is the handle of a work queue, with which producers add items and workers wait for
//! items.
//!
//! Guarantees: all state is under one lock, and no operation waits while it holds the lock. A task that waits
//! for an item is woken when an item is added, when the delay of an item ends, and when a shut-down starts.
//! Cancelling one waiting future affects no other task, and no wake-up is lost.

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

use super::item::Item;
use super::queue::{Next, Phase};
use super::shared::Shared;

/// A queue of keys with delays and a rate limiter. A clone is another handle to the same queue.
///
/// See the [module](super) for the guarantees of the queue. The queue uses the `Clone`, `Eq`, `Hash` and
/// `Drop` implementations of `T` while the queue's lock is held. These implementations must not call the
/// queue, which would cause a deadlock.
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

/// Result of one attempt of a waiting task to receive an item.
enum Asked<T: Clone + Eq + Hash> {
    Answered(Option<Item<T>>),
    /// No item is queued. The value is the time until the earliest delay ends, if any.
    Wait(Option<Duration>),
}

/// Guard that counts a task as waiting for an item until the guard is dropped.
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
    /// Adds an item to the queue, unless the item is already queued. If the item is in work, it is queued
    /// again when this work ends.
    ///
    /// After a shut-down this call has no effect.
    #[doc(alias = "Add")]
    pub fn add(&self, item: T) {
        self.shared
            .operate(|state| state.delaying.queue().add(item));
    }

    /// Adds an item to the queue after `delay`, or at once if `delay` is zero. The call never blocks.
    ///
    /// If the item is already delayed, it is added once, at the earlier of the two times. After a shut-down
    /// the call has no effect. A shut-down drops all delayed items.
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, item: T, delay: Duration) {
        let shared = &*self.shared;
        shared.operate(|state| state.add_after(item, delay, || shared.now()));
    }

    /// Adds an item to the queue after the delay of the rate limiter. The rate limiter counts a failure of
    /// the item.
    ///
    /// After a shut-down this call has no effect.
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, item: T) {
        let shared = &*self.shared;
        shared.operate(|state| state.add_rate_limited(item, shared.now()));
    }

    /// Resets the rate limiter's count of failures of an item. The call does not change whether the item is
    /// queued, delayed or in work.
    #[doc(alias = "Forget")]
    pub fn forget(&self, item: &T) {
        self.shared.operate(|state| state.limiter.forget(item));
    }

    /// Returns the number of failures of an item since it was last forgotten, as the rate limiter counts
    /// them.
    #[doc(alias = "NumRequeues")]
    pub fn num_requeues(&self, item: &T) -> u32 {
        self.shared.requeues(item)
    }

    /// Cancels the delayed addition of an item. Returns whether the item was delayed.
    ///
    /// An item whose delay has already ended remains queued.
    pub fn cancel_delayed(&self, item: &T) -> bool {
        self.shared.operate(|state| state.delaying.cancel(item))
    }

    /// Returns the delayed items with their remaining delays, shortest delay first.
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

    /// Returns the number of queued items. This number includes items whose delay has ended, but not items in
    /// work.
    ///
    /// Other tasks may change the number before the caller reads it, so use it only for display.
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.operate(|state| state.delaying.queue().len())
    }

    /// Returns whether no item is queued. Other tasks may change the result before the caller reads it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items in work. Other tasks may change the number before the caller reads it.
    pub fn processing(&self) -> usize {
        self.shared
            .operate(|state| state.delaying.queue().processing())
    }

    /// Returns the number of items that workers dropped without calling a method such as [`Item::done`],
    /// since the queue was created.
    pub fn dropped_items(&self) -> u64 {
        self.shared.operate(|state| state.dropped)
    }

    /// Returns the number of items that were [given up](Item::give_up) since the queue was created.
    pub fn given_up_items(&self) -> u64 {
        self.shared.operate(|state| state.given_up)
    }

    /// Waits for the next item and returns it.
    ///
    /// Returns `None` after a shut-down, when no item is queued. During a
    /// [drain](Self::shut_down_with_drain), the call also waits if an item in work was added again, because
    /// such an item will be queued again.
    ///
    /// Several tasks may wait. Each item is returned to one of them.
    ///
    /// The call requires a Tokio runtime with time enabled if an item is delayed.
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
        // No wake-up is lost. The counter of `Waiting` is incremented, and the task is registered with
        // `Notify`, before the task looks for an item. If the woken task is dropped, `Notify` wakes another
        // task. Each task sleeps until the earliest delay ends, and an earlier delay wakes all tasks.
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

    /// Stops accepting items, and drops the delayed items.
    ///
    /// Workers receive the remaining queued items, and then `None`. The call does not wait for the workers.
    /// Pending calls of [`RateLimitingQueue::shut_down_with_drain`] return.
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.shared
            .operate(|state| state.delaying.shut_down(Phase::ShutDown));
    }

    /// Stops accepting items, drops the delayed items, and waits until no item is queued and no item is in
    /// work.
    ///
    /// Workers must continue to call `get` until it returns `None`. A later call of
    /// [`RateLimitingQueue::shut_down`] also ends the wait. Several tasks may call this method, and all calls
    /// return at the same time.
    ///
    /// # Cancel safety
    ///
    /// The shut-down starts when the future is first polled. If the future is dropped later, the wait ends,
    /// but the shut-down continues.
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn shut_down_with_drain(&self) {
        let shared = &*self.shared;
        let drained = shared.operate(|state| {
            state.delaying.shut_down(Phase::Draining);
            // A `Notified` that is created under the lock receives the next notification, even before its
            // first poll.
            (!state.delaying.queue().is_idle()).then(|| shared.drained.notified())
        });
        if let Some(drained) = drained {
            drained.await;
        }
    }

    /// Returns whether a shut-down has started, with or without a drain.
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
