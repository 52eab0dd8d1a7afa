//! [`Builder`]: the options of a work queue, all of which are set before the queue is created.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use derive_where::derive_where;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::delaying_queue::DelayingQueue;
use super::order::Order;
use super::rate_limiter::RateLimiter;
use super::rate_limiting_queue::RateLimitingQueue;
use super::shared::{Shared, State};
use crate::metrics::{Metrics, WorkQueueSampler};

/// Builder of a [`RateLimitingQueue`]: sets the rate limiter, the order of items and the metrics.
#[doc(alias = "TypedRateLimitingQueueConfig")]
#[doc(alias = "TypedQueueConfig")]
#[derive_where(Debug)]
#[derive_where(skip_inner)]
pub struct Builder<T> {
    limiter: Box<dyn RateLimiter<T>>,
    /// Order of the items; first in, first out if `None`.
    order: Option<Box<dyn Order<T>>>,
    metrics: Option<(Arc<str>, Arc<dyn Metrics>)>,
}

impl<T: Clone + Eq + Hash + Send + 'static> RateLimitingQueue<T> {
    /// Creates an empty first-in, first-out queue; `limiter` determines the delay of failed items.
    #[doc(alias = "NewTypedRateLimitingQueue")]
    #[doc(alias = "NewRateLimitingQueue")]
    #[doc(alias = "NewNamedRateLimitingQueue")]
    #[doc(alias = "NewTyped")]
    #[doc(alias = "NewNamed")]
    #[doc(alias = "NewDelayingQueue")]
    #[doc(alias = "NewTypedDelayingQueue")]
    pub fn new(limiter: impl RateLimiter<T> + 'static) -> Self {
        Self::builder(limiter).build()
    }

    /// Returns a builder of a queue, for more options than [`RateLimitingQueue::new`].
    #[doc(alias = "NewTypedRateLimitingQueueWithConfig")]
    #[doc(alias = "NewTypedWithConfig")]
    #[doc(alias = "NewTypedDelayingQueueWithConfig")]
    pub fn builder(limiter: impl RateLimiter<T> + 'static) -> Builder<T> {
        Builder {
            limiter: Box::new(limiter),
            order: None,
            metrics: None,
        }
    }
}

impl<T: Clone + Eq + Hash + Send + 'static> Builder<T> {
    /// Sets the order in which items are processed, instead of first in, first out.
    #[must_use = "the order is part of the returned builder only"]
    pub fn order(mut self, order: impl Order<T> + 'static) -> Self {
        self.order = Some(Box::new(order));
        self
    }

    /// Reports metrics of this queue to a collector, under this name. Without this call nothing is measured.
    #[must_use = "the collector is part of the returned builder only"]
    #[doc(alias = "MetricsProvider")]
    pub fn metrics(mut self, name: impl Into<Arc<str>>, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some((name.into(), metrics));
        self
    }

    /// Builds the empty queue.
    pub fn build(self) -> RateLimitingQueue<T> {
        let shared = Arc::new_cyclic(|shared: &Weak<Shared<T>>| {
            let metrics = self.metrics.and_then(|(name, metrics)| {
                metrics.work_queue(&name, WorkQueueSampler::new(shared.clone()))
            });
            let mut delaying = DelayingQueue::new(self.order);
            if metrics.is_some() {
                delaying.queue().time();
            }
            Shared {
                state: Mutex::new(State {
                    delaying,
                    waiting: 0,
                    limiter: self.limiter,
                    dropped: 0,
                    given_up: 0,
                    retries: 0,
                }),
                ready: Notify::new(),
                drained: Notify::new(),
                origin: Instant::now(),
                metrics,
            }
        });
        RateLimitingQueue { shared }
    }
}
