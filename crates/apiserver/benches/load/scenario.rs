//! Runs the scenarios of the load benchmark and compares the measurements with the limits.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube_informer_apiserver::Server;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, interval_at};

use crate::child::{Cpu, Subject};
use crate::client::{Seen, Watcher, Writer};

const SECOND: Duration = Duration::from_secs(1);

/// Maximum lag of an event: the time from before the write request until the watcher has read the event.
const LAG_MAX: Duration = Duration::from_secs(1);

/// Maximum time from the last write until all watchers have received all events.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum CPU time of the server per delivered event, as a multiple of that of a loop which only writes.
///
/// The server's mean CPU time per event is measured for each second. The limit applies to the median of these
/// means. A ratio, because machines differ: 1.6 on one, 1.9 on another, where each event has 1.6 KB instead of 1 KB.
const DELIVERY_MAX: f64 = 2.5;

/// Minimum ratio of the measured write rate to the requested rate.
const RATE_MIN: f64 = 0.98;

pub(crate) struct Options {
    /// Duration of the writes, in seconds.
    pub(crate) seconds: u32,
    /// Whether the results are written to `LOAD.md`.
    pub(crate) write: bool,
}

/// The load of a run; `rate` is in writes per second.
#[derive(Clone)]
struct Load {
    watchers: u32,
    objects: u32,
    rate: u32,
    /// Whether each watcher selects the pods of one node.
    by_node: bool,
    /// Whether the server records the owners of fields.
    managed_fields: bool,
}

/// The measurements of a run against the API server.
struct Figures {
    writes: u32,
    deliveries: usize,
    cpu: Cpu,
    took: Duration,
    /// Mean CPU microseconds per delivered event: one value per second, sorted from smallest to largest.
    each_second: Vec<f64>,
    /// Lags of all delivered events in microseconds, in ascending order.
    lags: Vec<u32>,
    peak_kib: u64,
}

/// The requirement and the result of a scenario, for one row of `LOAD.md`.
pub(crate) struct Row {
    pub(crate) goal: String,
    pub(crate) measured: String,
    /// The reason why the requirement is not met, or `None` if it is met.
    pub(crate) missed: Option<String>,
}

/// Measures the lag of events and the server's CPU time at 100 writes/s with 1,000 watchers of all pods.
///
/// For comparison, also measures the CPU time of a loop that only writes the events to sockets.
pub(crate) async fn everything(options: &Options) -> anyhow::Result<Row> {
    let load = Load {
        watchers: 1_000,
        objects: 100,
        rate: 100,
        by_node: false,
        managed_fields: true,
    };
    let figures = load.run(options.seconds).await?;
    let bare = load.run_bare(options.seconds).await?;
    let seconds = &figures.each_second;
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    let missed = figures.missed(&load);
    Ok(Row {
        goal: format!(
            "{} watchers of everything at {} writes/s: at most {DELIVERY_MAX} times the CPU of a loop that only writes, none over 1 s behind",
            load.watchers, load.rate,
        ),
        measured: format!(
            "{median:.1} µs per delivery in the median second ({:.1} to {:.1} in the others; {bare:.1} where a loop does nothing but write), {figures}",
            seconds.first().copied().unwrap_or_default(),
            seconds.last().copied().unwrap_or_default(),
        ),
        missed: missed.or_else(|| {
            (median > DELIVERY_MAX * bare).then(|| "a delivery costs too much".to_owned())
        }),
    })
}

/// Measures lag and CPU time at 500 writes/s with 10,000 watchers. Each watcher selects the pods of one node.
///
/// For comparison, also measures the CPU time without watchers, and without owners of fields.
pub(crate) async fn by_node(options: &Options) -> anyhow::Result<Row> {
    let load = Load {
        watchers: 10_000,
        objects: 10_000,
        rate: 500,
        by_node: true,
        managed_fields: true,
    };
    let alone = Load {
        watchers: 0,
        ..load.clone()
    };
    let unowned = Load {
        managed_fields: false,
        ..alone.clone()
    };
    let figures = load.run(options.seconds).await?;
    let alone_figures = alone.run(options.seconds).await?;
    let unowned_figures = unowned.run(options.seconds).await?;
    Ok(Row {
        goal: format!(
            "{} watchers by `spec.nodeName`, one node each, at {} writes/s: none over 1 s behind",
            load.watchers, load.rate,
        ),
        measured: format!(
            "{:.0} µs of CPU per write with its delivery ({:.0} without watchers, {:.0} without watchers and `managedFields`), {figures}",
            micros_each(figures.cpu, figures.writes as usize),
            micros_each(alone_figures.cpu, alone_figures.writes as usize),
            micros_each(unowned_figures.cpu, unowned_figures.writes as usize),
        ),
        missed: figures
            .missed(&load)
            .or_else(|| alone_figures.missed(&alone)),
    })
}

/// Measures the peak memory of a server in which 1,000,000 pods are stored.
pub(crate) fn stored() -> anyhow::Result<Row> {
    const OBJECTS: u32 = 1_000_000;
    const KIB_MAX: u64 = 3_000_000_000 / 1024;
    let began = Instant::now();
    let subject = Subject::start(OBJECTS, true)?;
    let took = began.elapsed();
    let kib = subject.peak_kib()?;
    Ok(Row {
        goal: format!("{OBJECTS} pods of 1 KB: under 3 GB of memory"),
        measured: format!(
            "{} MiB at the peak, created in {:.1} s",
            kib / 1024,
            took.as_secs_f64()
        ),
        missed: (kib >= KIB_MAX).then(|| "they take too much memory".to_owned()),
    })
}

/// Returns the mean CPU time of `count` operations in microseconds.
fn micros_each(cpu: Cpu, count: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let count = count as f64;
    cpu.all().as_secs_f64() * 1e6 / count
}

