//! [`RateLimiter`]: the delay before a failed item is retried.
//!
//! Each limiter is a plain struct: the caller passes the time, and the limiter never waits. All arithmetic is
//! on integers and saturates, so the same calls return the same delays, and no number of failures overflows.
//!
//! The numbers of [`controller_default`] and [`item_based_default`] are those of client-go's
//! [`default_rate_limiters.go`](https://github.com/kubernetes/client-go/blob/master/util/workqueue/default_rate_limiters.go).

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use derive_where::derive_where;

use super::lookup::Lookup;

/// Determines the delay before an item is added again.
///
/// The queue calls a limiter under the queue's lock: an implementation must be fast, must not block, and must
/// not call its queue, which would deadlock.
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send {
    /// Counts a failure of `item`, and returns the delay before the item is added again.
    ///
    /// `now` is the time since an origin that stays the same for the life of the queue. It never decreases.
    #[doc(alias = "When")]
    fn when(&mut self, item: &T, now: Duration) -> Duration;

    /// Resets the count of failures of `item`, because it succeeded or was given up.
    #[doc(alias = "Forget")]
    fn forget(&mut self, item: &T);

    /// Returns the number of failures of `item` since it was last forgotten; 0 if failures are not counted.
    #[doc(alias = "NumRequeues")]
    fn requeues(&self, item: &T) -> u32;
}

/// Returns client-go's default limiter for controllers: the maximum of two delays.
///
/// The first is an exponential delay per item (5 ms to 1000 s), which limits the retries of an item that
/// always fails. The second is a token bucket for all items (10 per second, burst 100), which limits the load
/// on the server when all items fail.
#[doc(alias = "DefaultControllerRateLimiter")]
#[doc(alias = "DefaultTypedControllerRateLimiter")]
pub fn controller_default<T: Clone + Eq + Hash + Send + 'static>() -> MaxOf<T> {
    MaxOf::new()
        .with(ItemExponentialFailure::new(
            Duration::from_millis(5),
            Duration::from_secs(1000),
        ))
        .with(Bucket::every(Duration::from_millis(100), 100))
}

/// Returns a limiter with an exponential delay per item (1 ms to 1000 s), without a limit for all items
/// together.
#[doc(alias = "DefaultItemBasedRateLimiter")]
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub fn item_based_default<T: Clone + Eq + Hash + Send + 'static>() -> ItemExponentialFailure<T> {
    ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1000))
}

/// Limiter that doubles an item's delay with each failure: `base`·2ⁿ after n earlier failures, at most `max`.
///
/// An item stays in memory until it is forgotten.
#[doc(alias = "ItemExponentialFailureRateLimiter")]
#[doc(alias = "TypedItemExponentialFailureRateLimiter")]
#[derive_where(Debug)]
pub struct ItemExponentialFailure<T> {
    base: Duration,
    max: Duration,
    #[derive_where(skip)]
    failures: Lookup<T, u32>,
}

/// Limiter with a short delay for the first failures of an item, and a long delay for all later failures.
///
/// An item stays in memory until it is forgotten.
#[doc(alias = "ItemFastSlowRateLimiter")]
#[doc(alias = "TypedItemFastSlowRateLimiter")]
#[derive_where(Debug)]
pub struct ItemFastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    #[derive_where(skip)]
    failures: Lookup<T, u32>,
}

/// Limiter with one token bucket for all items: each retry waits for a token and takes it.
///
/// The bucket counts no failures, so `forget` has no effect.
#[doc(alias = "BucketRateLimiter")]
#[doc(alias = "TypedBucketRateLimiter")]
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Time in which one token is added.
    interval: Duration,
    /// Time in which an empty bucket fills.
    filling: Duration,
    /// Time at which the bucket is full, if no token is taken.
    full_at: Duration,
}

/// Limiter that combines several limiters: each counts every failure, and the longest delay applies.
#[doc(alias = "MaxOfRateLimiter")]
#[doc(alias = "TypedMaxOfRateLimiter")]
#[derive_where(Default)]
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

/// Limiter that wraps another limiter and reduces its delay to at most `max`.
#[doc(alias = "WithMaxWaitRateLimiter")]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
#[derive(Clone, Debug)]
pub struct WithMaxWait<L> {
    inner: L,
    max: Duration,
}

// === impl ItemExponentialFailure ===

impl<T> ItemExponentialFailure<T> {
    /// Creates a limiter with first delay `base` and maximum delay `max`.
    #[doc(alias = "NewItemExponentialFailureRateLimiter")]
    #[doc(alias = "NewTypedItemExponentialFailureRateLimiter")]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            failures: Lookup::default(),
        }
    }
}

