//! The work queue as it is used: a handle on the plain structs, with waiting and a rate limiter.
//!
//! It guarantees that every operation takes the one lock once and never waits with it; that a task
//! waiting for an item is woken when there is one, when one comes due and at the end; and that
//! cancelling any waiting future at any point takes nothing from anybody.
//!
//! Why no wake-up is lost: a waiting task registers first and looks for an item afterwards, so an
//! item added in between finds it registered.
//! It is counted before it looks, under the lock, so whoever adds an item while none is counted has
//! nobody to wake.
//! One new item wakes one waiting task, and tokio's `Notify` passes the wake-up on if that task is
//! dropped before it runs.
//! Every waiting task sleeps no longer than until the earliest delayed item is due: an earlier one
//! wakes them all to look again, so it does not matter which of them is cancelled.

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;

use super::item::Item;
use super::queue::{Next, Phase};
use super::shared::Shared;

/// A queue of keys with delays and a rate limiter; a clone is another handle on the same queue.
///
/// The [module](super) says what it guarantees.
/// `T`'s `Clone`, `Eq`, `Hash` and `Drop` run under the queue's lock and must not call the queue.
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

/// What a task that asked for an item does next.
enum Asked<T: Clone + Eq + Hash> {
    Answered(Option<Item<T>>),
    /// Nothing is queued; something is due after this time, if anything is.
    Wait(Option<Duration>),
}

/// Counts a task that waits for an item, for as long as it lives.
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
    /// Adds an item, unless it is queued already; one that is in work is queued again when it is
    /// done.
    ///
    /// Ignored after a shut-down.
    #[doc(alias = "Add")]
    pub fn add(&self, item: T) {
        self.shared
            .operate(|state| state.delaying.queue().add(item));
    }

    /// Adds an item once `delay` has passed; at once if it is zero.
    ///
    /// Never blocks.
    /// If the item is delayed already, the earlier of the two times counts, and it is added once.
    /// Ignored after a shut-down, which also drops what is delayed then.
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, item: T, delay: Duration) {
        let shared = &*self.shared;
        shared.operate(|state| state.add_after(item, delay, || shared.now()));
    }

    /// Adds an item after the delay that the limiter gives it, which counts this as a failure.
    ///
    /// Ignored after a shut-down.
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, item: T) {
        let shared = &*self.shared;
        shared.operate(|state| state.add_rate_limited(item, shared.now()));
    }

    /// Makes the limiter forget the failures of an item; it stays queued, delayed or in work.
    #[doc(alias = "Forget")]
    pub fn forget(&self, item: &T) {
        self.shared.operate(|state| state.limiter.forget(item));
    }

    /// How often an item has failed since it was last forgotten, as the limiter counts it.
    #[doc(alias = "NumRequeues")]
    pub fn num_requeues(&self, item: &T) -> u32 {
        self.shared.requeues(item)
    }

    /// Takes a delayed item back, and tells whether it was delayed.
    ///
    /// One that has come due is queued and stays so.
    pub fn cancel_delayed(&self, item: &T) -> bool {
        self.shared.operate(|state| state.delaying.cancel(item))
    }

    /// The delayed items and how long each still waits, earliest first.
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

    /// How many items are queued, delayed ones that have come due included; not those in work.
    ///
    /// It is out of date when it arrives: for people, not for decisions.
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.operate(|state| state.delaying.queue().len())
    }

    /// Whether no item is queued; see [`RateLimitingQueue::len`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items are in the hands of workers; see [`RateLimitingQueue::len`].
    pub fn processing(&self) -> usize {
        self.shared
            .operate(|state| state.delaying.queue().processing())
    }

    /// How many items were dropped without a verdict since the queue was made.
    pub fn dropped_items(&self) -> u64 {
        self.shared.operate(|state| state.dropped)
    }

    /// How many items were [given up](Item::give_up) since the queue was made.
    pub fn given_up_items(&self) -> u64 {
        self.shared.operate(|state| state.given_up)
    }

    /// Waits for the next item; `None` after a shut-down, once nothing is left.
    ///
    /// Several tasks may wait; each item goes to one of them.
    /// While a drain waits, `None` comes only when no item can come back: one that was added again
    /// before the shut-down, while it was in work, is still handed out.
    /// Delayed items need a runtime with time enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes no item and no other task's wake-up.
    #[doc(alias = "Get")]
    pub async fn get(&self) -> Option<Item<T>> {
        // A worker that never has to wait must not keep the other tasks of its thread from running.
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

    /// Accepts nothing any more and drops what is delayed.
    ///
    /// What is queued is still handed out, then every worker is told the end.
    /// It returns at once, and releases everybody who waits for a drain.
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.shared
            .operate(|state| state.delaying.shut_down(Phase::ShutDown));
    }

    /// As [`RateLimitingQueue::shut_down`], and waits until nothing is queued and nothing is in
    /// work, or until a later `shut_down`.
    ///
    /// Needs workers that go on taking items until they are told the end; delayed items are dropped
    /// and not waited for.
    /// Several tasks may wait; all end together.
    ///
    /// # Cancel safety
    ///
    /// The shut-down begins when the future is first polled.
    /// Dropping it later only ends the waiting.
    #[doc(alias = "ShutDownWithDrain")]
    pub async fn shut_down_with_drain(&self) {
        let shared = &*self.shared;
        let drained = shared.operate(|state| {
            state.delaying.shut_down(Phase::Draining);
            // Made under the lock, it hears of the very next change, though it isn't polled yet.
            (!state.delaying.queue().is_idle()).then(|| shared.drained.notified())
        });
        if let Some(drained) = drained {
            drained.await;
        }
    }

    /// Whether either kind of shut-down has begun.
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
