//! Runs the informers under failures for a time, and checks them after each failure.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Parser;
use fastrand::Rng;
use harness::report::say;
use kube_client::Client;
use tokio::{
    runtime::Handle,
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    time::{Instant, sleep},
};

use crate::{
    cluster::Cluster,
    failure::{Failure, Parts},
    figures::{Figures, HEADER, Requests},
    fleet::{Fleet, Settled},
    machine::{check_open_files, resident_mib, sockets, used_percent},
    setback::Setbacks,
    writer::Writers,
};

/// Maximum time until all informers have recovered, from the end of a failure or from the start of the
/// informers.
///
/// An informer has recovered if its watches are open and its cache matches the server. The objects that its
/// handlers have received must match too.
///
/// A pause of a reflector lasts up to a minute, and a silent watch counts as broken after three minutes.
const EQUAL_WITHIN: Duration = Duration::from_secs(300);

/// Pause before each failure and before each measurement of the CPU time. During the pause, the writers
/// continue to write.
const CALM: Duration = Duration::from_secs(5);

/// Minimum idle share of the machine's CPU time before the first failure, in percent.
///
/// The run reduces its rate of writes until this share is idle, or until the rate is [`RATE_MIN`].
const IDLE_MIN: u64 = 20;

/// Time for one measurement of the CPU time.
const MEASURED: Duration = Duration::from_secs(5);

/// Lowest rate of writes per second.
const RATE_MIN: f64 = 5.0;

/// Maximum resident memory of this process after an injected failure.
///
/// The unit is percent of the resident memory after the first injected failure of the run.
const RESIDENT_MAX_PERCENT: u64 = 150;

/// Maximum time from the stop of the informers until their tasks have ended.
///
/// The same maximum then applies again, until this process has no more tasks and sockets than before the
/// start of the informers.
const ENDED_WITHIN: Duration = Duration::from_secs(30);

/// Run informers against a real kube-apiserver and etcd that fail, and check them after each failure
#[derive(Debug, Parser)]
#[command(name = "cargo xtask soak", bin_name = "cargo xtask soak")]
pub(crate) struct Arguments {
    /// Number of minutes during which new failures are injected; at least one failure is injected
    #[arg(long)]
    minutes: u64,
    /// Seed for the options of the informers, the writes and the times of the failures; random if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Number of large informers
    #[arg(long, default_value_t = 50)]
    informers: usize,
    /// Number of small informers, each with the pods of one node
    #[arg(long, default_value_t = 1000)]
    small: usize,
    /// Maximum writes per second; fewer if the run would use more than 80 % of the machine's CPU time
    #[arg(long, default_value_t = 200.0)]
    writes: f64,
    /// Inject only the failures whose names contain this text
    #[arg(long)]
    only: Option<String>,
}

struct Soak {
    cluster: Cluster,
    fleet: Fleet,
    writers: Writers,
    client: Client,
    setbacks: Setbacks,
    rng: Rng,
    violations: Vec<String>,
    /// Memory after the first failure.
    resident_mib: Option<u64>,
    /// Number of successful writes up to the last failure.
    done: u64,
}

