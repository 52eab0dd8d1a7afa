//! Writes the series of all informers and work queues for one scrape, one metric family after the other.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{TypedMetric, counter::ConstCounter, gauge::ConstGauge, histogram::Histogram},
};

use super::{
    super::{InformerIdentity, InformerSample, InformerSampler, WorkQueueSample, WorkQueueSampler},
    series::{InformerSeries, Tally, WorkQueueSeries},
};
use crate::object::ResourceVersion;

/// Number of exported trailing digits of a resource version, as in client-go. An `f64` represents 15 digits
/// exactly.
const REVISION_DIGITS: usize = 15;

/// The type of a metric family, with the function that reads the metric's value from `T`.
enum Value<T> {
    Gauge(fn(&T) -> u64),
    /// A gauge in seconds, without a series if the function returns `None`.
    Seconds(fn(&T) -> Option<Duration>),
    Counter(fn(&T) -> u64),
    Histogram(fn(&T) -> &Histogram),
    /// A group of counters that differ in one additional label. The string is the label's name.
    Tally(&'static str, fn(&T) -> &Tally),
}

/// A metric family: its name, its help text, and its [`Value`].
type Row<T> = (&'static str, &'static str, Value<T>);

#[rustfmt::skip] // one row per family
const INFORMER: [Row<Informer>; 12] = [
    ("informer_queued_items", "Changes that wait for the store", Value::Gauge(|at| at.gauges.queued as u64)),
    ("informer_processing_latency_seconds", "Time to apply a batch of changes to the store and to hand it to the handlers' buffers", Value::Histogram(|at| &at.series.processing)),
    ("informer_batch_changes", "Changes in a batch; a list may count as one", Value::Histogram(|at| &at.series.batch_changes)),
    ("informer_store_resource_version", "Revision of the store, its last 15 digits", Value::Gauge(|at| at.gauges.revision)),
    ("informer_store_items", "Objects in the store, without broken objects", Value::Gauge(|at| at.gauges.items as u64)),
    ("informer_store_bytes", "Bytes that the server sent for the objects in the store", Value::Gauge(|at| at.gauges.bytes)),
    ("informer_store_memory_bytes", "Estimated memory of the objects in the store, with their dictionary", Value::Gauge(|at| at.gauges.memory)),
    ("informer_synced", "Whether the first list of every source is in the store", Value::Gauge(|at| u64::from(at.gauges.unsynced == 0))),
    ("informer_broken_objects", "Objects in the store that failed to decode", Value::Gauge(|at| at.gauges.broken as u64)),
    ("informer_index_errors", "Failed calls of index functions", Value::Counter(|at| at.gauges.index_errors)),
    ("informer_events", "Events delivered to handlers", Value::Tally("type", |at| &at.series.told)),
    ("informer_skipped", "Objects and events that could not be stored as received", Value::Tally("reason", |at| &at.series.skipped)),
];

#[rustfmt::skip] // one row per family
const REFLECTOR: [Row<Informer>; 14] = [
    ("reflector_lists", "Lists that completed or failed, each with all its pages", Value::Counter(|at| at.series.lists.get())),
    ("reflector_watches", "Watches that were opened", Value::Counter(|at| at.series.watches.get())),
    ("reflector_short_watches", "Watches that ended within a second without an event", Value::Counter(|at| at.series.short_watches.get())),
    ("reflector_list_duration_seconds", "Time from the first request of a list until the store has it", Value::Histogram(|at| &at.series.list_duration)),
    ("reflector_items_per_list", "Objects of a list", Value::Histogram(|at| &at.series.items_per_list)),
    ("reflector_watch_duration_seconds", "Time that a watch was open", Value::Histogram(|at| &at.series.watch_duration)),
    ("reflector_items_per_watch", "Events of a watch, bookmarks included", Value::Histogram(|at| &at.series.items_per_watch)),
    ("reflector_watch_lag_seconds", "Time from the receipt of an event until it is in the cache; of a batch, its oldest event", Value::Histogram(|at| &at.series.lag)),
    ("reflector_watch_events", "Events received from watches", Value::Tally("type", |at| &at.series.watch_events)),
    ("reflector_relists", "Lists after the first", Value::Tally("reason", |at| &at.series.relists)),
    ("reflector_errors", "Failed requests, broken responses, and changes that the store rejected", Value::Tally("class", |at| &at.series.errors)),
    ("reflector_consistency_checks", "Comparisons of the cache with the server", Value::Tally("result", |at| &at.series.checks)),
    ("reflector_last_event_seconds", "Time since the last event or list", Value::Seconds(|at| at.gauges.last_event)),
    ("reflector_last_bookmark_seconds", "Time since the last bookmark", Value::Seconds(|at| at.gauges.last_bookmark)),
];

#[rustfmt::skip] // one row per family
const WORK_QUEUE: [Row<WorkQueue>; 7] = [
    ("workqueue_depth", "Items that wait for a worker", Value::Gauge(|at| at.sample.depth as u64)),
    ("workqueue_adds", "Items that were accepted", Value::Counter(|at| at.sample.adds)),
    ("workqueue_retries", "Items that were added with a delay", Value::Counter(|at| at.sample.retries)),
    ("workqueue_unfinished_work_seconds", "Sum of the times since the items in work were taken", Value::Seconds(|at| Some(at.sample.unfinished))),
    ("workqueue_longest_running_processor_seconds", "Time since the longest-running item was taken", Value::Seconds(|at| Some(at.sample.longest_running))),
    ("workqueue_queue_duration_seconds", "Time that an item waited for a worker", Value::Histogram(|at| &at.series.queue_duration)),
    ("workqueue_work_duration_seconds", "Time that a worker processed an item", Value::Histogram(|at| &at.series.work_duration)),
];

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The informers of a scrape that have equal labels, with their combined gauges.
struct Informer {
    identity: InformerIdentity,
    series: Arc<InformerSeries>,
    gauges: Gauges,
}

/// Sampled values for one scrape, combined over all informers that have the same labels.
#[derive(Default)]
struct Gauges {
    queued: usize,
    items: usize,
    bytes: u64,
    memory: u64,
    revision: u64,
    unsynced: usize,
    broken: usize,
    index_errors: u64,
    /// By index name: the number of distinct index values, and the number of pairs of a value and an object.
    indices: BTreeMap<Arc<str>, (usize, usize)>,
    handlers: BTreeMap<Arc<str>, Handler>,
    last_event: Option<Duration>,
    last_bookmark: Option<Duration>,
}

/// Current values for one scrape, combined over all handlers that have the same name.
#[derive(Clone, Copy, Default)]
struct Handler {
    depth: usize,
    lag: Duration,
    panics: u64,
}

struct WorkQueue {
    name: Arc<str>,
    series: Arc<WorkQueueSeries>,
    sample: WorkQueueSample,
}

pub(super) fn everything(
    encoder: DescriptorEncoder<'_>,
    informers: Vec<(InformerIdentity, Arc<InformerSeries>)>,
    work_queues: Vec<(Arc<str>, Arc<WorkQueueSeries>)>,
) -> fmt::Result {
    let mut page = Page(encoder);
    let informers: Vec<_> = informers
        .into_iter()
        .map(|(identity, series)| Informer {
            gauges: Gauges::of(&series.samplers.sample(InformerSampler::sample)),
            identity,
            series,
        })
        .collect();
    if !informers.is_empty() {
        page.families(&informers, &INFORMER)?;
        page.indices_and_handlers(&informers)?;
        page.families(&informers, &REFLECTOR)?;
    }
    let work_queues: Vec<_> = work_queues
        .into_iter()
        .map(|(name, series)| WorkQueue {
            sample: sum(&series.samplers.sample(WorkQueueSampler::sample)),
            name,
            series,
        })
        .collect();
    if !work_queues.is_empty() {
        page.families(&work_queues, &WORK_QUEUE)?;
    }
    Ok(())
}

impl Gauges {
    fn of(samples: &[InformerSample]) -> Self {
        let mut gauges = Self::default();
        for sample in samples {
            let status = &sample.status;
            gauges.queued += sample.queued;
            gauges.unsynced += usize::from(!status.has_synced());
            gauges.broken += status.broken_count;
            gauges.index_errors += status.index_errors;
            for source in &status.sources {
                gauges.last_event = gauges.last_event.max(source.since_last_event());
                gauges.last_bookmark = gauges.last_bookmark.max(source.since_last_bookmark());
            }
            if let Some(store) = &sample.store {
                gauges.items += store.items;
                gauges.bytes += store.wire_bytes;
                gauges.memory += store.rest_bytes + store.dictionary_bytes;
                gauges.revision = last_digits(&store.revision);
                for index in &store.indices {
                    let (values, entries) =
                        gauges.indices.entry(Arc::clone(&index.name)).or_default();
                    *values += index.values;
                    *entries += index.entries;
                }
            }
            for sample in &sample.handlers {
                let handler = gauges.handlers.entry(Arc::clone(&sample.name));
                let handler = handler.or_default();
                handler.depth += sample.depth;
                handler.lag = handler.lag.max(sample.lag);
                handler.panics += sample.panics;
            }
        }
        gauges
    }
}

fn sum(samples: &[WorkQueueSample]) -> WorkQueueSample {
    let mut sum = WorkQueueSample::default();
    for sample in samples {
        sum.depth += sample.depth;
        sum.adds += sample.adds;
        sum.retries += sample.retries;
        sum.unfinished += sample.unfinished;
        sum.longest_running = sum.longest_running.max(sample.longest_running);
    }
    sum
}

/// Returns the last 15 digits of a revision, or 0 if the revision is not a number.
fn last_digits(revision: &ResourceVersion) -> u64 {
    let text = revision.to_string();
    let last = text.len().saturating_sub(REVISION_DIGITS);
    text.get(last..).unwrap_or_default().parse().unwrap_or(0)
}

trait Labelled {
    fn labels(&self) -> Labels<'_>;

