//! Exports the library's metrics to a `prometheus_client` registry, or as text.
//!
//! Guarantees: a metric that client-go also has uses client-go's name. Times are in seconds, and sizes in
//! bytes. After an informer has ended, a scrape no longer contains the informer's series.

mod encode;
mod series;

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use self::series::{InformerSeries, WorkQueueSeries};
use super::{
    InformerIdentity, InformerMetrics, InformerSampler, Metrics, Observed, WorkQueueMetrics,
    WorkQueueObserved, WorkQueueSampler,
};

/// A metrics collector that exports to a `prometheus_client` registry.
///
/// # Labels
///
/// The series of an informer have the labels `name`, `group`, `version` and `resource`, as in client-go, and
/// `namespace`, which is empty for all namespaces. The series of a work queue have the label `name`.
///
/// # Shared series
///
/// Informers with equal labels share their series. Handlers with equal names, and work queues with equal
/// names, share their series too. The value of a shared series depends on the metric:
///
/// - The series contains the greatest value if the metric is a time since an event or bookmark, the lag of a
///   handler, or the longest processing time.
/// - `informer_synced` is 1 if all informers that share the series have synced.
/// - `informer_store_resource_version` is the revision of one of the informers.
/// - All other gauges and counters are sums. Histograms contain all observations.
///
/// The totals of index errors, handler panics, queue adds and queue retries are sums over the running
/// informers or queues. If several informers or queues share such a series, the total decreases when one of
/// them ends. Prometheus interprets the decrease as a counter reset. Different names avoid this problem.
///
/// # List of the series
///
/// | series | type | further labels |
/// | --- | --- | --- |
/// | `informer_queued_items` | gauge | |
/// | `informer_processing_latency_seconds` | histogram | |
/// | `informer_batch_changes` | histogram | |
/// | `informer_store_resource_version` | gauge | |
/// | `informer_store_items`, `informer_store_bytes` | gauge | |
/// | `informer_store_memory_bytes` (see [`Memory`](super::Memory)) | gauge | |
/// | `informer_index_values`, `informer_index_entries` | gauge | `index` |
/// | `informer_synced`, `informer_broken_objects` | gauge | |
/// | `informer_index_errors_total` | counter | |
/// | `informer_events_total` (delivered to handlers) | counter | `type` |
/// | `informer_skipped_total` | counter | `reason` |
/// | `informer_handler_pending`, `informer_handler_lag_seconds` | gauge | `handler` |
/// | `informer_handler_panics_total` | counter | `handler` |
/// | `reflector_lists_total`, `reflector_list_duration_seconds`, `reflector_items_per_list` | counter, histograms | |
/// | `reflector_watches_total`, `reflector_short_watches_total` | counters | |
/// | `reflector_watch_duration_seconds`, `reflector_items_per_watch` | histograms | |
/// | `reflector_watch_events_total` (received) | counter | `type` |
/// | `reflector_relists_total` | counter | `reason` |
/// | `reflector_errors_total` | counter | `class` |
/// | `reflector_consistency_checks_total` | counter | `result` |
/// | `reflector_watch_lag_seconds` | histogram | |
/// | `reflector_last_event_seconds`, `reflector_last_bookmark_seconds` (ago) | gauge | |
/// | `workqueue_depth`, `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds` | gauge | |
/// | `workqueue_adds_total`, `workqueue_retries_total` | counter | |
/// | `workqueue_queue_duration_seconds`, `workqueue_work_duration_seconds` | histogram | |
///
/// [`Observed`] and [`InformerSample`](super::InformerSample) document the values.
///
/// `informer_store_resource_version` contains only the last 15 digits of the revision, because a float does
/// not represent every longer number exactly.
///
/// An informer of several namespaces has one reflector per namespace. Its `informer_store_resource_version`
/// then contains the revision of the first reflector. Its `reflector_last_event_seconds` and
/// `reflector_last_bookmark_seconds` contain the greatest value of all its reflectors.
///
/// ```
/// # use std::sync::Arc;
/// use kube_informer::{
///     metrics::Prometheus,
///     workqueue::{RateLimitingQueue, rate_limiter},
/// };
/// use prometheus_client::{encoding::text, registry::Registry};
///
/// let metrics = Arc::new(Prometheus::new());
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(Arc::clone(&metrics)));
///
/// let limiter = rate_limiter::controller_default();
/// let queue = RateLimitingQueue::<String>::builder(limiter).metrics("pods", metrics).build();
/// queue.add("default/web".to_owned());
///
/// let mut page = String::new();
/// text::encode(&mut page, &registry)?;
/// assert!(page.contains("workqueue_depth{name=\"pods\"} 1\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Default)]
pub struct Prometheus {
    informers: SharedSeries<InformerIdentity, InformerSeries>,
    work_queues: SharedSeries<Arc<str>, WorkQueueSeries>,
}

