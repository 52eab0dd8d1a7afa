//! Reports the events of one informer to the program's metrics collector.
//!
//! Without a collector, a meter does nothing and measures nothing.

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

/// Reports the events of one informer. The collector's [`InformerMetrics`] are dropped with the last clone.
#[derive(Clone, Default)]
pub(crate) struct Meter(Option<Arc<Inner>>);

struct Inner {
    series: Box<dyn InformerMetrics>,
    queued: Arc<AtomicUsize>,
    /// Owns the values that the [`InformerSampler`] reads through a weak reference.
    _sampled: Arc<dyn Sampled>,
}

impl Meter {
    /// Registers an informer with a collector, and creates the meter.
    ///
    /// `sampled` returns the source of the informer's current values. The argument of `sampled` is the
    /// counter in which [`Meter::queued`] stores the length of the queue.
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

    /// Returns whether the informer has a collector.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the current time, or `None` if there is no collector.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.0.is_some().then(Instant::now)
    }

    /// Reports the event that `observed` returns, if there is a collector.
    pub(crate) fn observe(&self, observed: impl FnOnce() -> Observed) {
        let Some(inner) = &self.0 else { return };
        guarded(|| inner.series.observe(observed()));
    }

    /// Reports the numbers of changes passed to handlers, unless all are zero.
    pub(crate) fn told(&self, told: impl FnOnce() -> Told) {
        if self.0.is_none() {
            return;
        }
        let told = told();
        if told != Told::default() {
            self.observe(|| Observed::Told(told));
        }
    }

    /// Records the length of the informer's queue after a push or pop.
    pub(crate) fn queued(&self, changes: usize) {
        if let Some(inner) = &self.0 {
            inner.queued.store(changes, Ordering::Relaxed);
        }
    }

    /// Starts to measure a batch, if there is a collector.
    ///
    /// `batch` returns the number of changes, and the receipt time of the oldest watch event, if any.
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

    /// Reports an applied batch, if there is a `timer`.
    ///
    /// The caller must have added the events to the handlers' buffers, because the reported time includes
    /// this step.
    pub(crate) fn batch_ended(&self, timer: Option<BatchTimer>) {
        let Some(timer) = timer else { return };
        self.observe(|| Observed::Batch {
            changes: timer.changes,
            took: timer.began.elapsed(),
            lag: timer.lag,
        });
    }
}

/// Calls a metrics collector, and catches its panics.
pub(crate) fn guarded(observe: impl FnOnce()) {
    if confined(observe).is_err() {
        tracing::error!("a collector of metrics panicked");
    }
}

/// Measures the time to apply one batch of changes, and the lag.
///
/// The lag is the time from the receipt of the oldest watch event until readers see the batch.
pub(crate) struct BatchTimer {
    began: Instant,
    changes: usize,
    received: Option<Instant>,
    lag: Option<Duration>,
}

impl BatchTimer {
    /// Records the lag when the batch becomes visible to readers.
    pub(crate) fn visible(&mut self) {
        self.lag = self.received.map(|received| received.elapsed());
    }
}
