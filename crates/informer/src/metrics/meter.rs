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

/// Reports the events of one informer to the program's metrics collector. The field is `None` if there is no
/// collector.
///
/// The informer's tasks share clones of the meter. The collector's [`InformerMetrics`] are dropped with the
/// last clone.
#[derive(Clone, Default)]
pub(crate) struct Meter(Option<Arc<Inner>>);

struct Inner {
    series: Box<dyn InformerMetrics>,
    queued: Arc<AtomicUsize>,
    /// Provides the values that the collector reads through its [`InformerSampler`]. The sampler has only a
    /// weak reference, so the meter owns this value until the informer ends.
    _sampled: Arc<dyn Sampled>,
}

impl Meter {
    /// Registers an informer with a collector, and creates the meter.
    ///
    /// `sampled` receives a counter of the changes in the informer's queue, which [`Meter::queued`] updates.
    /// Its result provides the values that the collector reads through its [`InformerSampler`].
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

    /// Calls `observed`, and reports the returned event to the collector. Without a collector, `observed` is
    /// not called.
    pub(crate) fn observe(&self, observed: impl FnOnce() -> Observed) {
        let Some(inner) = &self.0 else { return };
        guarded(|| inner.series.observe(observed()));
    }

    /// Reports the numbers of changes that were passed to handlers. Nothing is reported if all numbers are
    /// zero.
    pub(crate) fn told(&self, told: impl FnOnce() -> Told) {
        if self.0.is_none() {
            return;
        }
        let told = told();
        if told != Told::default() {
            self.observe(|| Observed::Told(told));
        }
    }

    /// Sets the number of changes in the informer's queue. The caller must call this method after every push
    /// and pop.
    pub(crate) fn queued(&self, changes: usize) {
        if let Some(inner) = &self.0 {
            inner.queued.store(changes, Ordering::Relaxed);
        }
    }

    /// Starts to measure a batch. Returns `None` without a collector.
    ///
    /// `batch` returns the number of changes in the batch, and the time at which the oldest watch event of
    /// the batch was received. The time is `None` if the batch contains no watch event.
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

    /// Reports a batch to the collector. Must be called after the batch was passed to the buffers of the
    /// handlers.
    pub(crate) fn batch_ended(&self, timer: Option<BatchTimer>) {
        let Some(timer) = timer else { return };
        self.observe(|| Observed::Batch {
            changes: timer.changes,
            took: timer.began.elapsed(),
            lag: timer.lag,
        });
    }
}

/// Runs a call of a metrics collector, and catches a panic of the collector. The calling informer or worker
/// then continues.
pub(crate) fn guarded(observe: impl FnOnce()) {
    if confined(observe).is_err() {
        tracing::error!("a collector of metrics panicked");
    }
}

/// Measures one batch of changes: the time to apply the batch, and the lag.
///
/// The lag is the time from the receipt of the oldest watch event in the batch until readers can see the
/// batch.
pub(crate) struct BatchTimer {
    began: Instant,
    changes: usize,
    received: Option<Instant>,
    lag: Option<Duration>,
}

impl BatchTimer {
    /// Records the lag of the batch. Must be called when the batch becomes visible to readers.
    pub(crate) fn visible(&mut self) {
        self.lag = self.received.map(|received| received.elapsed());
    }
}