/// Series by labels, each with the number of informers or queues that share it.
type SharedSeries<L, S> = Arc<Mutex<BTreeMap<L, (usize, Arc<S>)>>>;

impl Prometheus {
    /// Creates a collector without series.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all series as `OpenMetrics` text, for a program without a `prometheus_client` registry.
    ///
    /// Serve the text with the content type `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    #[expect(
        clippy::missing_panics_doc,
        reason = "writing into a string does not fail"
    )]
    pub fn text(self: &Arc<Self>) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        registry.register_collector(Box::new(Arc::clone(self)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("writing into a string does not fail");
        text
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus")
            .field("informers", &self.informers.lock().len())
            .field("work_queues", &self.work_queues.lock().len())
            .finish()
    }
}

impl Metrics for Prometheus {
    fn informer(
        &self,
        identity: &InformerIdentity,
        sampler: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        let member = Member::join(&self.informers, identity.clone());
        member
            .series
            .samplers
            .add(sampler, InformerSampler::is_gone);
        Some(Box::new(member))
    }

    fn work_queue(
        &self,
        name: &Arc<str>,
        sampler: WorkQueueSampler,
    ) -> Option<Box<dyn WorkQueueMetrics>> {
        let member = Member::join(&self.work_queues, Arc::clone(name));
        member
            .series
            .samplers
            .add(sampler, WorkQueueSampler::is_gone);
        Some(Box::new(member))
    }
}

impl Collector for Prometheus {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode::everything(encoder, copy(&self.informers), copy(&self.work_queues))
    }
}

/// Returns a copy of the entries, so that the map is not locked while a scrape encodes them.
fn copy<L: Clone, S>(all_series: &SharedSeries<L, S>) -> Vec<(L, Arc<S>)> {
    let all_series = all_series.lock();
    let series = all_series.iter();
    series
        .map(|(labels, (_, series))| (labels.clone(), Arc::clone(series)))
        .collect()
}

/// A handle to the metric series of one informer or work queue.
///
/// Informers or queues with the same labels share their series. Dropping the last handle removes the series.
struct Member<L: Ord, S> {
    labels: L,
    series: Arc<S>,
    all_series: SharedSeries<L, S>,
}

impl<L: Ord + Clone, S: Default> Member<L, S> {
    fn join(all_series: &SharedSeries<L, S>, labels: L) -> Self {
        let mut all = all_series.lock();
        let (members, series) = all.entry(labels.clone()).or_default();
        *members += 1;
        Self {
            labels,
            series: Arc::clone(series),
            all_series: Arc::clone(all_series),
        }
    }
}

impl<L: Ord, S> Drop for Member<L, S> {
    fn drop(&mut self) {
        let mut all_series = self.all_series.lock();
        if let Some((members, _)) = all_series.get_mut(&self.labels) {
            *members -= 1;
            if *members == 0 {
                all_series.remove(&self.labels);
            }
        }
    }
}

impl InformerMetrics for Member<InformerIdentity, InformerSeries> {
    fn observe(&self, observed: Observed) {
        self.series.observe(&observed);
    }
}

impl WorkQueueMetrics for Member<Arc<str>, WorkQueueSeries> {
    fn observe(&self, observed: WorkQueueObserved) {
        self.series.observe(observed);
    }
}
