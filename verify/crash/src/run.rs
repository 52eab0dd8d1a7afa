//! Runs a server with one data directory, kills and restarts the server many times, and checks its objects
//! after each restart.
//!
//! A "life", in the names of this module, is one server process, from its start to its kill.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::Parser;
use fastrand::Rng;
use harness::{
    coverage::Counts,
    planted::{Planted as _, Search, find_each},
    report::say,
};
use kube_client::{Client, Config};
use kube_informer::transport::Encoding;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    child::{Ready, Running},
    informed::{self, Informed},
    object::KINDS,
    planted::Bug,
    watcher::{self, EVENT, RESUMED, TOO_OLD, Watcher},
    writer::{self, Notes, Writer},
};

/// Number of clients that write concurrently to each server process.
const WRITERS: usize = 4;

/// Number of writes that each writer completes before a [`Moment::Calm`] kill, at which no write is pending.
const CALM_WRITES: usize = 10;

/// Maximum number of kills until the checks must detect a planted server bug.
const BUG_LIVES: u64 = 60;

/// Number of kills in a full run. A run with at least this number must increase every counter in
/// [`REQUIRED`].
const FULL_RUN: u64 = 100;

/// During one of every `BLOATED_EVERY` server processes, a client makes the database file large and mostly
/// empty.
///
/// The following server processes compact the file during their start.
const BLOATED_EVERY: u64 = 100;

/// Number of server processes that are killed during their start, after the database file was made large. The
/// kills can interrupt the compaction of the file.
const BLOATED_STARTS: u64 = 8;

/// Maximum time from a server process's start to its kill.
const LIFE_MAX: Duration = Duration::from_secs(120);

/// During one of every `COMPARED_EVERY` server processes, the informers are compared with the acknowledged
/// writes.
///
/// The comparison is omitted if the server process is killed during its start.
const COMPARED_EVERY: u64 = 10;

/// Kill a server with a data directory during writes, and check the stored objects after each restart
#[derive(Debug, Parser)]
#[command(name = "cargo xtask crash", bin_name = "cargo xtask crash")]
pub(crate) struct Arguments {
    /// Number of times to kill and restart the server
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Seed for writes and kill times; random if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Run once with each simulated server bug, and fail if the checks miss one; the only value is `all`
    #[arg(long, value_parser = ["all"])]
    planted: Option<String>,
}

/// The time at which a server process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The process is killed this long after its start, whether or not its server listens.
    Starting(Duration),
    /// Killed after the server has acknowledged this number of writes.
    Acknowledged(usize),
    /// The process is killed this long after its server has started to listen.
    Within(Duration),
    /// Killed after every writer has completed [`CALM_WRITES`] writes.
    Calm,
}

const KILLED_AT_START: &str = "kills during a start";
const COMPACTED: &str = "compacted files";
const ACKNOWLEDGED: &str = "acknowledged writes";
const UNANSWERED: &str = "writes stored without an answer";
const INFORMED: &str = "events of the informer";

/// Counters that must have increased in a run of at least [`FULL_RUN`] kills.
const REQUIRED: [&str; 8] = [
    KILLED_AT_START,
    COMPACTED,
    ACKNOWLEDGED,
    UNANSWERED,
    EVENT,
    RESUMED,
    TOO_OLD,
    INFORMED,
];

/// State of a run: the data directory, and clients that outlive each server process.
struct Lives {
    directory: PathBuf,
    address: SocketAddr,
    notes: Arc<Notes>,
    rng: Rng,
    watchers: Vec<Watcher>,
    /// One informer for each encoding.
    informed: Vec<Informed>,
    seen: Counts<&'static str>,
    bug: Option<Bug>,
}

impl Arguments {
    /// Kills and restarts the server `kills` times, and checks the stored objects after each restart.
    ///
    /// With `planted`, instead performs one run of at most [`BUG_LIVES`] kills for each simulated server bug.
    ///
    /// Returns false if a counter in [`REQUIRED`] did not increase in a run of at least [`FULL_RUN`] kills,
    /// or if the checks did not detect a simulated bug.
    ///
    /// # Errors
    /// Without `planted`, returns an error if a check fails. With `planted`, a failed check counts as the
    /// detection of the bug.
    pub(crate) fn run(&self) -> Result<bool> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
        let runtime = tokio::runtime::Runtime::new()?;
        if self.planted.is_some() {
            return find_each(Bug::ALL.iter().copied(), |bug| {
                let lives = Lives::new(seed, Some(bug))?;
                let directory = lives.directory.clone();
                let Err(error) = runtime.block_on(lives.run(BUG_LIVES)) else {
                    let within = format!("{BUG_LIVES} lives of seed {seed}");
                    return Ok(Search::Missed { within });
                };
                std::fs::remove_dir_all(directory)?;
                let by = format!("seed {seed}");
                let shown = format!("  {}", error.root_cause());
                Ok(Search::Found { by, shown })
            });
        }
        let counts = runtime
            .block_on(Lives::new(seed, None)?.run(self.kills))
            .with_context(|| format!("--kills {} --seed {seed}", self.kills))?;
        let lines: Vec<_> = counts
            .iter()
            .map(|(what, times)| format!("{times} {what}"))
            .collect();
        let lines = lines.join(", ");
        say(&format!("seed {seed}: {} kills: {lines}", self.kills));
        let mut missing = counts.rare(&REQUIRED, 1);
        missing.retain(|_| self.kills >= FULL_RUN);
        for line in &missing {
            say(line);
        }
        Ok(missing.is_empty())
    }
}

