//! [`RateLimiter`] determines the delay before a failed item is retried.
//!
//! Each limiter is a plain struct that never waits and reads no clock: the caller passes the time. No number
//! of failures causes an overflow.
//!
//! [`controller_default`] and [`item_based_default`] use the delays and limits of client-go's
//! [`default_rate_limiters.go`](https://github.com/kubernetes/client-go/blob/master/util/workqueue/default_rate_limiters.go).

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use derive_where::derive_where;

use super::lookup::Lookup;

/// Determines the delay before the queue adds a failed item again.
///
/// The queue calls a limiter while the queue's lock is held. An implementation must be fast, must not block,
/// and must not call its queue, which would cause a deadlock.
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send {
    /// Counts a failure of `item`, and returns the delay before the item is added again.
    ///
    /// `now` is the time since a fixed origin, and never decreases between calls.
    #[doc(alias = "When")]
    fn when(&mut self, item: &T, now: Duration) -> Duration;

    /// Resets the count of failures of `item`. The queue calls this method after the item has succeeded or
    /// was given up.
    #[doc(alias = "Forget")]
    fn forget(&mut self, item: &T);

    /// Returns the number of failures of `item` since it was last forgotten. Returns 0 if the limiter does
    /// not count the failures of each item.
    #[doc(alias = "NumRequeues")]
    fn requeues(&self, item: &T) -> u32;
}

/// Returns client-go's default limiter for controllers. Its delay is the longer of two delays:
/// - a delay for each item, which grows exponentially from 5 ms to 1000 s;
/// - the delay of one token bucket for all items, with 10 tokens per second and a burst of 100.
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

/// Returns a limiter whose delay grows exponentially for each item, from 1 ms to 1000 s. The limiter does not
/// limit the rate of all items together.
#[doc(alias = "DefaultItemBasedRateLimiter")]
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub fn item_based_default<T: Clone + Eq + Hash + Send + 'static>() -> ItemExponentialFailure<T> {
    ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1000))
}

/// Limiter whose delay doubles with each failure of an item. After n earlier failures, the delay is
/// `base`·2ⁿ, but at most `max`.
///
/// The limiter keeps an item in memory until the item is forgotten.
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
/// The limiter keeps an item in memory until the item is forgotten.
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

/// Limiter with one token bucket for all items. Each failure reserves the next token, and the delay of the
/// retry is the time until that token is in the bucket.
///
/// The bucket does not count the failures of an item, so `forget` has no effect.
#[doc(alias = "BucketRateLimiter")]
#[doc(alias = "TypedBucketRateLimiter")]
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Time between two additions of a token to the bucket.
    interval: Duration,
    /// Time that an empty bucket takes to become full.
    filling: Duration,
    /// Time at which the bucket will be full if no more tokens are reserved.
    ///
    /// The time has the same origin as `now` of [`RateLimiter::when`].
    full_at: Duration,
}

/// Limiter that combines several limiters. Each of the combined limiters counts every failure, and the
/// longest delay applies.
#[doc(alias = "MaxOfRateLimiter")]
#[doc(alias = "TypedMaxOfRateLimiter")]
#[derive_where(Default)]
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

/// Limiter that wraps another limiter, and shortens the delays of the wrapped limiter to at most `max`.
#[doc(alias = "WithMaxWaitRateLimiter")]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
#[derive(Clone, Debug)]
pub struct WithMaxWait<L> {
    inner: L,
    max: Duration,
}

// === impl ItemExponentialFailure ===

impl<T> ItemExponentialFailure<T> {
    /// Creates a limiter whose delay is `base` after the first failure of an item, doubles with each further
    /// failure, and is at most `max`.
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
    /// Creates a limiter that returns the delay `fast` for the first `fast_attempts` failures of an item, and
    /// the delay `slow` for later failures.
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
    /// Creates a full bucket with `burst` tokens, to which one token is added every `interval`.
    ///
    /// For ten retries per second, use an interval of 100 ms. An interval of zero disables the limit. With a
    /// burst of zero, every retry waits for a new token.
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
    /// Creates a combination without limiters, whose delay is zero. Add limiters with [`MaxOf::with`].
    #[doc(alias = "NewMaxOfRateLimiter")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `limiter` to the combined limiters.
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
    /// Creates a limiter that returns the delays of `inner`, but at most `max`.
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

/// Increments the number of failures of `item`, and returns the previous number.
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
