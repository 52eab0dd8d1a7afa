//! How much is measured.

use clap::ValueEnum;

/// What a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topic {
    /// What the objects are like that the source has.
    Corpora,
    /// Time and CPU time until all is in the cache.
    Sync,
    /// Memory at its peak and afterwards.
    Memory,
    /// Events as fast as they are taken, and latencies at a fixed rate.
    Events,
    /// Everything listed again after an expired watch.
    Relist,
    /// Reads of the cache beside writes.
    Reads,
    /// The work queue, and one event to many handlers.
    Queue,
    /// Time and memory from ten thousand objects to a million.
    Scale,
}

/// Sizes of one run of the whole comparison.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) pods: u32,
    pub(crate) topics: Vec<Topic>,
    /// Events as fast as they go.
    pub(crate) events: usize,
    /// Seconds of events at each of [`RATES`].
    pub(crate) paced: usize,
    pub(crate) relists: usize,
    pub(crate) readers: &'static [usize],
    /// How long readers read.
    pub(crate) seconds: usize,
    /// Keys through the work queue.
    pub(crate) items: usize,
    /// Events to many handlers.
    pub(crate) fanned_out: usize,
    pub(crate) scale: &'static [u32],
}

/// Events a second where latencies are measured: below what any of the programs can take.
pub(crate) const RATES: [usize; 2] = [1_000, 4_000];

impl Plan {
    /// What `BENCHMARKING.md` shows.
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

    /// Whether everything still works; its figures say little.
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
