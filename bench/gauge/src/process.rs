//! Reads the CPU time and the resident memory of this process from the kernel.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};

/// Returns the user and system CPU time of this process so far, including ended threads.
pub fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    // Neither is negative: the clock starts at zero with the process.
    let (seconds, nanos) = (spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs());
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

/// Returns the current resident memory of this process, in KiB.
///
/// # Errors
/// Returns an error if Linux's `/proc` is not available.
pub fn resident_kib() -> Result<u64> {
    Memory::read().map(|memory| memory.resident)
}

/// Resident memory of this process, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    /// Peak resident memory since the process start or the last [`reset_peak`].
    pub(crate) peak: u64,
}

impl Memory {
    pub(crate) fn read() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("needs Linux's /proc")?;
        Self::of_status(&status).context("/proc/self/status has no VmRSS or VmHWM")
    }

    fn of_status(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim_end().parse().ok()
        };
        Some(Self {
            resident: field("VmRSS:")?,
            peak: field("VmHWM:")?,
        })
    }
}

/// Sets the recorded peak memory of this process to its current resident memory.
///
/// # Errors
/// Returns an error if Linux's `/proc` is not available.
pub(crate) fn reset_peak() -> Result<()> {
    // proc(5): 5 resets the peak resident set size.
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status_of_a_process() {
        let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  170204 kB\nVmRSS:\t   1016 kB\n";
        let memory = Memory::of_status(status);
        let (resident, peak) = (1_016, 170_204);
        assert_eq!(memory, Some(Memory { resident, peak }));
    }

    #[test]
    fn a_status_without_memory_is_none() {
        assert_eq!(Memory::of_status("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn a_reset_peak_starts_at_the_current_memory() {
        drop(vec![1_u8; 64 << 20]);
        let before = Memory::read().unwrap();
        reset_peak().unwrap();
        let after = Memory::read().unwrap();
        assert!(before.peak >= 64 << 10);
        assert!(after.peak < before.peak);
    }
}
