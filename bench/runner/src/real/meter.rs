//! Measures the CPU time and the peak memory of another process, as read from Linux's `/proc`.
//!
//! This module does not start the process.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};

/// Interval between two reads of the process's CPU time in [`Meter::settle`].
const INTERVAL: Duration = Duration::from_millis(100);

/// Number of consecutive idle intervals after which [`Meter::settle`] regards the process as settled.
const QUIET_INTERVALS: u32 = 5;

/// An [`INTERVAL`] counts as idle if the process uses at most this CPU time in the interval. The limit is
/// above zero because kube-apiserver has background tasks.
const QUIET: Duration = Duration::from_millis(20);

/// Maximum time that [`Meter::settle`] waits for the process to be idle.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Duration for which [`Meter::of_idle`] measures the CPU time that the process uses without clients.
const IDLE: Duration = Duration::from_secs(5);

/// Measures the CPU time and the peak memory of the process `id`.
#[derive(Debug)]
pub(super) struct Meter {
    id: u32,
    /// CPU time that the process uses in one second of wall time when it has no clients, in seconds.
    idle: f64,
}

/// The start of a measurement: its time, and the CPU time used until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    at: Instant,
    cpu: Duration,
}

impl Meter {
    /// Measures the CPU time that the process `id` uses without clients, and creates a meter for the process.
    ///
    /// The process must have no clients until this method returns.
    ///
    /// # Errors
    /// Returns an error if the process does not exist, or the kernel is not Linux.
    pub(super) async fn of_idle(id: u32) -> Result<Self> {
        let mut meter = Self { id, idle: 0.0 };
        meter.settle().await?;
        let start = meter.start()?;
        sleep(IDLE).await;
        meter.idle = meter.spent_s(&start)? / start.at.elapsed().as_secs_f64();
        Ok(meter)
    }

    pub(super) fn start(&self) -> Result<Start> {
        Ok(Start {
            at: Instant::now(),
            cpu: self.cpu()?,
        })
    }

    /// Returns the CPU time that the process has used since `start` beyond its idle CPU time, in seconds.
    ///
    /// The idle CPU time is what the process uses in the same period without clients, calculated from the
    /// measurement in [`Meter::of_idle`].
    pub(super) fn spent_s(&self, start: &Start) -> Result<f64> {
        let cpu = self.cpu()?.saturating_sub(start.cpu).as_secs_f64();
        let idle = self.idle * start.at.elapsed().as_secs_f64();
        Ok((cpu - idle).max(0.0))
    }

    /// Waits until the process uses almost no CPU time.
    ///
    /// Returns after [`SILENCE_MAX`] without an error, even if the process is still busy.
    pub(super) async fn settle(&self) -> Result<()> {
        let begun = Instant::now();
        let mut quiet = 0;
        let mut before = self.cpu()?;
        while quiet < QUIET_INTERVALS && begun.elapsed() < SILENCE_MAX {
            sleep(INTERVAL).await;
            let now = self.cpu()?;
            quiet = if now.saturating_sub(before) <= QUIET {
                quiet + 1
            } else {
                0
            };
            before = now;
        }
        Ok(())
    }

    /// Resets the peak resident memory (`VmHWM`) of the process to its current resident memory.
    pub(super) fn reset_peak(&self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.id);
        // proc(5): 5 resets the peak resident set size.
        fs::write(&path, "5").with_context(|| format!("can't write {path}"))
    }

    /// Returns the peak resident memory of the process since the last [`reset_peak`](Self::reset_peak), in
    /// KiB.
    pub(super) fn peak_kib(&self) -> Result<u64> {
        let status = self.read("status")?;
        let peak = peak_of(&status);
        peak.with_context(|| format!("/proc/{}/status has no VmHWM", self.id))
    }

    /// Returns the user and system CPU time of the process since its start.
    fn cpu(&self) -> Result<Duration> {
        let stat = self.read("stat")?;
        let ticks = ticks_of(&stat);
        let ticks = ticks.with_context(|| format!("/proc/{}/stat: {stat}", self.id))?;
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_millis(ticks * 1_000 / per_second))
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.id);
        fs::read_to_string(&path).with_context(|| format!("can't read {path}"))
    }
}

/// Returns the CPU time in `stat`, the content of `/proc/PID/stat`, in clock ticks.
fn ticks_of(stat: &str) -> Option<u64> {
    // The name, the second field, may have spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_user_and_system() {
        let stat = "77 (a (b) c) S 1 77 77 0 -1 4194560 900 0 3 0 120 34 5 6 20 0 9 0 1234 1 2\n";
        assert_eq!(ticks_of(stat), Some(154));
        assert_eq!(ticks_of("77 (a"), None);
    }

    #[test]
    fn the_peak_is_in_kib() {
        let status = "Name:\tx\nVmHWM:\t  170204 kB\nVmRSS:\t   1016 kB\n";
        assert_eq!(peak_of(status), Some(170_204));
        assert_eq!(peak_of("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        let none = Meter { id: 0, idle: 0.0 };
        assert!(none.start().is_err());
    }
}
