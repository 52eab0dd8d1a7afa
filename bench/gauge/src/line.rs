//! The line of JSON that a measured program prints.

use serde::{Deserialize, Serialize};

/// The result of one run. `bench/README.md` has the same definitions for readers of the tables.
///
/// The suffix of a name is its unit. CPU time is the user and system time of all threads, including those of
/// a garbage collector. Memory is resident memory in KiB, as reported by the kernel: `VmRSS`, and `VmHWM` for
/// a peak, which is reset when a phase starts. Fields of a phase that was not run are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Objects that the handler received in the sync.
    pub objects: u64,
    /// Wall time from before the client is created until the informer has synced and the handler has received
    /// all objects.
    pub sync_s: f64,
    /// CPU time of the sync.
    pub sync_cpu_s: f64,
    /// Peak memory from the start of the program to the end of the sync.
    pub peak_kib: u64,
    /// Memory after a pause of [`SETTLE`](crate::SETTLE) without changes after the sync.
    pub steady_kib: u64,
    /// The same after a forced garbage collection that returns memory to the system; `null` without a garbage
    /// collector.
    pub steady_freed_kib: Option<u64>,
    /// Number of events that the handler received in the watch phase.
    pub events: u64,
    /// Requested events per second; 0 sends them as fast as the program reads.
    pub rate: u64,
    /// Events of the watch phase divided by the time from the request to the source to the handler's last
    /// event.
    pub events_per_s: Option<f64>,
    /// CPU time of the watch phase divided by its events.
    pub cpu_us_per_event: Option<f64>,
    /// Median latency, from the source's time stamp of an event to the moment when the handler reads it.
    pub p50_us: Option<f64>,
    /// The 99th percentile of the latency.
    pub p99_us: Option<f64>,
    /// The maximum latency.
    pub max_us: Option<f64>,
    /// Peak memory in the watch phase.
    pub watch_peak_kib: Option<u64>,
    /// Number of relists.
    pub relists: u64,
    /// Mean wall time of a relist, from the end of the watch to the next event after the list. Includes the
    /// client's pause after a failure.
    pub relist_s: Option<f64>,
    /// Mean CPU time of a relist.
    pub relist_cpu_s: Option<f64>,
    /// Peak memory in all relists.
    pub relist_peak_kib: Option<u64>,
}
