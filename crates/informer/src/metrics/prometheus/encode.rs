//! Encodes a scrape: all series, family by family.

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

/// Number of digits of a revision that a float represents exactly; client-go exports as many.
const REVISION_DIGITS: usize = 15;

/// Name and help of a family, and whose it is.
type HistogramOf = (
    &'static str,
    &'static str,
    fn(&InformerSeries) -> &Histogram,
);

const REFLECTOR_HISTOGRAMS: [HistogramOf; 5] = [
    (
        "reflector_list_duration_seconds",
        "Time from the first request of a list until the store has it",
        |series| &series.list_duration,
    ),
    ("reflector_items_per_list", "Objects of a list", |series| {
        &series.items_per_list
    }),
    (
        "reflector_watch_duration_seconds",
        "Time that a watch was open",
        |series| &series.watch_duration,
    ),
    (
        "reflector_items_per_watch",
        "Events of a watch, bookmarks included",
        |series| &series.items_per_watch,
    ),
    (
        "reflector_watch_lag_seconds",
        "Time from the receipt of an event until it is in the cache; of a batch, its oldest event",
        |series| &series.lag,
    ),
];

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// All values of one set of labels, at one moment.
struct Informer {
    identity: InformerIdentity,
    series: Arc<InformerSeries>,
    gauges: Gauges,
}

/// The sums over all informers with the same labels.
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
    /// Values and entries by the index's name.
    indices: BTreeMap<Arc<str>, (usize, usize)>,
    handlers: BTreeMap<Arc<str>, Handler>,
    last_event: Option<Duration>,
    last_bookmark: Option<Duration>,
}

/// The sums over all handlers with one name.
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
        page.informers(&informers)?;
        page.reflectors(&informers)?;
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
        page.work_queues(&work_queues)?;
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

/// Returns 0 for a revision that is not a number.
fn last_digits(revision: &ResourceVersion) -> u64 {
    let text = revision.to_string();
    let last = text.len().saturating_sub(REVISION_DIGITS);
    text.get(last..).unwrap_or_default().parse().unwrap_or(0)
}

impl Informer {
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

    fn labels_and<'a>(&'a self, label: &'static str, value: &'a str) -> Labels<'a> {
        let mut labels = self.labels();
        labels.push((label, value));
        labels
    }
}

impl WorkQueue {
    fn labels(&self) -> Labels<'_> {
        vec![("name", &self.name)]
    }
}

