//! An item in a worker's hands, and what may be said of it.
//!
//! It guarantees that every item handed out is ended exactly once, whatever becomes of its worker:
//! an [`Item`] is made only by taking one from the queue, a verdict consumes it, and dropping it is
//! a verdict too.
//! Ending the work on an item that was never handed out therefore can't be written.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::hashed::Hashed;
use super::shared::{Shared, Verdict};

/// An item in a worker's hands; nobody else is given it until it has had its verdict.
///
/// Dropped without one, because its worker panicked or was cancelled, it is done, added again after
/// the limiter's delay, and counted in
/// [`dropped_items`](super::RateLimitingQueue::dropped_items).
///
/// Whatever the verdict, an item that was added while it was in work is queued again at once.
/// After a shut-down nothing is added any more, so a retry is then the same as [`Item::done`].
///
/// There is one verdict on each item:
///
/// ```compile_fail,E0382
/// # async fn example(queue: kube_informer::workqueue::RateLimitingQueue<String>) {
/// let item = queue.get().await.unwrap();
/// item.done();
/// item.done(); // it was moved
/// # }
/// ```
#[must_use = "an item dropped without a verdict is retried and counted as dropped"]
pub struct Item<T: Clone + Eq + Hash> {
    key: Hashed<T>,
    /// Whether there was a verdict.
    ended: bool,
    shared: Arc<Shared<T>>,
}

impl<T: Clone + Eq + Hash> Item<T> {
    pub(super) fn new(key: Hashed<T>, shared: Arc<Shared<T>>) -> Self {
        Self {
            key,
            ended: false,
            shared,
        }
    }

    /// What is to be worked on.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// How often this item has been retried since it was last forgotten, as the limiter counts it.
    #[doc(alias = "NumRequeues")]
    pub fn requeues(&self) -> u32 {
        self.shared.requeues(&self.key)
    }

    /// The work is done; earlier failures stay remembered, and lengthen the next retry's delay.
    ///
    /// [`Item::forget`] is what a success usually wants: an item that is never forgotten stays in
    /// the limiter's memory for good.
    #[doc(alias = "Done")]
    pub fn done(self) {
        self.end(Verdict::Done);
    }

    /// The work is done, and its earlier failures are forgotten.
    #[doc(alias = "Forget")]
    pub fn forget(self) {
        self.end(Verdict::Forget);
    }

    /// The work failed: the item is added again after the limiter's delay.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        self.end(Verdict::Retry);
    }

    /// The item is added again after `delay`; the limiter is not asked and nothing is forgotten.
    #[doc(alias = "AddAfter")]
    pub fn retry_after(self, delay: Duration) {
        self.end(Verdict::RetryAfter(delay));
    }

    /// The work failed for good: the item is done, its failures are forgotten, and it is counted in
    /// [`given_up_items`](super::RateLimitingQueue::given_up_items).
    pub fn give_up(self) {
        self.end(Verdict::GiveUp);
    }

    fn end(mut self, verdict: Verdict) {
        // First, so that it is the only one, even if a limiter panics over it.
        self.ended = true;
        self.shared.end(&self.key, verdict);
    }
}

impl<T: Clone + Eq + Hash> Drop for Item<T> {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.end(&self.key, Verdict::Dropped);
        }
    }
}

impl<T: Clone + Eq + Hash + fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(self.key()).finish()
    }
}
