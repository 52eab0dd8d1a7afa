//! The scrape: all series, family by family.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric, NoLabelSet},
    metrics::{MetricType, histogram::Histogram},
};

use super::{
    super::{InformerIdentity, InformerSample, InformerSampler, WorkQueueSample, WorkQueueSampler},
    series::{InformerSeries, Tally, WorkQueueSeries},
};
use crate::object::ResourceVersion;

/// Digits of a revision that a float holds exactly; client-go shows as many.
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
        "From a list's first request until the store had it",
        |series| &series.list_duration,
    ),
    ("reflector_items_per_list", "Objects of a list", |series| {
        &series.items_per_list
    }),
    (
        "reflector_watch_duration_seconds",
        "How long a watch was open",
        |series| &series.watch_duration,
    ),
    (
        "reflector_items_per_watch",
        "Events of a watch, bookmarks included",
        |series| &series.items_per_watch,
    ),
    (
        "reflector_watch_lag_seconds",
        "From receiving an event until readers could see it; of a batch, its oldest",
        |series| &series.lag,
    ),
];

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Everything of one set of labels, at one moment.
struct Informer {
    identity: InformerIdentity,
    series: Arc<InformerSeries>,
    gauges: Gauges,
}

/// The samples of all informers that share their labels.
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

/// Those of one name.
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

