//! [`Meter`]: reports the events of an informer's stages to the collector, if there is one.

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

/// Reports the events of one informer to the collector, if there is one.
///
/// The informer's tasks share the meter. Its series are dropped when the last task has ended.
#[derive(Clone, Default)]
pub(crate) struct Meter(Option<Arc<Inner>>);

struct Inner {
    series: Box<dyn InformerMetrics>,
    queued: Arc<AtomicUsize>,
    /// Keeps the sampled state alive as long as the meter.
    _sampled: Arc<dyn Sampled>,
}

impl Meter {
    /// Registers an informer with a collector. `sampled` receives the length of the queue, which
    /// [`Meter::queued`] updates.
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

    /// Returns whether there is a collector.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the current time if there is a collector.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.0.is_some().then(Instant::now)
    }

    /// Reports an event. Without a collector, `observed` is not called.
    pub(crate) fn observe(&self, observed: impl FnOnce() -> Observed) {
        let Some(inner) = &self.0 else { return };
        guarded(|| inner.series.observe(observed()));
    }

    /// Reports the numbers of changes that were passed to handlers, unless all numbers are zero.
    pub(crate) fn told(&self, told: impl FnOnce() -> Told) {
        if self.0.is_none() {
            return;
        }
        let told = told();
        if told != Told::default() {
            self.observe(|| Observed::Told(told));
        }
    }

    /// Sets the number of changes in the queue; called after every push and every pop.
    pub(crate) fn queued(&self, changes: usize) {
        if let Some(inner) = &self.0 {
            inner.queued.store(changes, Ordering::Relaxed);
        }
    }

    /// Starts to measure a batch; returns `None` without a collector.
    ///
    /// `batch` returns the number of changes, and the time at which the oldest of them was received from the
    /// watch.
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

    /// Reports a batch that was passed to the handlers' buffers.
    pub(crate) fn batch_ended(&self, timer: Option<BatchTimer>) {
        let Some(timer) = timer else { return };
        self.observe(|| Observed::Batch {
            changes: timer.changes,
            took: timer.began.elapsed(),
            lag: timer.lag,
        });
    }
}

/// Calls a collector, and catches its panic, so that the informer or the worker continues.
pub(crate) fn guarded(observe: impl FnOnce()) {
    if confined(observe).is_err() {
        tracing::error!("a collector of metrics panicked");
    }
}

/// Measures the duration and the lag of one batch.
pub(crate) struct BatchTimer {
    began: Instant,
    changes: usize,
    received: Option<Instant>,
    lag: Option<Duration>,
}

impl BatchTimer {
    /// Records that the batch is visible to readers.
    pub(crate) fn visible(&mut self) {
        self.lag = self.received.map(|received| received.elapsed());
    }
}