/// Writes families.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn informers(&mut self, all: &[Informer]) -> fmt::Result {
        let gauge = |get: fn(&Gauges) -> usize| {
            all.iter()
                .map(move |informer| (informer.labels(), int(get(&informer.gauges))))
        };
        self.family(
            "informer_queued_items",
            "Changes that wait for the store",
            gauge(|gauges| gauges.queued),
        )?;
        self.family(
            "informer_processing_latency_seconds",
            "Time to apply a batch of changes to the store and to hand it to the handlers' buffers",
            all.iter()
                .map(|at| (at.labels(), at.series.processing.clone())),
        )?;
        self.family(
            "informer_batch_changes",
            "Changes in a batch; a list may count as one",
            all.iter()
                .map(|at| (at.labels(), at.series.batch_changes.clone())),
        )?;
        self.family(
            "informer_store_resource_version",
            "Revision of the store, its last 15 digits",
            all.iter().map(|at| (at.labels(), int(at.gauges.revision))),
        )?;
        self.family(
            "informer_store_items",
            "Objects in the store, without broken objects",
            gauge(|gauges| gauges.items),
        )?;
        self.family(
            "informer_store_bytes",
            "Bytes that the server sent for the objects in the store",
            all.iter().map(|at| (at.labels(), int(at.gauges.bytes))),
        )?;
        self.family(
            "informer_store_memory_bytes",
            "Estimated memory of the objects in the store, with their dictionary",
            all.iter().map(|at| (at.labels(), int(at.gauges.memory))),
        )?;
        self.family(
            "informer_synced",
            "Whether the first list of every source is in the store",
            gauge(|gauges| usize::from(gauges.unsynced == 0)),
        )?;
        self.family(
            "informer_broken_objects",
            "Objects in the store that failed to decode",
            gauge(|gauges| gauges.broken),
        )?;
        self.family(
            "informer_index_errors",
            "Failed calls of index functions",
            all.iter()
                .map(|at| (at.labels(), ConstCounter::new(at.gauges.index_errors))),
        )?;
        self.tallies(
            ("informer_events", "type"),
            "Events delivered to handlers",
            all.iter().map(|at| (at, &at.series.told)),
        )?;
        self.tallies(
            ("informer_skipped", "reason"),
            "Objects and events that could not be stored as received",
            all.iter().map(|at| (at, &at.series.skipped)),
        )?;
        self.indices_and_handlers(all)
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

    fn reflectors(&mut self, all: &[Informer]) -> fmt::Result {
        let counter = |get: fn(&InformerSeries) -> u64| {
            all.iter()
                .map(move |at| (at.labels(), ConstCounter::new(get(&at.series))))
        };
        self.family(
            "reflector_lists",
            "Completed lists, with all their pages",
            counter(|series| series.lists.get()),
        )?;
        self.family(
            "reflector_watches",
            "Watches that were opened",
            counter(|series| series.watches.get()),
        )?;
        self.family(
            "reflector_short_watches",
            "Watches that ended within a second without an event",
            counter(|series| series.short_watches.get()),
        )?;
        for (name, help, get) in REFLECTOR_HISTOGRAMS {
            self.family(
                name,
                help,
                all.iter().map(|at| (at.labels(), get(&at.series).clone())),
            )?;
        }
        self.tallies(
            ("reflector_watch_events", "type"),
            "Events received from watches",
            all.iter().map(|at| (at, &at.series.watch_events)),
        )?;
        self.tallies(
            ("reflector_relists", "reason"),
            "Lists after the first",
            all.iter().map(|at| (at, &at.series.relists)),
        )?;
        self.tallies(
            ("reflector_errors", "class"),
            "Failed requests, broken responses, and changes that the store rejected",
            all.iter().map(|at| (at, &at.series.errors)),
        )?;
        self.tallies(
            ("reflector_consistency_checks", "result"),
            "Comparisons of the cache with the server",
            all.iter().map(|at| (at, &at.series.checks)),
        )?;
        self.family(
            "reflector_last_event_seconds",
            "Time since the last event or list",
            all.iter()
                .filter_map(|at| Some((at.labels(), seconds(at.gauges.last_event?)))),
        )?;
        self.family(
            "reflector_last_bookmark_seconds",
            "Time since the last bookmark",
            all.iter()
                .filter_map(|at| Some((at.labels(), seconds(at.gauges.last_bookmark?)))),
        )
    }

    fn work_queues(&mut self, all: &[WorkQueue]) -> fmt::Result {
        let counter = |get: fn(&WorkQueueSample) -> u64| {
            all.iter()
                .map(move |at| (at.labels(), ConstCounter::new(get(&at.sample))))
        };
        self.family(
            "workqueue_depth",
            "Items that wait for a worker",
            all.iter().map(|at| (at.labels(), int(at.sample.depth))),
        )?;
        self.family(
            "workqueue_adds",
            "Items that were accepted",
            counter(|sample| sample.adds),
        )?;
        self.family(
            "workqueue_retries",
            "Items that were added with a delay",
            counter(|sample| sample.retries),
        )?;
        let gauge = |get: fn(&WorkQueueSample) -> Duration| {
            all.iter()
                .map(move |at| (at.labels(), seconds(get(&at.sample))))
        };
        self.family(
            "workqueue_unfinished_work_seconds",
            "Sum of the times since the items in work were taken",
            gauge(|sample| sample.unfinished),
        )?;
        self.family(
            "workqueue_longest_running_processor_seconds",
            "Time since the longest-running item was taken",
            gauge(|sample| sample.longest_running),
        )?;
        self.family(
            "workqueue_queue_duration_seconds",
            "Time that an item waited for a worker",
            all.iter()
                .map(|at| (at.labels(), at.series.queue_duration.clone())),
        )?;
        self.family(
            "workqueue_work_duration_seconds",
            "Time that a worker processed an item",
            all.iter()
                .map(|at| (at.labels(), at.series.work_duration.clone())),
        )
    }

    fn tallies<'l>(
        &mut self,
        (name, label): (&str, &'static str),
        help: &str,
        rows: impl Iterator<Item = (&'l Informer, &'l Tally)>,
    ) -> fmt::Result {
        let rows = rows.flat_map(|(at, tally)| {
            let counts = tally.get().into_iter();
            counts
                .map(move |(value, count)| (at.labels_and(label, value), ConstCounter::new(count)))
        });
        self.family(name, help, rows)
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
