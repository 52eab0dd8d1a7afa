//! [`Builder`] sets the options of a work queue before the queue is created.

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

/// Configures a [`RateLimitingQueue`]: its rate limiter, the order of its items, and its metrics.
#[doc(alias = "TypedRateLimitingQueueConfig")]
#[doc(alias = "TypedQueueConfig")]
#[derive_where(Debug)]
#[derive_where(skip_inner)]
pub struct Builder<T> {
    limiter: Box<dyn RateLimiter<T>>,
    /// Order in which workers receive items; `None` means first in, first out.
    order: Option<Box<dyn Order<T>>>,
    metrics: Option<(Arc<str>, Arc<dyn Metrics>)>,
}

impl<T: Clone + Eq + Hash + Send + 'static> RateLimitingQueue<T> {
    /// Creates an empty queue in first-in, first-out order. `limiter` determines the delay before a failed
    /// item is retried.
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

    /// Returns a builder for a queue. The builder can also set the order of the items and the metrics.
    /// `limiter` determines the delay before a failed item is retried.
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
    /// Sets the order in which workers receive items. The default is first in, first out.
    #[must_use = "the order is part of the returned builder only"]
    pub fn order(mut self, order: impl Order<T> + 'static) -> Self {
        self.order = Some(Box::new(order));
        self
    }

    /// Reports metrics of the queue to the collector `metrics`, under the queue name `name`. By default, the
    /// queue reports no metrics.
    #[must_use = "the collector is part of the returned builder only"]
    #[doc(alias = "MetricsProvider")]
    pub fn metrics(mut self, name: impl Into<Arc<str>>, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some((name.into(), metrics));
        self
    }

    /// Creates an empty queue with the options of this builder.
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