impl Lives {
    fn new(seed: u64, bug: Option<Bug>) -> Result<Self> {
        let name = format!("kube-informer-crash-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        Ok(Self {
            directory,
            address: ([127, 0, 0, 1], 0).into(),
            notes: Arc::default(),
            rng: Rng::with_seed(seed),
            watchers: Vec::new(),
            informed: Vec::new(),
            seen: Counts::default(),
            bug,
        })
    }

    async fn run(mut self, kills: u64) -> Result<Counts<&'static str>> {
        for life in 0..kills {
            let moment = self.moment(life);
            let lived = timeout(LIFE_MAX, self.live(moment, life)).await;
            let lived = lived.context("the life takes too long").flatten();
            lived.with_context(|| {
                let directory = self.directory.display();
                format!("life {life}, killed {moment:?}; {directory} is kept")
            })?;
        }
        let mut running = Running::start(&self.directory, self.address)?;
        let ready = timeout(LIFE_MAX, running.ready()).await??;
        self.look(ready).await?;
        self.compare().await?;
        running.kill()?;
        for watcher in std::mem::take(&mut self.watchers) {
            watcher.check(&self.notes)?;
            self.seen.add_all(watcher.seen);
        }
        for informed in std::mem::take(&mut self.informed) {
            self.seen.add(INFORMED, informed.stop().await);
        }
        std::fs::remove_dir_all(&self.directory)?;
        Ok(self.seen)
    }

    fn moment(&mut self, life: u64) -> Moment {
        let since_bloated = life % BLOATED_EVERY;
        if since_bloated == 1 {
            return Moment::Calm;
        }
        if (2..2 + BLOATED_STARTS).contains(&since_bloated) {
            // Compacting takes most of a second.
            return Moment::Starting(Duration::from_millis(self.rng.u64(2..800)));
        }
        match self.rng.usize(..10) {
            // The first start creates the directory and the file.
            _ if life == 0 => Moment::Starting(Duration::from_millis(self.rng.u64(2..20))),
            0 | 1 => Moment::Starting(Duration::from_micros(self.rng.u64(..25_000))),
            2..6 => Moment::Acknowledged(self.rng.usize(..60)),
            6..9 => Moment::Within(Duration::from_micros(self.rng.u64(..50_000))),
            _ => Moment::Calm,
        }
    }

    /// Starts one server process, checks its objects, runs the clients, and kills the process.
    async fn live(&mut self, moment: Moment, life: u64) -> Result<()> {
        let file = self.directory.join("objects.redb");
        let bytes = |file: &Path| std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        let before = bytes(&file);
        let mut running = Running::start(&self.directory, self.address)?;
        if let Moment::Starting(period) = moment {
            sleep(period).await;
            running.kill()?;
            self.seen.count(KILLED_AT_START);
            self.seen.add(COMPACTED, usize::from(bytes(&file) < before));
            return Ok(());
        }
        let client = self.look(running.ready().await?).await?;
        self.seen.add(COMPACTED, usize::from(bytes(&file) < before));
        if life.is_multiple_of(COMPARED_EVERY) {
            self.compare().await?;
        }
        if life % BLOATED_EVERY == 1 {
            writer::bloat(&client, &self.notes).await?;
        }
        let acknowledged = Arc::new(watch::Sender::new(0));
        let left = matches!(moment, Moment::Calm).then_some(CALM_WRITES);
        let mut writers = self.writers(&acknowledged, left)?;
        let mut following = self.followers()?;
        let mut reader = JoinSet::new();
        reader.spawn(writer::read(client, Arc::clone(&self.notes)));
        let mut wanted = acknowledged.subscribe();
        match moment {
            Moment::Acknowledged(count) => {
                let reached = wanted.wait_for(|acknowledged| *acknowledged >= count);
                tokio::select! {
                    biased;
                    reached = reached => drop(reached?),
                    Some(written) = writers.join_next() => {
                        written??;
                        bail!("a write received no response, although the server was not killed");
                    }
                }
            }
            Moment::Within(period) => sleep(period).await,
            Moment::Calm | Moment::Starting(_) => {
                while let Some(written) = writers.join_next().await {
                    written??;
                }
            }
        }
        running.kill()?;
        for tasks in [&mut writers, &mut reader] {
            while let Some(ended) = tasks.join_next().await {
                ended??;
            }
        }
        while let Some(followed) = following.join_next().await {
            self.watchers.push(followed??);
        }
        self.watchers.sort_by_key(Watcher::kind);
        self.find_gap()?;
        self.seen.add(ACKNOWLEDGED, *acknowledged.borrow());
        if let Some(bug) = self.bug {
            bug.spoil(&self.directory, &self.notes.known.lock())?;
        }
        Ok(())
    }

    /// Starts the writers. Each writer ends when the server ends, or after it has sent `left` writes.
    ///
    /// If `left` is `None`, the number of writes is not limited.
    fn writers(
        &mut self,
        acknowledged: &Arc<watch::Sender<usize>>,
        left: Option<usize>,
    ) -> Result<JoinSet<Result<()>>> {
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            let writer = Writer {
                number,
                // A separate client has a separate connection.
                client: self.client()?,
                notes: Arc::clone(&self.notes),
                rng: self.rng.fork(),
                acknowledged: Arc::clone(acknowledged),
                left,
            };
            writers.spawn(writer.storm());
        }
        Ok(writers)
    }

    /// Starts one task per watcher. Each task runs until the server ends, and then returns its watcher.
    fn followers(&mut self) -> Result<JoinSet<Result<Watcher>>> {
        let mut following = JoinSet::new();
        for mut watcher in std::mem::take(&mut self.watchers) {
            let (client, notes) = (self.client()?, Arc::clone(&self.notes));
            following.spawn(async move {
                watcher.follow(&client, &notes).await?;
                Ok(watcher)
            });
        }
        Ok(following)
    }

    /// Checks that the change of each revision was received from a watch, a write or a list.
    ///
    /// Checks only the revisions that all watchers cover. A watcher covers the revisions after its last list,
    /// up to its last event or bookmark.
    ///
    /// This check detects a lost deletion event. [`Watcher::check`] does not detect it, because only the lost
    /// event contains the deletion's revision.
    fn find_gap(&self) -> Result<()> {
        let begun = self.watchers.iter().map(Watcher::begun).max();
        let last = self.watchers.iter().map(Watcher::last).min();
        let revisions = self.notes.revisions.lock();
        let gap = begun
            .zip(last)
            .and_then(|(begun, last)| revisions.gap(begun, last));
        gap.map_or(Ok(()), |gap| {
            Err(anyhow!("no watcher received revision {gap}"))
        })
    }

    /// Checks that a restarted server has all acknowledged writes, and returns a client of the server.
    ///
    /// `ready` contains the server's address and its revision at the start.
    async fn look(&mut self, ready: Ready) -> Result<Client> {
        self.address = ready.address;
        self.notes.revisions.lock().started(ready.revision)?;
        let client = self.client()?;
        let mut stored = Vec::new();
        for kind in 0..KINDS.len() {
            let list = watcher::list(&client, kind).await?;
            let (seen, revision) = list.context("the server does not respond")?;
            ensure!(
                revision == ready.revision,
                "a list is at {revision}, although nothing was written since {}",
                ready.revision
            );
            stored.extend(seen);
        }
        let mut revisions = self.notes.revisions.lock();
        for seen in &stored {
            ensure!(
                seen.revision <= ready.revision,
                "{} is at revision {}, but the server is at {}",
                seen.key,
                seen.revision,
                ready.revision
            );
            revisions.changed(seen.revision, &(seen.key.clone(), Some(seen.value)))?;
        }
        drop(revisions);
        let unanswered = self.notes.known.lock().compare(&stored)?;
        self.seen.add(UNANSWERED, unanswered);
        if self.watchers.is_empty() {
            let new = |kind| Watcher::new(kind, ready.revision, self.bug);
            self.watchers = (0..KINDS.len()).map(new).collect();
        }
        if self.informed.is_empty() {
            for encoding in [Encoding::Json, Encoding::Protobuf] {
                let informed = Informed::start(self.client()?, encoding)?;
                self.informed.push(informed);
            }
        }
        Ok(client)
    }

    /// Waits until each informer's cache and handler have the last acknowledged state of every object.
    ///
    /// Compares only the objects of the kind that the informers watch. No client may write during the call.
    async fn compare(&self) -> Result<()> {
        let states = self.notes.known.lock().of_kind(informed::KIND);
        for informed in &self.informed {
            informed.agrees(&states).await?;
        }
        Ok(())
    }

    fn client(&self) -> Result<Client> {
        let url = format!("http://{}", self.address).parse()?;
        Ok(Client::try_from(Config::new(url))?)
    }
}