/// Measures the time to build a server without a socket.
pub(crate) fn build() -> Row {
    const SERVERS: usize = 100;
    const MAX: Duration = Duration::from_millis(10);
    let build = |_| {
        let began = Instant::now();
        drop(std::hint::black_box(Server::builder().build()));
        began.elapsed()
    };
    let mut took: Vec<Duration> = (0..SERVERS).map(build).collect();
    let first = took[0];
    took.sort_unstable();
    let longest = took[SERVERS - 1];
    Row {
        goal: format!("`Server::builder().build()` in under {MAX:?}"),
        measured: format!(
            "{:.2?} in the median of {SERVERS}, {longest:.2?} at most, {first:.2?} the first",
            took[SERVERS / 2]
        ),
        missed: (longest >= MAX).then(|| "a server takes too long to build".to_owned()),
    }
}

impl Load {
    async fn run(&self, seconds: u32) -> anyhow::Result<Figures> {
        LocalSet::new().run_until(self.follow(seconds)).await
    }

    /// Returns the CPU microseconds per event of a loop that only writes the events to sockets.
    async fn run_bare(&self, seconds: u32) -> anyhow::Result<f64> {
        LocalSet::new().run_until(self.follow_bare(seconds)).await
    }

    async fn follow_bare(&self, seconds: u32) -> anyhow::Result<f64> {
        let events = self.rate * seconds;
        let subject = Subject::start_bare(self.watchers, events, self.rate)?;
        let seen = Seen::new();
        let mut following = JoinSet::new();
        for _ in 0..self.watchers {
            let watcher = Watcher::open(subject.address, "").await?;
            following.spawn_local(watcher.follow(Rc::clone(&seen), events.into()));
        }
        let cpu = subject.cpu()?;
        for watcher in following.join_all().await {
            watcher?;
        }
        let deliveries = seen.lags.borrow().len();
        Ok(micros_each(subject.cpu()?.since(cpu), deliveries))
    }

    async fn follow(&self, seconds: u32) -> anyhow::Result<Figures> {
        let subject = Subject::start(self.objects, self.managed_fields)?;
        let writes = self.rate * seconds;
        let seen = Seen::new();
        let mut following = JoinSet::new();
        for number in 0..self.watchers {
            let selector = if self.by_node {
                format!("&fieldSelector=spec.nodeName%3Dnode-{number:07}")
            } else {
                String::new()
            };
            let watcher = Watcher::open(subject.address, &selector).await?;
            let events = if self.by_node {
                (writes + self.objects - 1 - number) / self.objects
            } else {
                writes
            };
            following.spawn_local(watcher.follow(Rc::clone(&seen), events.into()));
        }
        let (began, cpu) = (Instant::now(), subject.cpu()?);
        let load = Writer {
            address: subject.address,
            began: seen.began,
            objects: self.objects,
            rate: self.rate,
        };
        let mut writing = tokio::task::spawn_blocking(move || load.write(writes));
        let mut each_second = Vec::new();
        let mut ticks = interval_at(Instant::now() + SECOND, SECOND);
        let mut last = (cpu, 0);
        loop {
            tokio::select! {
                biased;
                written = &mut writing => break written??,
                _ = ticks.tick() => {
                    let now = (subject.cpu()?, seen.lags.borrow().len());
                    if now.1 > last.1 {
                        each_second.push(micros_each(now.0.since(last.0), now.1 - last.1));
                    }
                    last = now;
                }
            }
        }
        each_second.sort_unstable_by(f64::total_cmp);
        let all_told = tokio::time::timeout(TIMEOUT, following.join_all());
        let all_told = all_told.await.context("not all events were delivered")?;
        let (took, cpu) = (began.elapsed(), subject.cpu()?.since(cpu));
        for watcher in all_told {
            ensure!(
                watcher?.is_silent(),
                "a watch received too many events, or has ended"
            );
        }
        let mut lags = seen.lags.take();
        lags.sort_unstable();
        Ok(Figures {
            writes,
            deliveries: lags.len(),
            cpu,
            took,
            each_second,
            lags,
            peak_kib: subject.peak_kib()?,
        })
    }
}

impl Figures {
    fn lag_ms(&self, per_mille: usize) -> f64 {
        let at = (self.lags.len() * per_mille / 1000).min(self.lags.len().saturating_sub(1));
        self.lags
            .get(at)
            .map_or(0.0, |lag| f64::from(*lag) / 1000.0)
    }

    fn rate(&self) -> f64 {
        f64::from(self.writes) / self.took.as_secs_f64()
    }

    /// Returns a message if the write rate was below the minimum or a lag was above the maximum.
    fn missed(&self, load: &Load) -> Option<String> {
        if self.rate() < f64::from(load.rate) * RATE_MIN {
            return Some(format!(
                "{:.0} instead of {} writes/s were done",
                self.rate(),
                load.rate
            ));
        }
        let latest = Duration::from_micros(self.lags.last().copied().unwrap_or_default().into());
        (latest > LAG_MAX).then(|| format!("a delivery came {latest:?} late"))
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |cpu: Duration| cpu.as_secs_f64() / self.took.as_secs_f64() * 100.0;
        write!(
            f,
            "{} deliveries in {:.1} s; lag {:.1} ms in the median, {:.1} at the 99th percentile, {:.1} at most; {:.0} % of a core ({:.0} user, {:.0} system), {} MiB at the peak",
            self.deliveries,
            self.took.as_secs_f64(),
            self.lag_ms(500),
            self.lag_ms(990),
            self.lag_ms(1000),
            percent(self.cpu.all()),
            percent(self.cpu.user),
            percent(self.cpu.system),
            self.peak_kib / 1024,
        )
    }
}
