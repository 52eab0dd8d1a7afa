//! The line that a measured program prints, and what each of its fields means.

use serde::{Deserialize, Serialize};

/// One run of one program. `bench/README.md` has the same definitions for readers of the tables.
///
/// Times are in the unit that the name ends with. CPU time is that of all threads of the program, user
/// and system, the collector's included. Memory is resident, in KiB, as the kernel counts it: `VmRSS`
/// and, for a peak, `VmHWM`, which is reset when a phase begins. A field of a phase that the run did not
/// have is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Objects that the handler was told of in the first phase.
    pub objects: u64,
    /// From before the client is made until the informer is synced and the handler has been told all.
    pub sync_s: f64,
    /// CPU time of that.
    pub sync_cpu_s: f64,
    /// The most memory from the start of the program to the end of the sync.
    pub peak_kib: u64,
    /// Memory when nothing has happened for [`SETTLE`](crate::SETTLE) after the sync.
    pub steady_kib: u64,
    /// The same after a forced collection that gives memory back to the system; where there is a
    /// collector.
    pub steady_freed_kib: Option<u64>,
    /// Events of the watch phase.
    pub events: u64,
    /// Events a second that the source was asked for; 0 is as many as are taken.
    pub rate: u64,
    /// Events of the watch phase by the time from the request to the source to the handler's last.
    pub events_per_s: Option<f64>,
    /// CPU time of the watch phase by its events.
    pub cpu_us_per_event: Option<f64>,
    /// From the source's time stamp of an event to the handler's reading of it: the median.
    pub p50_us: Option<f64>,
    /// The same, that 99 of 100 stay within.
    pub p99_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// The most memory in the watch phase.
    pub watch_peak_kib: Option<u64>,
    /// How often everything was listed again.
    pub relists: u64,
    /// From the end of the watch to an event that comes after the relist, by relists; with the client's
    /// pause after a failure.
    pub relist_s: Option<f64>,
    /// CPU time of that, by relists.
    pub relist_cpu_s: Option<f64>,
    /// The most memory during all of them.
    pub relist_peak_kib: Option<u64>,
}