/// Zero for a revision that is no number.
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
        self.gauges(
            "informer_queued_items",
            "Changes that wait for the store",
            gauge(|gauges| gauges.queued),
        )?;
        self.histograms(
            "informer_processing_latency_seconds",
            "Time to apply a batch of changes to the store and to hand it to the handlers' buffers",
            all.iter().map(|at| (at.labels(), &at.series.processing)),
        )?;
        self.histograms(
            "informer_batch_changes",
            "Changes in a batch; a list may be one",
            all.iter().map(|at| (at.labels(), &at.series.batch_changes)),
        )?;
        self.gauges(
            "informer_store_resource_version",
            "Up to where the store has everything, the last 15 digits",
            all.iter().map(|at| (at.labels(), int(at.gauges.revision))),
        )?;
        self.gauges(
            "informer_store_items",
            "Objects in the store, broken ones not counted",
            gauge(|gauges| gauges.items),
        )?;
        self.gauges(
            "informer_store_bytes",
            "What the server sent for the objects in the store",
            all.iter().map(|at| (at.labels(), int(at.gauges.bytes))),
        )?;
        self.gauges(
            "informer_store_memory_bytes",
            "What the objects in the store take at rest, about, and what packs them",
            all.iter().map(|at| (at.labels(), int(at.gauges.memory))),
        )?;
        self.gauges(
            "informer_synced",
            "Whether the first list of every source is in the store",
            gauge(|gauges| usize::from(gauges.unsynced == 0)),
        )?;
        self.gauges(
            "informer_broken_objects",
            "Objects in the store without a usable state",
            gauge(|gauges| gauges.broken),
        )?;
        self.counters(
            "informer_index_errors",
            "How often an index function could not place an object",
            all.iter().map(|at| (at.labels(), at.gauges.index_errors)),
        )?;
        self.tallies(
            ("informer_events", "type"),
            "Changes that handlers are told of",
            all.iter().map(|at| (at, &at.series.told)),
        )?;
        self.tallies(
            ("informer_skipped", "reason"),
            "What the server sent and could not be kept as it was",
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
        self.gauges(
            "informer_index_values",
            "Different values of an index",
            indices().map(|(labels, (values, _))| (labels, int(values))),
        )?;
        self.gauges(
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
        self.gauges(
            "informer_handler_pending",
            "Notifications that wait for a handler, with the one it is hearing; a list is one",
            handlers().map(|(labels, handler)| (labels, int(handler.depth))),
        )?;
        self.gauges(
            "informer_handler_lag_seconds",
            "For how long the oldest of them has been waiting",
            handlers().map(|(labels, handler)| (labels, handler.lag.as_secs_f64())),
        )?;
        self.counters(
            "informer_handler_panics",
            "How often a handler has panicked",
            handlers().map(|(labels, handler)| (labels, handler.panics)),
        )
    }

    fn reflectors(&mut self, all: &[Informer]) -> fmt::Result {
        let counter = |get: fn(&InformerSeries) -> u64| {
            all.iter().map(move |at| (at.labels(), get(&at.series)))
        };
        self.counters(
            "reflector_lists",
            "Lists that have ended, with all their pages",
            counter(|series| series.lists.get()),
        )?;
        self.counters(
            "reflector_watches",
            "Watches that were opened",
            counter(|series| series.watches.get()),
        )?;
        self.counters(
            "reflector_short_watches",
            "Watches that ended within a second without an event",
            counter(|series| series.short_watches.get()),
        )?;
        for (name, help, get) in REFLECTOR_HISTOGRAMS {
            self.histograms(
                name,
                help,
                all.iter().map(|at| (at.labels(), get(&at.series))),
            )?;
        }
        self.tallies(
            ("reflector_watch_events", "type"),
            "Events that watches brought",
            all.iter().map(|at| (at, &at.series.watch_events)),
        )?;
        self.tallies(
            ("reflector_relists", "reason"),
            "Lists but the first",
            all.iter().map(|at| (at, &at.series.relists)),
        )?;
        self.tallies(
            ("reflector_errors", "class"),
            "Failed requests, broken streams, refusals of the store",
            all.iter().map(|at| (at, &at.series.errors)),
        )?;
        self.tallies(
            ("reflector_consistency_checks", "result"),
            "Comparisons of the cache with the server",
            all.iter().map(|at| (at, &at.series.checks)),
        )?;
        self.gauges(
            "reflector_last_event_seconds",
            "How long ago the last event or list came",
            all.iter()
                .filter_map(|at| Some((at.labels(), at.gauges.last_event?.as_secs_f64()))),
        )?;
        self.gauges(
            "reflector_last_bookmark_seconds",
            "How long ago the last bookmark came",
            all.iter()
                .filter_map(|at| Some((at.labels(), at.gauges.last_bookmark?.as_secs_f64()))),
        )
    }

    fn work_queues(&mut self, all: &[WorkQueue]) -> fmt::Result {
        let counter = |get: fn(&WorkQueueSample) -> u64| {
            all.iter().map(move |at| (at.labels(), get(&at.sample)))
        };
        self.gauges(
            "workqueue_depth",
            "Items that wait for a worker",
            all.iter().map(|at| (at.labels(), int(at.sample.depth))),
        )?;
        self.counters(
            "workqueue_adds",
            "Items that were accepted",
            counter(|sample| sample.adds),
        )?;
        self.counters(
            "workqueue_retries",
            "Items that were added with a delay",
            counter(|sample| sample.retries),
        )?;
        let seconds = |get: fn(&WorkQueueSample) -> Duration| {
            all.iter()
                .map(move |at| (at.labels(), get(&at.sample).as_secs_f64()))
        };
        self.gauges(
            "workqueue_unfinished_work_seconds",
            "How long the items in work have been so, together",
            seconds(|sample| sample.unfinished),
        )?;
        self.gauges(
            "workqueue_longest_running_processor_seconds",
            "How long the item has been in work that has been longest",
            seconds(|sample| sample.longest_running),
        )?;
        self.histograms(
            "workqueue_queue_duration_seconds",
            "How long an item waited for a worker",
            all.iter()
                .map(|at| (at.labels(), &at.series.queue_duration)),
        )?;
        self.histograms(
            "workqueue_work_duration_seconds",
            "How long a worker had an item",
            all.iter().map(|at| (at.labels(), &at.series.work_duration)),
        )
    }

    fn gauges<'l, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in rows {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counters<'l, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in rows {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    fn tallies<'l>(
        &mut self,
        (name, label): (&str, &'static str),
        help: &str,
        rows: impl Iterator<Item = (&'l Informer, &'l Tally)>,
    ) -> fmt::Result {
        let rows = rows.flat_map(|(at, tally)| {
            let counts = tally.get().into_iter();
            counts.map(move |(value, count)| (at.labels_and(label, value), count))
        });
        self.counters(name, help, rows)
    }

    fn histograms<'l>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (Labels<'l>, &'l Histogram)>,
    ) -> fmt::Result {
        let mut family = self
            .0
            .encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, histogram) in rows {
            histogram.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
