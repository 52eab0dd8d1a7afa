//! The hook that every stage of an informer has: tells what it is given to whoever collects, if
//! anybody does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{InformerIdentity, InformerMetrics, InformerSampler, Metrics, Observed, Sampled, Told};
use crate::panics::confined;

/// Shared by the tasks of one informer; when the last of them has ended, its series are dropped.
#[derive(Clone, Default)]
pub(crate) struct Meter(Option<Arc<Inner>>);

struct Inner {
    series: Box<dyn InformerMetrics>,
    queued: Arc<AtomicUsize>,
    /// Held so that the sampler has something to look at for exactly as long.
    _sampled: Arc<dyn Sampled>,
}

impl Meter {
    /// Asks a collector whether it wants an informer's figures. `sampled` is given the length of the
    /// queue, which [`Meter::queued`] keeps.
    pub(crate) fn new(
        metrics: Option<&Arc<dyn Metrics>>,
        identity: &InformerIdentity,
        sampled: impl FnOnce(Arc<AtomicUsize>) -> Arc<dyn Sampled>,
    ) -> Self {
        Self(metrics.and_then(|metrics| {
            let queued = Arc::<AtomicUsize>::default();
            let sampled = sampled(Arc::clone(&queued));
            let series = metrics.informer(identity, InformerSampler::new(&sampled))?;
            Some(Arc::new(Inner {
                series,
                queued,
                _sampled: sampled,
            }))
        }))
    }

    /// Whether a collector wants the figures.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Now, if anybody wants to know how long something takes.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.0.is_some().then(Instant::now)
    }

    /// Tells something, which is not even looked at if nobody listens.
    pub(crate) fn observe(&self, observed: impl FnOnce() -> Observed) {
        let Some(inner) = &self.0 else { return };
        guarded(|| inner.series.observe(observed()));
    }

    /// Tells of a change that handlers are to hear of, if there is anything to it.
    pub(crate) fn told(&self, told: impl FnOnce() -> Told) {
        if self.0.is_none() {
            return;
        }
        let told = told();
        if told != Told::default() {
            self.observe(|| Observed::Told(told));
        }
    }

    /// The one place that knows how long the queue is: called after every push and every pop.
    pub(crate) fn queued(&self, changes: usize) {
        if let Some(inner) = &self.0 {
            inner.queued.store(changes, Ordering::Relaxed);
        }
    }

    /// Begins to measure a batch, if anybody wants to know: how many changes, and when the oldest of
    /// them was received.
    pub(crate) fn batch(
        &self,
        batch: impl FnOnce() -> (usize, Option<Instant>),
    ) -> Option<BatchTimer> {
        let began = self.now()?;
        let (changes, received) = batch();
        Some(BatchTimer {
            began,
            changes,
            received,
            lag: None,
        })
    }

    /// Tells of a batch that has been handed on.
    pub(crate) fn batch_ended(&self, timer: Option<BatchTimer>) {
        let Some(timer) = timer else { return };
        self.observe(|| Observed::Batch {
            changes: timer.changes,
            took: timer.began.elapsed(),
            lag: timer.lag,
        });
    }
}

/// Calls a collector, whose panic must not take an informer or a worker with it.
pub(crate) fn guarded(observe: impl FnOnce()) {
    if confined(observe).is_err() {
        tracing::error!("a collector of metrics panicked");
    }
}

/// Measures one batch.
pub(crate) struct BatchTimer {
    began: Instant,
    changes: usize,
    received: Option<Instant>,
    lag: Option<Duration>,
}

impl BatchTimer {
    /// Readers can see the batch now.
    pub(crate) fn visible(&mut self) {
        self.lag = self.received.map(|received| received.elapsed());
    }
}