impl<T: Clone + Eq + Hash + Send> RateLimiter<T> for ItemExponentialFailure<T> {
    fn when(&mut self, item: &T, _now: Duration) -> Duration {
        let earlier = count_failure(&mut self.failures, item);
        if self.base.is_zero() {
            return Duration::ZERO;
        }
        1u128
            .checked_shl(earlier)
            .and_then(|factor| self.base.as_nanos().checked_mul(factor))
            .and_then(|nanos| u64::try_from(nanos).ok())
            .map_or(self.max, |nanos| Duration::from_nanos(nanos).min(self.max))
    }

    fn forget(&mut self, item: &T) {
        self.failures.remove(item);
    }

    fn requeues(&self, item: &T) -> u32 {
        self.failures.get(item).copied().unwrap_or(0)
    }
}

// === impl ItemFastSlow ===

impl<T> ItemFastSlow<T> {
    /// Creates a limiter that returns `fast` for the first `fast_attempts` failures of an item, then `slow`.
    #[doc(alias = "NewItemFastSlowRateLimiter")]
    #[doc(alias = "NewTypedItemFastSlowRateLimiter")]
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self {
            fast,
            slow,
            fast_attempts,
            failures: Lookup::default(),
        }
    }
}

impl<T: Clone + Eq + Hash + Send> RateLimiter<T> for ItemFastSlow<T> {
    fn when(&mut self, item: &T, _now: Duration) -> Duration {
        if count_failure(&mut self.failures, item) < self.fast_attempts {
            self.fast
        } else {
            self.slow
        }
    }

    fn forget(&mut self, item: &T) {
        self.failures.remove(item);
    }

    fn requeues(&self, item: &T) -> u32 {
        self.failures.get(item).copied().unwrap_or(0)
    }
}

// === impl Bucket ===

impl Bucket {
    /// Creates a full bucket of `burst` tokens, to which one token is added every `interval`.
    ///
    /// For ten retries per second, use an interval of 100 ms. An interval of zero disables the limit. With a
    /// burst of zero, tokens do not accumulate, and there is still one token per interval.
    #[doc(alias = "rate.Every")]
    #[doc(alias = "rate.NewLimiter")]
    pub fn every(interval: Duration, burst: u32) -> Self {
        Self {
            interval,
            filling: interval.saturating_mul(burst),
            full_at: Duration::ZERO,
        }
    }
}

impl<T> RateLimiter<T> for Bucket {
    fn when(&mut self, _item: &T, now: Duration) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        self.full_at
            .saturating_sub(now)
            .saturating_sub(self.filling)
    }

    fn forget(&mut self, _item: &T) {}

    fn requeues(&self, _item: &T) -> u32 {
        0
    }
}

// === impl MaxOf ===

impl<T> MaxOf<T> {
    /// Creates an empty set of limiters, which returns no delay.
    #[doc(alias = "NewMaxOfRateLimiter")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a limiter to this set.
    #[must_use = "the limiter is part of the returned value only"]
    pub fn with(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<T> RateLimiter<T> for MaxOf<T> {
    fn when(&mut self, item: &T, now: Duration) -> Duration {
        self.limiters
            .iter_mut()
            .map(|limiter| limiter.when(item, now))
            .max()
            .unwrap_or_default()
    }

    fn forget(&mut self, item: &T) {
        for limiter in &mut self.limiters {
            limiter.forget(item);
        }
    }

    fn requeues(&self, item: &T) -> u32 {
        self.limiters
            .iter()
            .map(|limiter| limiter.requeues(item))
            .max()
            .unwrap_or_default()
    }
}

impl<T> fmt::Debug for MaxOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf")
            .field("limiters", &self.limiters.len())
            .finish()
    }
}

// === impl WithMaxWait ===

impl<L> WithMaxWait<L> {
    /// Wraps `inner`, and reduces delays above `max` to `max`.
    #[doc(alias = "NewWithMaxWaitRateLimiter")]
    #[doc(alias = "NewTypedWithMaxWaitRateLimiter")]
    pub fn new(inner: L, max: Duration) -> Self {
        Self { inner, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn when(&mut self, item: &T, now: Duration) -> Duration {
        self.inner.when(item, now).min(self.max)
    }

    fn forget(&mut self, item: &T) {
        self.inner.forget(item);
    }

    fn requeues(&self, item: &T) -> u32 {
        self.inner.requeues(item)
    }
}

/// Counts a failure of `item`, and returns the number of its earlier failures.
fn count_failure<T: Clone + Eq + Hash>(failures: &mut Lookup<T, u32>, item: &T) -> u32 {
    if let Some(count) = failures.get_mut(item) {
        let earlier = *count;
        *count = count.saturating_add(1);
        earlier
    } else {
        failures.insert(item.clone(), 1);
        0
    }
}

#[cfg(test)]
mod tests;