    fn labels_and<'a>(&'a self, label: &'static str, value: &'a str) -> Labels<'a> {
        let mut labels = self.labels();
        labels.push((label, value));
        labels
    }
}

impl Labelled for Informer {
    fn labels(&self) -> Labels<'_> {
        let identity = &self.identity;
        vec![
            ("name", &identity.name),
            ("group", &identity.group),
            ("version", &identity.version),
            ("resource", &identity.resource),
            ("namespace", &identity.namespace),
        ]
    }
}

impl Labelled for WorkQueue {
    fn labels(&self) -> Labels<'_> {
        vec![("name", &self.name)]
    }
}

/// Writes metric families to the encoder of a scrape.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn families<T: Labelled>(&mut self, all: &[T], rows: &[Row<T>]) -> fmt::Result {
        for (name, help, value) in rows {
            match value {
                Value::Gauge(get) => {
                    self.family(name, help, all.iter().map(|at| (at.labels(), int(get(at)))))?;
                }
                Value::Seconds(get) => {
                    let of = |at| Some((T::labels(at), seconds(get(at)?)));
                    self.family(name, help, all.iter().filter_map(of))?;
                }
                Value::Counter(get) => {
                    let of = |at| (T::labels(at), ConstCounter::new(get(at)));
                    self.family(name, help, all.iter().map(of))?;
                }
                Value::Histogram(get) => {
                    let of = |at| (T::labels(at), get(at).clone());
                    self.family(name, help, all.iter().map(of))?;
                }
                Value::Tally(label, get) => {
                    let of = |at| {
                        let counts = get(at).get().into_iter();
                        counts.map(move |(value, count)| {
                            (T::labels_and(at, label, value), ConstCounter::new(count))
                        })
                    };
                    self.family(name, help, all.iter().flat_map(of))?;
                }
            }
        }
        Ok(())
    }

    fn indices_and_handlers(&mut self, all: &[Informer]) -> fmt::Result {
        let indices = || {
            all.iter().flat_map(|at| {
                let sizes = at.gauges.indices.iter();
                sizes.map(|(name, sizes)| (at.labels_and("index", name), *sizes))
            })
        };
        self.family(
            "informer_index_values",
            "Different values of an index",
            indices().map(|(labels, (values, _))| (labels, int(values))),
        )?;
        self.family(
            "informer_index_entries",
            "Pairs of a value and an object in an index",
            indices().map(|(labels, (_, entries))| (labels, int(entries))),
        )?;
        let handlers = || {
            all.iter().flat_map(|at| {
                let handlers = at.gauges.handlers.iter();
                handlers.map(|(name, handler)| (at.labels_and("handler", name), *handler))
            })
        };
        self.family(
            "informer_handler_pending",
            "Notifications not yet handled, including the current one; a list counts as one",
            handlers().map(|(labels, handler)| (labels, int(handler.depth))),
        )?;
        self.family(
            "informer_handler_lag_seconds",
            "Age of the oldest notification not yet handled",
            handlers().map(|(labels, handler)| (labels, seconds(handler.lag))),
        )?;
        self.family(
            "informer_handler_panics",
            "Panics of a handler",
            handlers().map(|(labels, handler)| (labels, ConstCounter::new(handler.panics))),
        )
    }

    fn family<'l, M: EncodeMetric + TypedMetric>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (Labels<'l>, M)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, M::TYPE)?;
        for (labels, metric) in rows {
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn int(count: impl TryInto<i64>) -> ConstGauge<i64> {
    ConstGauge::new(count.try_into().unwrap_or(i64::MAX))
}

fn seconds(duration: Duration) -> ConstGauge<f64> {
    ConstGauge::new(duration.as_secs_f64())
}
