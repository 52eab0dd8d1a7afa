//! Defines the line of JSON in which a measured program prints its result.

use serde::{Deserialize, Serialize};

/// The result of one run of a measured program.
///
/// CPU time is the user and system time of all threads. Memory is resident memory: `VmRSS`, and `VmHWM` for
/// peaks. The measurements of a phase that was not run are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Number of objects that the handler received during the sync.
    pub objects: u64,
    /// Wall time from client creation until the informer and the handler have all objects, in seconds.
    pub sync_s: f64,
    /// CPU time that the measured program used during the sync, in seconds.
    pub sync_cpu_s: f64,
    /// Peak resident memory from the start of the program to the end of the sync.
    pub peak_kib: u64,
    /// Resident memory after the sync and an idle pause of [`SETTLE`](crate::SETTLE).
    pub steady_kib: u64,
    /// Resident memory after a forced garbage collection; `null` without a garbage collector.
    pub steady_freed_kib: Option<u64>,
    /// Number of events in the watch phase: the value of the flag `--events`.
    pub events: u64,
    /// Requested events per second in the watch phase; 0 is as fast as possible.
    pub rate: u64,
    /// Mean number of events per second in the watch phase.
    ///
    /// The measured time starts when the measured program requests the events from the source, and ends when
    /// the handler has received the last event.
    pub events_per_s: Option<f64>,
    /// CPU time per event in the watch phase, in microseconds.
    pub cpu_us_per_event: Option<f64>,
    /// Median time from an object's change until the handler reads the changed object, in microseconds.
    /// `null` if the handler reads only keys.
    pub p50_us: Option<f64>,
    /// Like `p50_us`, but the 99th percentile.
    pub p99_us: Option<f64>,
    /// Like `p50_us`, but the maximum.
    pub max_us: Option<f64>,
    /// Peak resident memory during the watch phase.
    pub watch_peak_kib: Option<u64>,
    /// Number of relists in the relist phase: the value of the flag `--relist`.
    pub relists: u64,
    /// Mean wall time of a relist, in seconds.
    ///
    /// A relist starts when the server expires all revisions, and ends when the handler receives the first
    /// event of the new watch. The client's backoff is included.
    pub relist_s: Option<f64>,
    /// Mean CPU time that the measured program uses during a relist, in seconds.
    pub relist_cpu_s: Option<f64>,
    /// Peak resident memory during all relists.
    pub relist_peak_kib: Option<u64>,
}
