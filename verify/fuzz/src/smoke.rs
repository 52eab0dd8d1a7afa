//! Runs a fuzz target on its corpus and on mutated inputs, until an input fails or the run is complete.
//!
//! A target returns a name for the path that an input took through the tested code. Mutations start from
//! inputs of the corpus, and from mutated inputs whose path did not occur before.

use std::{
    collections::BTreeSet,
    fmt,
    fs::File,
    io::{Seek as _, SeekFrom, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use fastrand::Rng;
use kube_informer_fuzz::{Bug, Target};
use parking_lot::{Condvar, Mutex};
use tokio::time::Instant;

use crate::{corpus, minimize::minimize, mutate::mutate};

/// Maximum time for which the target may run with one input.
const INPUT_MAX: Duration = Duration::from_secs(10);

/// Settings of a run: the number and seed of the mutated inputs, and a time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) seed: u64,
    pub(crate) runs: u32,
    /// Time limit, after which the run starts no further mutated input.
    pub(crate) time: Option<Duration>,
}

/// Result of running a target: the numbers of corpus inputs and mutated inputs, and the failure, if any.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) corpus: usize,
    pub(crate) runs: u32,
    /// Number of code paths that at least one mutated input took and that no corpus input took.
    pub(crate) new: usize,
    pub(crate) failure: Option<Failure>,
}

/// An input for which the target panicked, with the panic's message and source location.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The name of the corpus file, or the number of the mutated input, such as `run 7`.
    pub(crate) origin: String,
    pub(crate) input: Vec<u8>,
    pub(crate) message: String,
    place: String,
}

/// Source location and message of the last panic.
static PANIC: Mutex<Option<(String, String)>> = Mutex::new(None);

/// Installs a panic hook that records panics instead of printing them.
pub(crate) fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map_or_else(String::new, ToString::to_string);
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = text.unwrap_or("a panic without a message").to_owned();
        *PANIC.lock() = Some((place, message));
    }));
}

/// Runs the target on one input, and returns the name of the code path that the input took.
///
/// The caller must have installed the panic hook with [`note_panics`].
///
/// # Errors
/// If the target panics, returns the source location and the message of the panic.
pub(crate) fn give(
    target: &Target,
    input: &[u8],
    bug: Option<Bug>,
) -> Result<String, (String, String)> {
    let run = catch_unwind(AssertUnwindSafe(|| (target.run)(input, bug)));
    run.map_err(|_| PANIC.lock().take().unwrap_or_default())
}

/// State of a run: the inputs to mutate, and the names of the code paths taken so far.
struct Smoke<'a> {
    target: &'a Target,
    bug: Option<Bug>,
    /// File that contains the current input, in case the process dies.
    current: Option<File>,
    pool: Vec<Vec<u8>>,
    ways: BTreeSet<String>,
    given: &'a AtomicU64,
}

/// Runs the target on its corpus and on mutated inputs, until an input fails or the limits in `effort` are
/// reached.
///
/// With a planted bug, runs only the mutated inputs. Aborts the process if an input takes longer than
/// [`INPUT_MAX`]. If `watched` is true, writes each input to a file before running the target.
///
/// # Errors
/// Returns an error if the target has no corpus, or if a file can't be read or written.
pub(crate) fn smoke(
    target: &Target,
    effort: Effort,
    bug: Option<Bug>,
    watched: bool,
) -> Result<Tally> {
    let given = AtomicU64::new(0);
    let current = corpus::left_by(target.name)?.join("current");
    let mut smoke = Smoke {
        target,
        bug,
        current: watched.then(|| File::create(&current)).transpose()?,
        pool: Vec::new(),
        ways: BTreeSet::new(),
        given: &given,
    };
    timed(target, &given, || smoke.all(effort))
}

