//! Runs and measures the phases of a measured program: the sync, a pause, the watch phase and the relist
//! phase.
//!
//! Guarantees: all measured Rust programs run the same phases. During a phase, the process runs only the
//! informer, its handler and the measurement.
//!
//! The measured program starts the informer before it calls [`observe()`].

use std::{io::Write as _, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    flags::{Flags, Handler},
    line::Line,
    process::{Memory, cpu_time, reset_peak},
    source::{Neutral, Source},
    told::Told,
};

/// Duration of the pause between the sync and the measurement of the steady resident memory.
///
/// Programs free their buffers during the pause.
pub const SETTLE: Duration = Duration::from_secs(2);

/// Interval at which the relist phase checks whether the client has started a new watch.
const ASK: Duration = Duration::from_millis(50);

/// Maximum time that the relist phase waits for the client's new watch.
///
/// The value is twice the longest backoff of a measured client, which is one minute.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Wall time and CPU time at the start of a measured phase.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    at: Instant,
    cpu: Duration,
}

impl Start {
    /// Starts a measurement of wall time and CPU time.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "the value depends on the current time"
    )]
    pub fn new() -> Self {
        Self {
            at: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// Returns the wall time and the CPU time used since the start of the phase, both in seconds.
    #[must_use]
    pub fn spent(&self) -> (f64, f64) {
        let cpu = cpu_time().saturating_sub(self.cpu);
        (self.at.elapsed().as_secs_f64(), cpu.as_secs_f64())
    }
}

/// Waits for the sync, measures the selected phases, and prints the result as a line of JSON.
///
/// The caller must create `start` before it creates the client. `synced` must complete only after the handler
/// has called [`Told::added`] for each object of the initial list.
///
/// # Errors
/// Returns an error if the sync or a phase fails, or if the initial list is empty.
pub async fn observe(
    flags: &Flags,
    told: &Told,
    start: Start,
    synced: impl Future<Output = Result<()>>,
) -> Result<()> {
    let source = Source::new(flags.source()?)?;
    synced.await?;
    let (sync_s, sync_cpu_s) = start.spent();
    let peak_kib = Memory::read()?.peak;
    source.synced()?;
    sleep(SETTLE).await;
    let mut line = Line {
        objects: told.additions(),
        sync_s,
        sync_cpu_s,
        peak_kib,
        steady_kib: Memory::read()?.resident,
        events: flags.events,
        rate: flags.rate,
        relists: flags.relist,
        ..Line::default()
    };
    ensure!(line.objects > 0, "the source has no objects");
    if flags.events > 0 {
        watch(flags, told, &source, &mut line).await?;
    }
    if flags.relist > 0 {
        relist(flags.relist, told, source.neutral()?, &mut line).await?;
    }
    let line = serde_json::to_string(&line)?;
    writeln!(std::io::stdout(), "{line}").context("standard output is closed")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of events are far below 2^52"
)]
async fn watch(flags: &Flags, told: &Told, source: &Source, line: &mut Line) -> Result<()> {
    told.latencies().clear();
    reset_peak()?;
    let last = told.updates() + flags.events;
    let start = Start::new();
    let (emitted, told_all) = tokio::join!(
        source.emit(flags.events, flags.rate),
        told.wait_for_updates(last)
    );
    let (took, cpu) = start.spent();
    emitted.and(told_all)?;
    line.watch_peak_kib = Some(Memory::read()?.peak);
    line.events_per_s = Some(flags.events as f64 / took);
    line.cpu_us_per_event = Some(cpu * 1e6 / flags.events as f64);
    if flags.handler == Handler::Objects {
        let mut latencies = told.latencies();
        line.p50_us = latencies.percentile(50);
        line.p99_us = latencies.percentile(99);
        line.max_us = latencies.percentile(100);
    }
    Ok(())
}

/// Measures `times` relists, and writes the means and the peak memory to `line`.
#[expect(
    clippy::cast_precision_loss,
    reason = "the number of relists is far below 2^52"
)]
async fn relist(times: u64, told: &Told, source: &Neutral, line: &mut Line) -> Result<()> {
    reset_peak()?;
    let start = Start::new();
    for _ in 0..times {
        let (updates, watches) = (told.updates(), source.watches().await?);
        source.expire().await?;
        let again = async {
            while source.watches().await? == watches {
                sleep(ASK).await;
            }
            anyhow::Ok(())
        };
        timeout(SILENCE_MAX, again)
            .await
            .context("no new watch after the revision expired")??;
        // The client delivers the changes of the new list before this event.
        source.emit(1, 0).await?;
        told.wait_for_updates(updates + 1).await?;
    }
    let (took, cpu) = start.spent();
    line.relist_s = Some(took / times as f64);
    line.relist_cpu_s = Some(cpu / times as f64);
    line.relist_peak_kib = Some(Memory::read()?.peak);
    Ok(())
}