impl Arguments {
    /// Returns whether all checks passed.
    ///
    /// # Errors
    /// Returns an error if the run can't be completed.
    pub(crate) fn run(&self) -> Result<bool> {
        // Each HTTP/1.1 watch has a socket here, one in the proxy, and the proxy another one to the server.
        check_open_files(1000 + 30 * self.informers as u64 + self.small as u64)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            // The servers end, and their folder is removed, when the run is dropped.
            tokio::select! {
                biased;
                result = self.soak() => result,
                _ = terminate.recv() => bail!("terminated"),
                _ = ctrl_c() => bail!("interrupted"),
            }
        })
    }

    async fn soak(&self) -> Result<bool> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        say(&format!("seed {seed}"));
        ensure!(
            !self.failures().is_empty(),
            "no failure has this name: {:?}",
            self.only
        );
        let mut rng = Rng::with_seed(seed);
        let cluster = Cluster::start().await?;
        let idle = Left::now()?;
        let client = cluster.own_client()?;
        let writers = Writers::start(&client, &mut rng, self.small, self.writes).await?;
        let setbacks = Setbacks::default();
        let started = Instant::now();
        let paused = writers.pause().await;
        let fleet = Fleet::start(&cluster, &setbacks, &mut rng, (self.informers, self.small))?;
        let settled = fleet.settle(&client, EQUAL_WITHIN).await?;
        let sources = fleet.wires.len();
        say(&format!(
            "{} informers with {sources} sources have {} objects after {:.1?}",
            fleet.subjects.len(),
            settled.objects,
            started.elapsed()
        ));
        drop(paused);
        let mut soak = Soak {
            cluster,
            fleet,
            writers,
            client,
            setbacks,
            rng,
            violations: settled.first,
            resident_mib: None,
            done: 0,
        };
        let rate = soak.calibrate(self.writes).await?;
        let figures = soak.fail_for(self).await?;
        let (done, failed) = soak.writers.counts();
        let events = soak.fleet.events();
        let violations = soak.end(&idle).await?;
        say(HEADER);
        for each in &figures {
            say(&each.row());
        }
        say(&format!(
            "seed {seed}: {} failures, {done} writes ({failed} more failed) at {rate:.0}/s, {events} events, {} violations",
            figures.len(),
            violations.len()
        ));
        for violation in &violations {
            say(&format!("violation: {violation}"));
        }
        Ok(violations.is_empty())
    }

    /// Returns the failures of a run, which are repeated.
    fn failures(&self) -> Vec<Failure> {
        let only = self.only.as_deref().unwrap_or_default();
        let chosen = Failure::ALL
            .iter()
            .filter(|each| each.name().contains(only));
        chosen.copied().collect()
    }
}

impl Soak {
    /// Lowers the rate of writes from `rate` until the machine sustains it, or until it is [`RATE_MIN`].
    /// Returns the resulting rate.
    ///
    /// The machine sustains a rate if the writers reach more than 90 % of it, and at least [`IDLE_MIN`]
    /// percent of the CPU time is idle.
    async fn calibrate(&mut self, mut rate: f64) -> Result<f64> {
        loop {
            // Ends the effects of the start and of the last rate.
            sleep(CALM).await;
            let (before, _) = self.writers.counts();
            let plane = &self.cluster.plane;
            let servers = [plane.api_server_id(), plane.etcd_id()];
            let used = used_percent(MEASURED, &servers).await?;
            let written = rate_of(self.writers.counts().0 - before, MEASURED);
            let memory = resident_mib()?;
            say(&format!(
                "{written:.0} writes/s of {rate:.0} use {used} % of the machine's CPU time; {memory} MiB"
            ));
            let enough = used + IDLE_MIN <= 100 && written > 0.9 * rate;
            if enough || rate <= RATE_MIN {
                return Ok(rate);
            }
            rate = (rate * 0.6).max(RATE_MIN);
            self.writers.set_rate(rate);
        }
    }

    /// Injects failures until the time is over.
    async fn fail_for(&mut self, arguments: &Arguments) -> Result<Vec<Figures>> {
        let failures = arguments.failures();
        let until = Instant::now() + Duration::from_secs(60 * arguments.minutes);
        let mut figures = Vec::new();
        for failure in failures.iter().cycle() {
            if !figures.is_empty() && Instant::now() > until {
                break;
            }
            sleep(CALM).await;
            let figure = self.fail(*failure).await?;
            say(&figure.line());
            figures.push(figure);
        }
        Ok(figures)
    }

