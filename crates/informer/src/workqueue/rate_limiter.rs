//! How long a failed item waits until it is tried again.
//!
//! Each limiter is a plain struct: it is told the time, keeps no clock and never waits.
//! All arithmetic is on integers and saturates, so the same calls give the same delays, and no
//! number of failures overflows.
//!
//! The numbers of [`controller_default`] and [`item_based_default`] are those of client-go's
//! [`default_rate_limiters.go`](https://github.com/kubernetes/client-go/blob/master/util/workqueue/default_rate_limiters.go).

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use derive_where::derive_where;

use super::lookup::Lookup;

/// Decides how long an item waits until it is added again.
///
/// The queue calls it under its lock: an implementation must be quick, must not block, and must not
/// call the queue it belongs to, which would wait for itself for ever.
#[doc(alias = "TypedRateLimiter")]
pub trait RateLimiter<T>: Send {
    /// The delay for `item`, which has failed once more.
    ///
    /// `now` is the time since an origin that stays the same for the life of the queue; it never
    /// goes back.
    #[doc(alias = "When")]
    fn when(&mut self, item: &T, now: Duration) -> Duration;

    /// Forgets the failures of `item`, because it succeeded or was given up.
    #[doc(alias = "Forget")]
    fn forget(&mut self, item: &T);

    /// How often `item` has failed since it was last forgotten; 0 where failures aren't counted.
    #[doc(alias = "NumRequeues")]
    fn requeues(&self, item: &T) -> u32;
}

/// The larger of a per-item exponential delay (5 ms to 1000 s) and a bucket for all items together
/// (10 a second, 100 at once).
///
/// The first keeps an item that fails for ever from being tried for ever; the second keeps a
/// controller whose every item fails from flooding the server.
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

/// A per-item exponential delay from 1 ms to 1000 s, and no limit for all items together.
#[doc(alias = "DefaultItemBasedRateLimiter")]
#[doc(alias = "DefaultTypedItemBasedRateLimiter")]
pub fn item_based_default<T: Clone + Eq + Hash + Send + 'static>() -> ItemExponentialFailure<T> {
    ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1000))
}

/// Doubles an item's delay with each failure: `base`·2ⁿ after n earlier ones, at most `max`.
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

/// A short delay for the first failures of an item, a long one for all others.
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

/// A token bucket that all items share: each retry takes a token, and waits until there is one.
///
/// It counts no failures and has nothing to forget.
#[doc(alias = "BucketRateLimiter")]
#[doc(alias = "TypedBucketRateLimiter")]
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The time in which one token is added.
    interval: Duration,
    /// How long an empty bucket takes to fill.
    filling: Duration,
    /// When the bucket is full again, if nothing more is taken.
    full_at: Duration,
}

/// The largest delay of several limiters, each of which is asked every time.
#[doc(alias = "MaxOfRateLimiter")]
#[doc(alias = "TypedMaxOfRateLimiter")]
#[derive_where(Default)]
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

/// Another limiter's delay, but at most `max`.
#[doc(alias = "WithMaxWaitRateLimiter")]
#[doc(alias = "TypedWithMaxWaitRateLimiter")]
#[derive(Clone, Debug)]
pub struct WithMaxWait<L> {
    inner: L,
    max: Duration,
}

// === impl ItemExponentialFailure ===

impl<T> ItemExponentialFailure<T> {
    /// A limiter whose first delay is `base`, and whose longest is `max`.
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
    /// A limiter that answers `fast` to the first `fast_attempts` failures of an item, then `slow`.
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
    /// A full bucket of `burst` tokens, to which one is added in every `interval`.
    ///
    /// Ten a second is an interval of 100 ms.
    /// An interval of zero limits nothing; with a burst of zero nothing is saved up, and there is a
    /// token in every interval all the same.
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
    /// No limiter yet, so no delay.
    #[doc(alias = "NewMaxOfRateLimiter")]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks `limiter` too.
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
    /// `inner`, with every delay above `max` cut to it.
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

/// Counts one more failure of `item`, and tells how many there were before.
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
