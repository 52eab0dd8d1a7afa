//! Defines the topics that a run measures, and the numbers of rounds, objects and events of the run.
//!
//! A round measures each program once.

use clap::ValueEnum;

/// A group of measurements that has its own section in `BENCHMARKING.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topic {
    /// Mean size of a generated object as JSON, as protobuf and as compressed JSON.
    Corpora,
    /// Wall time and CPU time until a newly started informer has synced.
    Sync,
    /// Peak memory during the sync, and memory after the sync while no object changes.
    Memory,
    /// Maximum rate of events, and event latencies at fixed rates.
    Events,
    /// Wall time and CPU time of a relist after an expired watch.
    Relist,
    /// Cache reads and pod changes per second, while several readers list the cache.
    Reads,
    /// Time per key of the work queue, and time per event delivered to handlers.
    Queue,
    /// Time and memory of the sync for 10,000 to 1,000,000 objects.
    Scale,
}

/// The topics of a run, the number of rounds, and the amount of work in each measurement.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) pods: u32,
    pub(crate) topics: Vec<Topic>,
    /// Number of events in the measurement of the maximum event rate.
    pub(crate) events: usize,
    /// Duration of the measurement at each rate in [`RATES`], in seconds.
    pub(crate) paced: usize,
    pub(crate) relists: usize,
    pub(crate) readers: &'static [usize],
    /// Duration of each measurement of cache reads, in seconds.
    pub(crate) seconds: usize,
    /// Number of keys in the measurement of the work queue.
    pub(crate) items: usize,
    /// Number of events that each `fan-out` measurement delivers.
    pub(crate) fanned_out: usize,
    pub(crate) scale: &'static [u32],
}

/// Rates at which event latencies are measured, in events per second.
pub(crate) const RATES: [usize; 2] = [1_000, 4_000];

impl Plan {
    /// Returns the plan of the complete run that `BENCHMARKING.md` reports.
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

    /// Returns a small plan that only checks that all measurements run.
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
