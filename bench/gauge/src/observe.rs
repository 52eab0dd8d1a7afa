//! What a measured program goes through, phase by phase.
//!
//! Guarantees: the same for every Rust program: sync, a pause, watch, relists; what a phase costs is
//! taken between its beginning and its end, and nothing else is done meanwhile.

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

/// How long nothing happens between the sync and the measurement of steady memory: time for buffers to
/// be dropped and, in Go, for a collection that is under way to end.
pub const SETTLE: Duration = Duration::from_secs(2);

/// How often the source is asked whether there is a watch again; it costs a program a millisecond of CPU time
/// a second.
const ASK: Duration = Duration::from_millis(50);

/// Within this a client must have a watch again: its pause after a failure is a minute at most.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The beginning of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    at: Instant,
    cpu: Duration,
}

impl Start {
    /// Now.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a beginning is no default")]
    pub fn new() -> Self {
        Self {
            at: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// Seconds and CPU seconds since.
    #[must_use]
    pub fn spent(&self) -> (f64, f64) {
        let cpu = cpu_time().saturating_sub(self.cpu);
        (self.at.elapsed().as_secs_f64(), cpu.as_secs_f64())
    }
}

/// Waits until the informer that has begun at `start` is synced, goes through the other phases that the
/// flags name, and prints the line.
///
/// `synced` ends when the informer says that it is synced, and its handler has been told all.
///
/// # Errors
/// The source does not do as it is told, an event is not told, or memory can't be read.
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
    writeln!(std::io::stdout(), "{line}").context("nobody reads the line")
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

/// An event is sent when there is a watch again, and told after all that came of the relist; so no client
/// need say when that was over.
#[expect(
    clippy::cast_precision_loss,
    reason = "nobody relists more often than 2^52 times"
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
            .context("nobody watches again")??;
        source.emit(1, 0).await?;
        told.wait_for_updates(updates + 1).await?;
    }
    let (took, cpu) = start.spent();
    line.relist_s = Some(took / times as f64);
    line.relist_cpu_s = Some(cpu / times as f64);
    line.relist_peak_kib = Some(Memory::read()?.peak);
    Ok(())
}
