//! [`Item`] is an item that a worker has received. Methods of [`Item`], called verdicts, end the work on the
//! item.
//!
//! Guarantees: the work on every item ends exactly once. Only the queue creates an [`Item`], and every
//! verdict consumes the [`Item`]. Dropping an [`Item`] without a verdict also ends the work.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::hashed::Hashed;
use super::shared::{Shared, Verdict};

/// An item that a worker has received and processes: an item in work. No other worker receives the item until
/// a method such as [`Item::done`] ends the work.
///
/// Each method that ends the work is called a verdict. A worker that panics or is cancelled drops the `Item`
/// without a verdict. The queue then adds the item again after the delay of the rate limiter, and counts the
/// item in [`dropped_items`](super::RateLimitingQueue::dropped_items).
///
/// If the item was added to the queue while it was in work, every verdict queues the item again at once.
/// After a shut-down the queue accepts no items. [`Item::retry`] then has the same effect as [`Item::done`].
///
/// A second verdict on the same item does not compile:
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
    /// Whether a method such as [`Item::done`] has ended the work. If not, dropping the [`Item`] ends the
    /// work.
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

    /// Returns the item that was added to the queue, usually the key of an object.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns the number of failures of the item since it was last forgotten, as the rate limiter counts
    /// them.
    #[doc(alias = "NumRequeues")]
    pub fn requeues(&self) -> u32 {
        self.shared.requeues(&self.key)
    }

    /// Ends the work and keeps the rate limiter's count of failures. This count determines the delay of the
    /// next retry.
    ///
    /// After a success, use [`Item::forget`] instead, because the rate limiter keeps an item in memory until
    /// the item is forgotten.
    #[doc(alias = "Done")]
    pub fn done(self) {
        self.end(Verdict::Done);
    }

    /// Ends the work after a success, and resets the rate limiter's count of failures of the item.
    #[doc(alias = "Forget")]
    pub fn forget(self) {
        self.end(Verdict::Forget);
    }

    /// Ends the work after a failure. The queue adds the item again after the delay of the rate limiter.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        self.end(Verdict::Retry);
    }

    /// Ends the work, and adds the item again after `delay`. The rate limiter does not count a failure.
    #[doc(alias = "AddAfter")]
    pub fn retry_after(self, delay: Duration) {
        self.end(Verdict::RetryAfter(delay));
    }

    /// Ends the work after a permanent failure, without a retry. Resets the rate limiter's count of failures
    /// of the item, and counts the item in [`given_up_items`](super::RateLimitingQueue::given_up_items).
    pub fn give_up(self) {
        self.end(Verdict::GiveUp);
    }

    fn end(mut self, verdict: Verdict) {
        // Set first, so that no second verdict follows if the limiter panics.
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
