//! Defines the topics that a run measures, and the numbers of objects, events and rounds of the run.

use clap::ValueEnum;

/// A subject of measurement, with its own tables in `BENCHMARKING.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topic {
    /// Sizes of the objects in the source.
    Corpora,
    /// Wall time and CPU time of the first sync.
    Sync,
    /// Peak memory of the sync, and memory afterwards.
    Memory,
    /// Throughput of events, and latencies at a fixed rate.
    Events,
    /// A new list after an expired watch.
    Relist,
    /// Reads of the cache during writes.
    Reads,
    /// The work queue, and the delivery of each event to many handlers.
    Queue,
    /// Time and memory from 10,000 to 1,000,000 objects.
    Scale,
}

/// The topics that a run measures, and the number of pods, events and other inputs of each measurement.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) pods: u32,
    pub(crate) topics: Vec<Topic>,
    /// Number of events that the source sends without a rate limit.
    pub(crate) events: usize,
    /// Duration of the events that the source sends at each of the fixed [`RATES`], in seconds.
    pub(crate) paced: usize,
    pub(crate) relists: usize,
    pub(crate) readers: &'static [usize],
    /// Duration of each measurement of cache reads, in seconds.
    pub(crate) seconds: usize,
    /// Number of keys that the measurement of the work queue adds, gets and finishes.
    pub(crate) items: usize,
    /// Number of events in the measurement that delivers each event to many handlers.
    pub(crate) fanned_out: usize,
    pub(crate) scale: &'static [u32],
}

/// Fixed rates at which latencies are measured, in events per second. Every program can receive more events
/// per second than these rates.
pub(crate) const RATES: [usize; 2] = [1_000, 4_000];

impl Plan {
    /// Returns the plan of a complete run, whose results are published in `BENCHMARKING.md`.
    pub(crate) fn full(rounds: usize, pods: u32) -> Self {
        Self {
            rounds,
            pods,
            topics: Topic::value_variants().to_vec(),
            events: 20_000,
            paced: 10,
            relists: 3,
            readers: &[0, 1, 10, 20, 40, 80],
            seconds: 3,
            items: 3_000_000,
            fanned_out: 100_000,
            scale: &[10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000],
        }
    }

    /// Returns a small plan that checks that all measurements run. Its figures are not meaningful.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 1,
            pods: 2_000,
            events: 2_000,
            paced: 1,
            relists: 1,
            readers: &[0, 10],
            seconds: 1,
            items: 100_000,
            fanned_out: 2_000,
            scale: &[1_000, 2_000],
            ..Self::full(1, 2_000)
        }
    }

    pub(crate) fn has(&self, topics: &[Topic]) -> bool {
        topics.iter().any(|topic| self.topics.contains(topic))
    }
}
