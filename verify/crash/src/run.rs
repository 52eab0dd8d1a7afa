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

use anyhow::{Context as _, Result, bail, ensure};
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
    applier::{Applier, CONFLICT, FORCED, STATUS},
    child::{Ready, Running},
    definition::{self, is_true},
    file::{self, FILE},
    informed::{self, Informed},
    moment::{BLOATED_EVERY, Moment},
    object::{BUILTIN, CUSTOM, DEFINITION, KINDS, Key, Seen},
    owner::Owner,
    planted::Bug,
    probe::{self, EQUAL, REMOVED},
    request::Answer,
    revisions::{Missed, Reason},
    watcher::{self, EVENT, RESUMED, TOO_OLD, Watcher},
    writer::{self, Notes, Writer},
};

/// Number of clients that write objects of built-in kinds concurrently to each server process.
const WRITERS: usize = 4;

/// Number of clients that write the shared objects, in addition to [`WRITERS`] and to one client per custom kind.
const APPLIERS: usize = 2;

/// Number of writes that each writer completes before a [`Moment::Calm`] kill, at which no write is pending.
const CALM_WRITES: usize = 10;

/// Maximum number of kills until the checks must detect a planted server bug.
const BUG_LIVES: u64 = 200;

/// Number of kills in a full run. A run with at least this number must increase every counter in
/// [`REQUIRED`].
const FULL_RUN: u64 = 100;

/// Number of revisions per kill that must have been checked in a run of at least [`FULL_RUN`] kills.
///
/// Measured: 6 to 12.
const CHECKED_PER_KILL: u64 = 2;

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

const KILLED_AT_START: &str = "kills during a start";
const COMPACTED: &str = "compacted files";
const ACKNOWLEDGED: &str = "acknowledged writes";
const UNANSWERED: &str = "writes stored without an answer";
const INFORMED: &str = "events of the informer";
const CHECKED: &str = "revisions of which all were received";
const RECREATED: &str = "definitions created again";
const UNESTABLISHED: &str = "kills before a definition was established";
const HALF_DELETED: &str = "kills during the deletion of a definition";

/// Counters that must have increased in a run of at least [`FULL_RUN`] kills.
///
/// [`UNESTABLISHED`] is not among them, because it occurs only about once in 100 kills. [`CHECKED`] has its own minimum.
const REQUIRED: [&str; 16] = [
    KILLED_AT_START,
    COMPACTED,
    ACKNOWLEDGED,
    UNANSWERED,
    EVENT,
    RESUMED,
    TOO_OLD,
    INFORMED,
    RECREATED,
    HALF_DELETED,
    CONFLICT,
    FORCED,
    STATUS,
    EQUAL,
    REMOVED,
    probe::UNANSWERED,
];

