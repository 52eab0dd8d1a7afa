//! Defines the line of JSON in which a measured program prints its result.

use serde::{Deserialize, Serialize};

/// The result of one run of a measured program.
///
/// The last part of a field's name is its unit: `_s`, `_us` or `_kib`. CPU time is the user and system time
/// of all threads of the program, including the threads of a garbage collector. Memory is the resident memory
/// of the process in KiB, as reported by the kernel: `VmRSS` for current memory, and `VmHWM` for peak memory.
/// The program resets the peak at the start of the watch phase and at the start of the relist phase. The
/// measurements of a phase that was not run are `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Number of objects that the handler received during the sync.
    pub objects: u64,
    /// Wall time of the sync, in seconds. The sync starts before the client is created, and ends when the
    /// informer has synced and the handler has received all objects.
    pub sync_s: f64,
    /// CPU time that the measured program used during the sync, in seconds.
    pub sync_cpu_s: f64,
    /// Peak resident memory from the start of the program to the end of the sync.
    pub peak_kib: u64,
    /// Resident memory after the sync and a pause of [`SETTLE`](crate::SETTLE), during which no object
    /// changes.
    pub steady_kib: u64,
    /// Resident memory after a forced garbage collection that returns freed memory to the system. The
    /// collection runs after `steady_kib` is measured. `null` for programs without a garbage collector.
    pub steady_freed_kib: Option<u64>,
    /// Number of events in the watch phase: the value of the flag `--events`. The handler has received all of
    /// them.
    pub events: u64,
    /// Requested number of events per second in the watch phase. The value 0 requests events as fast as the
    /// program reads them.
    pub rate: u64,
    /// Mean number of events per second in the watch phase. The measured period starts when the program
    /// requests the events, and ends when the handler receives the last event.
    pub events_per_s: Option<f64>,
    /// CPU time of the watch phase divided by the number of its events, in microseconds.
    pub cpu_us_per_event: Option<f64>,
    /// Median latency of the events in the watch phase, in microseconds. The latency is the time from the
    /// change of an object to the time at which the handler reads the changed object. The annotation
    /// `bench/ts` contains the time of the change. `null` if the handler reads only keys.
    pub p50_us: Option<f64>,
    /// 99th percentile of the event latency in the watch phase, in microseconds. The field `p50_us` defines
    /// the latency.
    pub p99_us: Option<f64>,
    /// Maximum event latency in the watch phase, in microseconds. The field `p50_us` defines the latency.
    pub max_us: Option<f64>,
    /// Peak resident memory during the watch phase.
    pub watch_peak_kib: Option<u64>,
    /// Number of relists in the relist phase: the value of the flag `--relist`.
    pub relists: u64,
    /// Mean wall time of a relist, in seconds, including the client's backoff. A relist starts when the
    /// server expires all revisions and ends the watch. When the client has a new watch, the program requests
    /// one event. The relist ends when the handler receives this event.
    pub relist_s: Option<f64>,
    /// Mean CPU time that the measured program uses during a relist, in seconds.
    pub relist_cpu_s: Option<f64>,
    /// Peak resident memory during the relist phase. This phase includes all relists.
    pub relist_peak_kib: Option<u64>,
}