impl Smoke<'_> {
    fn all(&mut self, effort: Effort) -> Result<Tally> {
        let began = Instant::now();
        let corpus = corpus::read(self.target.name)?;
        anyhow::ensure!(!corpus.is_empty(), "{} has no corpus", self.target.name);
        let mut tally = Tally {
            corpus: corpus.len(),
            runs: 0,
            new: 0,
            failure: None,
        };
        for (name, input) in corpus {
            // A planted bug must be found by a mutation, so the corpus itself is not run.
            if self.bug.is_some() {
                self.pool.push(input);
                continue;
            }
            tally.failure = self.one(name, input)?;
            if tally.failure.is_some() {
                return Ok(tally);
            }
        }
        let known = self.ways.len();
        let mut random = Rng::with_seed(effort.seed);
        while tally.runs < effort.runs && effort.time.is_none_or(|time| began.elapsed() < time) {
            let input = mutate(
                &mut random,
                &self.pool,
                tally.corpus,
                self.target.dictionary,
            );
            tally.runs += 1;
            tally.failure = self.one(format!("run {}", tally.runs), input)?;
            if tally.failure.is_some() {
                break;
            }
        }
        tally.new = self.ways.len() - known;
        Ok(tally)
    }

    /// Runs the target on one input, and returns the failure if the target panicked.
    fn one(&mut self, origin: String, input: Vec<u8>) -> Result<Option<Failure>> {
        if let Some(file) = &mut self.current {
            file.seek(SeekFrom::Start(0))?;
            file.set_len(input.len() as u64)?;
            file.write_all(&input)
                .context("the current input can't be written")?;
        }
        self.given.fetch_add(1, Ordering::Relaxed);
        match give(self.target, &input, self.bug) {
            Ok(way) => {
                if self.ways.insert(way) || !origin.starts_with("run ") {
                    self.pool.push(input);
                }
                Ok(None)
            }
            Err((place, message)) => Ok(Some(Failure {
                origin,
                input,
                message,
                place,
            })),
        }
    }
}

impl Failure {
    /// Shortens the input, saves it to a file and returns the file's path.
    ///
    /// The shortened input causes a panic at the same source location.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub(crate) fn shorten(&mut self, target: &Target, bug: Option<Bug>) -> Result<String> {
        let input = std::mem::take(&mut self.input);
        let given = AtomicU64::new(0);
        self.input = timed(target, &given, || {
            minimize(input, |input| {
                given.fetch_add(1, Ordering::Relaxed);
                give(target, input, bug).is_err_and(|(place, _)| place == self.place)
            })
        });
        if let Err((_, message)) = give(target, &self.input, bug) {
            self.message = message;
        }
        let path = corpus::left_by(target.name)?.join("failure");
        std::fs::write(&path, &self.input).context("the input can't be written")?;
        Ok(path.display().to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}", self.message.replace('\n', "\n  "))?;
        writeln!(f, "  at {}", self.place)?;
        write!(f, "  input: b\"{}\"", self.input.escape_ascii())
    }
}

/// Calls `does`, and aborts the process if one input runs for longer than [`INPUT_MAX`].
///
/// `does` must increment `given` before it runs each input.
fn timed<T>(target: &Target, given: &AtomicU64, does: impl FnOnce() -> T) -> T {
    let (ended, told) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| end_what_hangs(target, given, &ended, &told));
        let done = does();
        *ended.lock() = true;
        told.notify_one();
        done
    })
}

/// Aborts the process if `given`, the number of started inputs, does not change for [`INPUT_MAX`].
///
/// Returns when `ended` is true. The thread that sets `ended` to true must then notify `told`.
fn end_what_hangs(target: &Target, given: &AtomicU64, ended: &Mutex<bool>, told: &Condvar) {
    let mut ended = ended.lock();
    let mut last = None;
    while !*ended {
        let number = given.load(Ordering::Relaxed);
        if last == Some(number) {
            eprintln!("{}: an input takes longer than {INPUT_MAX:?}", target.name);
            process::abort();
        }
        last = Some(number);
        told.wait_for(&mut ended, INPUT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use kube_informer_fuzz::TARGETS;

    use super::*;

    const FEW: Effort = Effort {
        seed: 1,
        runs: 50,
        time: None,
    };

    // The panic hook prints nothing, so this test returns its failure.
    #[test]
    fn the_corpus_of_each_target_and_a_few_mutations_pass() -> Result<()> {
        note_panics();
        for target in TARGETS {
            let tally = smoke(target, FEW, None, false)?;
            if let Some(failure) = tally.failure {
                anyhow::bail!("{}: {failure}", target.name);
            }
            let inputs = tally.corpus;
            anyhow::ensure!(inputs >= 5, "{} has {inputs} inputs", target.name);
        }
        Ok(())
    }

    #[test]
    fn a_planted_bug_is_found_and_its_input_is_shortened() -> Result<()> {
        note_panics();
        let target = TARGETS.iter().find(|target| target.name == "store");
        let target = target.expect("there is a target of this name");
        let bug = Some(Bug::StaleIndexValue);
        let effort = Effort { runs: 500, ..FEW };
        let failure = smoke(target, effort, bug, false)?.failure;
        let mut failure = failure.context("the bug is not found")?;
        failure.shorten(target, bug)?;
        let length = failure.input.len();
        anyhow::ensure!(length == 4, "not an add and an update: {failure}");
        Ok(())
    }
}