/// The objects that a client writes.
#[derive(Clone, Copy)]
enum Role {
    BuiltIn,
    /// A definition and the objects of its kind, which is an index in [`KINDS`].
    Custom(usize),
    Shared,
}

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
    /// Returns false if a counter in [`REQUIRED`] did not increase in a run of at least [`FULL_RUN`] kills, if fewer
    /// revisions than [`CHECKED_PER_KILL`] were checked in such a run, or if the checks did not detect a simulated bug.
    ///
    /// # Errors
    /// Without `planted`, returns an error if a check fails. With `planted`, a failed check counts as the
    /// detection of the bug if its message contains [`Bug::symptom`].
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
                if !format!("{error:#}").contains(bug.symptom()) {
                    let within =
                        format!("seed {seed}, which fails otherwise: {}", error.root_cause());
                    return Ok(Search::Missed { within });
                }
                let by = format!("seed {seed}");
                let shown = format!("  {}", error.root_cause());
                Ok(Search::Found { by, shown })
            });
        }
        let counts = runtime
            .block_on(Lives::new(seed, None)?.run(self.kills))
            .with_context(|| format!("--kills {} --seed {seed}", self.kills))?;
        let least = usize::try_from(CHECKED_PER_KILL * self.kills)?;
        let lines: Vec<_> = counts
            .iter()
            .map(|(what, times)| match *what {
                CHECKED => format!("{times} {what} (at least {least} in a full run)"),
                _ => format!("{times} {what}"),
            })
            .collect();
        let lines = lines.join(", ");
        say(&format!("seed {seed}: {} kills: {lines}", self.kills));
        let mut missing = counts.rare(&REQUIRED, 1);
        missing.extend(counts.rare(&[CHECKED], least));
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
            notes: Arc::new(Notes::new()),
            rng: Rng::with_seed(seed),
            watchers: Vec::new(),
            informed: Vec::new(),
            seen: Counts::default(),
            bug,
        })
    }

    async fn run(mut self, kills: u64) -> Result<Counts<&'static str>> {
        for life in 0..kills {
            let moment = Moment::draw(&mut self.rng, life);
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
        let recreated = self.notes.revisions.lock().recreated(DEFINITION);
        self.seen.add(RECREATED, recreated);
        self.seen
            .add_all(std::mem::take(&mut *self.notes.seen.lock()));
        std::fs::remove_dir_all(&self.directory)?;
        Ok(self.seen)
    }

    /// Starts one server process, checks its objects, runs the clients, and kills the process.
    async fn live(&mut self, moment: Moment, life: u64) -> Result<()> {
        let file = self.directory.join(FILE);
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
        let counted = acknowledged.subscribe();
        let reached = moment.reach(&self.notes, counted, &mut writers, &mut following);
        reached.await?;
        if let Some(left) = left {
            ensure!(
                *acknowledged.borrow() == left * (WRITERS + CUSTOM.len() + APPLIERS),
                "a write received no response, although the server was not killed"
            );
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
        self.count_unfinished()?;
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
        let built_in = std::iter::repeat_n(Role::BuiltIn, WRITERS);
        let shared = std::iter::repeat_n(Role::Shared, APPLIERS);
        let roles = built_in.chain(CUSTOM.map(Role::Custom)).chain(shared);
        for (number, role) in roles.enumerate() {
            let writer = Writer {
                number,
                // A separate client has a separate connection.
                client: self.client()?,
                notes: Arc::clone(&self.notes),
                rng: self.rng.fork(),
                acknowledged: Arc::clone(acknowledged),
                left,
            };
            match role {
                Role::BuiltIn => writers.spawn(writer.storm()),
                Role::Custom(kind) => writers.spawn(Owner { writer, kind }.storm()),
                Role::Shared => writers.spawn(Applier { writer }.storm()),
            };
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
    /// Checks only the revisions that all watchers cover.
    ///
    /// This check detects a lost deletion event. [`Watcher::check`] does not detect it, because only the lost
    /// event contains the deletion's revision.
    fn find_gap(&mut self) -> Result<()> {
        if let Some(last) = self.watchers.iter().map(Watcher::last).min() {
            let checked = self.notes.revisions.lock().find_gap(last)?;
            self.seen.add(CHECKED, checked);
        }
        Ok(())
    }

    /// Counts the definitions whose creation or deletion a kill has interrupted. The next start completes it.
    fn count_unfinished(&mut self) -> Result<()> {
        for definition in file::definitions(&self.directory)? {
            if definition["metadata"]["deletionTimestamp"].is_string() {
                self.seen.count(HALF_DELETED);
            } else if !is_true(&definition, "Established") {
                self.seen.count(UNESTABLISHED);
            }
        }
        Ok(())
    }

    /// Checks that a restarted server has all acknowledged writes, and returns a client of the server.
    ///
    /// `ready` contains the server's address and its revision at the start.
    async fn look(&mut self, ready: Ready) -> Result<Client> {
        self.address = ready.address;
        self.notes.revisions.lock().started(ready.revision)?;
        let client = self.client()?;
        let mut stored = Vec::new();
        for kind in BUILTIN.chain([DEFINITION]) {
            let list = watcher::list(&client, kind).await?;
            stored.extend(listed(list, ready.revision)?);
        }
        definition::check_all(&client).await?;
        for kind in CUSTOM {
            let key = Key::of_definition(kind);
            let definition = stored.iter().find(|seen| seen.key == key);
            let list = match definition {
                Some(seen) => definition::objects(&client, kind, seen.value).await?,
                None => watcher::list(&client, kind).await?,
            };
            if definition.is_some() {
                stored.extend(listed(list, ready.revision)?);
            } else {
                ensure!(
                    matches!(list, Answer::NotFound),
                    "{key} is served, but not stored"
                );
                self.notes.known.lock().emptied(kind);
            }
        }
        self.check_revisions(&stored, ready.revision)?;
        let unanswered = self.notes.known.lock().compare(&stored)?;
        self.seen.add(UNANSWERED, unanswered);
        let nth = self.rng.usize(..self.notes.shared.len());
        probe::check(&client, &self.notes, nth, self.bug).await?;
        if self.watchers.is_empty() {
            let new = |kind| Watcher::new(kind, ready.revision, self.bug);
            self.watchers = (0..KINDS.len()).map(new).collect();
            let mut revisions = self.notes.revisions.lock();
            revisions.missed(Missed {
                range: 0..=ready.revision,
                reason: Reason::Restart,
            });
        }
        if self.informed.is_empty() {
            for encoding in [Encoding::Json, Encoding::Protobuf] {
                let informed = Informed::start(self.client()?, encoding)?;
                self.informed.push(informed);
            }
        }
        Ok(client)
    }

    /// Records the revisions of stored objects.
    ///
    /// # Errors
    /// Returns an error if an object's revision is higher than that of the server, or belongs to another change.
    fn check_revisions(&self, stored: &[Seen], revision: u64) -> Result<()> {
        let mut revisions = self.notes.revisions.lock();
        for seen in stored {
            ensure!(
                seen.revision <= revision,
                "{} is at revision {}, but the server is at {}",
                seen.key,
                seen.revision,
                revision
            );
            revisions.changed(seen.revision, &(seen.key.clone(), Some(seen.value)))?;
        }
        Ok(())
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

/// Returns the objects in a list of a server at `revision`.
///
/// # Errors
/// Returns an error if there is no list, or if the list has another revision.
fn listed(list: Answer<(Vec<Seen>, u64)>, revision: u64) -> Result<Vec<Seen>> {
    let Answer::Found((seen, listed)) = list else {
        bail!("the server does not respond");
    };
    ensure!(
        listed == revision,
        "a list is at {listed}, although nothing was written since {revision}"
    );
    Ok(seen)
}