    /// Injects one failure, waits until all informers watch and match the server, and then checks the
    /// informers. Stops waiting after [`EQUAL_WITHIN`].
    async fn fail(&mut self, failure: Failure) -> Result<Figures> {
        let wires = &self.fleet.wires;
        let before: Vec<usize> = wires.iter().map(|wire| wire.count()).collect();
        let begun = Instant::now();
        let parts = Parts {
            cluster: &mut self.cluster,
            client: &self.client,
            writers: &self.writers,
            wires,
            setbacks: &self.setbacks,
            rng: &mut self.rng,
        };
        let paused = failure.inject(parts).await?;
        let (healed, back) = (begun.elapsed(), Instant::now());
        let paused = match paused {
            Some(paused) => paused,
            None => self.writers.pause().await,
        };
        let settled = self.fleet.settle(&self.client, EQUAL_WITHIN).await?;
        let equal = back.elapsed();
        let requests = Requests::since(&self.fleet.wires, &before);
        let audited = self.cluster.logs.read(&self.fleet.by_name)?;
        let resident_mib = resident_mib()?;
        self.setbacks.set(false);
        let mut found = audited.wrong;
        let sources = self.fleet.wires.len();
        found.extend(failure.missing_effect(requests.reconnected, requests.reasons, sources));
        if settled.objects == 0 {
            found.push("the server has no objects".to_owned());
        }
        let (done, _) = self.writers.counts();
        if done == self.done {
            found.push("no write has succeeded since the last failure".to_owned());
        }
        self.done = done;
        if failure.breaks_connections() && !requests.is_spread() {
            let (busiest, reconnected) = (requests.busiest, requests.reconnected);
            found.push(format!(
                "{busiest} of {reconnected} sources reconnected at once"
            ));
        }
        self.check(failure, &settled, found, resident_mib);
        drop(paused);
        Ok(Figures {
            name: failure.name(),
            healed,
            equal,
            requests,
            audited: audited.requests,
            statuses: audited.statuses,
            objects: settled.objects,
            resident_mib,
        })
    }

    /// Checks the informers after a failure, and records all violations.
    ///
    /// `found` contains the violations that the caller has already found.
    fn check(
        &mut self,
        failure: Failure,
        settled: &Settled,
        mut found: Vec<String>,
        resident_mib: u64,
    ) {
        if settled.differing > 0 {
            let differing = settled.differing;
            found.push(format!(
                "{differing} informers differ after {EQUAL_WITHIN:?}"
            ));
            found.extend(settled.first.iter().cloned());
        }
        found.extend(self.fleet.wrong());
        found.extend(self.fleet.wires.iter().flat_map(|wire| wire.unjustified()));
        let first = *self.resident_mib.get_or_insert(resident_mib);
        if resident_mib * 100 > first * RESIDENT_MAX_PERCENT {
            found.push(format!("memory grew from {first} to {resident_mib} MiB"));
        }
        for each in found {
            let line = format!("{}: {each}", failure.name());
            say(&format!("violation: {line}"));
            self.violations.push(line);
        }
    }

    /// Stops the informers, the writers and the servers, and returns all violations.
    ///
    /// Also checks that this process then has no more tasks and sockets than `idle`, the numbers from before
    /// the informers were started.
    async fn end(self, idle: &Left) -> Result<Vec<String>> {
        let mut violations = self.violations;
        let found = self.fleet.stop(ENDED_WITHIN).await;
        violations.extend(found.iter().map(|found| format!("at the end: {found}")));
        drop((self.writers, self.client));
        let until = Instant::now() + ENDED_WITHIN;
        while !idle.holds()? && Instant::now() < until {
            sleep(Duration::from_millis(100)).await;
        }
        if !idle.holds()? {
            let now = Left::now()?;
            violations.push(format!("{now:?} remain, before the informers {idle:?}"));
        }
        if let Err(error) = self.cluster.end() {
            violations.push(format!("{error:#}"));
        }
        Ok(violations)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn rate_of(count: u64, period: Duration) -> f64 {
    count as f64 / period.as_secs_f64()
}

/// The tasks and sockets of this process.
#[derive(Debug)]
struct Left {
    tasks: usize,
    sockets: usize,
}

impl Left {
    fn now() -> Result<Self> {
        Ok(Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            sockets: sockets()?,
        })
    }

    /// Returns whether this process now has at most as many tasks, and at most as many sockets, as `self`
    /// recorded.
    fn holds(&self) -> Result<bool> {
        let now = Self::now()?;
        Ok(now.tasks <= self.tasks && now.sockets <= self.sockets)
    }
}
