//! [`Item`]: an item that a worker processes, with the methods that end the work (the verdicts).
//!
//! Every item from the queue ends exactly once: only the queue creates an [`Item`], a verdict consumes it,
//! and dropping it is a verdict too. Code that ends an item which is not in work does not compile.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::hashed::Hashed;
use super::shared::{Shared, Verdict};

/// An item in work; no other worker receives it until a method such as [`Item::done`] ends the work.
///
/// Each of these methods is a verdict. If the item is dropped without a verdict, because its worker panicked
/// or was cancelled, it is added again after the limiter's delay, and counted in
/// [`dropped_items`](super::RateLimitingQueue::dropped_items).
///
/// If the item was added while it was in work, any verdict queues it again at once. After a shut-down nothing
/// is added, so a retry is then the same as [`Item::done`].
///
/// Each item has one verdict:
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
    /// Whether a method has ended the work on the item.
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

    /// Returns the key to process.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Returns how often the item was retried since it was last forgotten, according to the limiter.
    #[doc(alias = "NumRequeues")]
    pub fn requeues(&self) -> u32 {
        self.shared.requeues(&self.key)
    }

    /// Ends the work, and keeps the count of earlier failures, which determines the delay of the next retry.
    ///
    /// After a success use [`Item::forget`]: an item that is never forgotten stays in the limiter's memory.
    #[doc(alias = "Done")]
    pub fn done(self) {
        self.end(Verdict::Done);
    }

    /// Ends the work, and resets the count of failures.
    #[doc(alias = "Forget")]
    pub fn forget(self) {
        self.end(Verdict::Forget);
    }

    /// Reports a failure: the item is added again after the limiter's delay.
    #[doc(alias = "AddRateLimited")]
    pub fn retry(self) {
        self.end(Verdict::Retry);
    }

    /// Adds the item again after `delay`. The limiter is not called, and the count of failures stays.
    #[doc(alias = "AddAfter")]
    pub fn retry_after(self, delay: Duration) {
        self.end(Verdict::RetryAfter(delay));
    }

    /// Reports a permanent failure: ends the work, resets the count of failures, and counts the item in
    /// [`given_up_items`](super::RateLimitingQueue::given_up_items).
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
