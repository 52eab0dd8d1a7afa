//! Defines the counters and histograms of informers and work queues. Informers with equal labels share one
//! set of series. Work queues with equal labels do too.

use std::collections::BTreeMap;

use derive_where::derive_where;
use parking_lot::Mutex;
use prometheus_client::metrics::{counter::Counter, histogram::Histogram};

use super::super::{
    Checked, InformerSampler, Observed, RelistReason, Skipped, WatchEvent, WorkQueueObserved,
    WorkQueueSampler,
};

/// Upper bucket bounds in seconds for batch processing times and event latencies, as in client-go.
const LATENCY: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Upper bucket bounds in seconds for list durations, up to a slow list of a million objects.
const LIST_DURATION: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Upper bucket bounds in seconds for watch durations; normal watches take 5 to 10 minutes.
const WATCH_DURATION: [f64; 7] = [1.0, 10.0, 60.0, 180.0, 300.0, 600.0, 1200.0];

const COUNTS: [f64; 7] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];

/// Upper bucket bounds in seconds for an item's queue and work times, as in client-go.
const WORK: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

pub(super) struct InformerSeries {
    pub(super) samplers: Samplers<InformerSampler>,
    pub(super) processing: Histogram,
    pub(super) batch_changes: Histogram,
    pub(super) lag: Histogram,
    pub(super) told: Tally,
    pub(super) skipped: Tally,
    pub(super) lists: Counter,
    pub(super) list_duration: Histogram,
    pub(super) items_per_list: Histogram,
    pub(super) watches: Counter,
    pub(super) short_watches: Counter,
    pub(super) watch_duration: Histogram,
    pub(super) items_per_watch: Histogram,
    pub(super) watch_events: Tally,
    pub(super) relists: Tally,
    pub(super) errors: Tally,
    pub(super) checks: Tally,
}

impl Default for InformerSeries {
    fn default() -> Self {
        Self {
            samplers: Samplers::default(),
            processing: Histogram::new(LATENCY),
            batch_changes: Histogram::new(COUNTS),
            lag: Histogram::new(LATENCY),
            told: Tally::of(["added", "updated", "deleted"]),
            skipped: Tally::of(Skipped::ALL.map(Skipped::as_str)),
            lists: Counter::default(),
            list_duration: Histogram::new(LIST_DURATION),
            items_per_list: Histogram::new(COUNTS),
            watches: Counter::default(),
            short_watches: Counter::default(),
            watch_duration: Histogram::new(WATCH_DURATION),
            items_per_watch: Histogram::new(COUNTS),
            watch_events: Tally::of(WatchEvent::ALL.map(WatchEvent::as_str)),
            relists: Tally::of(RelistReason::ALL.map(RelistReason::as_str)),
            errors: Tally::of([]),
            checks: Tally::of(Checked::ALL.map(Checked::as_str)),
        }
    }
}

impl InformerSeries {
    pub(super) fn observe(&self, observed: &Observed) {
        match observed {
            Observed::Relist(reason) => self.relists.add(reason.as_str(), 1),
            Observed::List { took, items, .. } => {
                self.lists.inc();
                self.list_duration.observe(took.as_secs_f64());
                self.items_per_list.observe(float(*items as u64));
            }
            Observed::WatchOpened => {
                self.watches.inc();
            }
            Observed::WatchEnded {
                open_for,
                events,
                short,
            } => {
                self.watch_duration.observe(open_for.as_secs_f64());
                self.items_per_watch.observe(float(*events));
                self.short_watches.inc_by(u64::from(*short));
            }
            Observed::Event(event) => self.watch_events.add(event.as_str(), 1),
            Observed::Failed(class) => self.errors.add(class.as_str(), 1),
            Observed::Skipped(reason) => self.skipped.add(reason.as_str(), 1),
            Observed::Checked(outcome) => self.checks.add(outcome.as_str(), 1),
            Observed::Batch { changes, took, lag } => {
                self.batch_changes.observe(float(*changes as u64));
                self.processing.observe(took.as_secs_f64());
                if let Some(lag) = lag {
                    self.lag.observe(lag.as_secs_f64());
                }
            }
            Observed::Told(told) => {
                self.told.add("added", told.added);
                self.told.add("updated", told.updated);
                self.told.add("deleted", told.deleted);
            }
        }
    }
}

pub(super) struct WorkQueueSeries {
    pub(super) samplers: Samplers<WorkQueueSampler>,
    pub(super) queue_duration: Histogram,
    pub(super) work_duration: Histogram,
}

impl Default for WorkQueueSeries {
    fn default() -> Self {
        Self {
            samplers: Samplers::default(),
            queue_duration: Histogram::new(WORK),
            work_duration: Histogram::new(WORK),
        }
    }
}

impl WorkQueueSeries {
    pub(super) fn observe(&self, observed: WorkQueueObserved) {
        match observed {
            WorkQueueObserved::Queued(waited) => self.queue_duration.observe(waited.as_secs_f64()),
            WorkQueueObserved::Worked(took) => self.work_duration.observe(took.as_secs_f64()),
        }
    }
}

/// The counters of one metric, by the value of the label that distinguishes them.
pub(super) struct Tally(Mutex<BTreeMap<&'static str, u64>>);

impl Tally {
    /// Creates a counter with the value zero for each label value in `known`.
    fn of<const N: usize>(known: [&'static str; N]) -> Self {
        Self(Mutex::new(known.map(|label| (label, 0)).into()))
    }

    fn add(&self, label: &'static str, count: u64) {
        *self.0.lock().entry(label).or_default() += count;
    }

    pub(super) fn get(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().clone()
    }
}

/// The samplers of all informers or work queues with equal labels.
#[derive_where(Default)]
pub(super) struct Samplers<S>(Mutex<Vec<S>>);

impl<S: Clone> Samplers<S> {
    /// Adds a sampler, and removes the samplers of informers or queues that have ended.
    pub(super) fn add(&self, sampler: S, is_gone: fn(&S) -> bool) {
        let mut samplers = self.0.lock();
        samplers.retain(|sampler| !is_gone(sampler));
        samplers.push(sampler);
    }

    /// Returns the results of `sample` for all informers or queues that have not ended.
    pub(super) fn sample<R>(&self, sample: fn(&S) -> Option<R>) -> Vec<R> {
        // No lock is held during the calls.
        let samplers = self.0.lock().clone();
        samplers.iter().filter_map(sample).collect()
    }
}

/// Converts a number to a float for a histogram; rounding above 2⁵³ does not change the bucket.
#[expect(clippy::cast_precision_loss, reason = "said above")]
fn float(count: u64) -> f64 {
    count as f64
}
