//! Runs random programs of requests on the embedded server and on a real kube-apiserver, and compares every
//! response and every event.
//!
//! `cargo xtask conformance requests` starts this comparison. If the servers respond differently to a
//! program, the program is shortened, and printed in the form of a case.

mod objects;
mod patches;
mod request;
mod draw;
mod planted;
mod difference;
mod known;
mod sides;

use std::{collections::BTreeMap, ops::Range};

use anyhow::Result;
use clap::Parser;
use futures_util::{StreamExt as _, stream};
use harness::{
    planted::{Planted as _, Search, find_each},
    report::say,
    seeds,
    shrink::leave_out,
};
use tokio::{runtime::Runtime, time::Instant};

use self::{
    difference::Difference,
    draw::Program,
    planted::Bug,
    sides::{Outcome, Sides},
};

/// Run random programs of requests on the embedded server and a real kube-apiserver, and compare the responses
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Run the seeds from A up to, but not including, B
    #[arg(long, value_name = "A..B", value_parser = seeds::range, default_value = "1..101")]
    seeds: Range<u64>,
    /// Number of requests of a program
    #[arg(long, default_value_t = 30)]
    length: usize,
    /// Run once for each deliberate defect of the embedded server, and fail if no seed finds it; the only
    /// value is `all`
    #[arg(long, value_parser = ["all"])]
    planted: Option<String>,
    /// Print the programs, and run nothing
    #[arg(long)]
    print: bool,
}

/// Number of programs that run at the same time.
const AT_ONCE: usize = 8;

/// Maximum number of programs with a difference that a run shortens and prints.
const PRINTED: usize = 60;

/// What the programs of a run have shown.
#[derive(Default)]
struct Totals {
    programs: usize,
    commands: usize,
    /// Number of responses of kube-apiserver by method and status.
    statuses: BTreeMap<(String, u16), usize>,
    /// Number of intentional differences, by name.
    known: BTreeMap<&'static str, usize>,
    /// For each sequence of requests with an unintentional difference: the seed, and the first such
    /// difference.
    different: Vec<(u64, Difference)>,
    /// The seeds of programs that could not be run, with the reason.
    broken: Vec<(u64, String)>,
}

impl Arguments {
    /// Runs random programs, which are sequences of requests, on kube-apiserver and on the embedded server.
    ///
    /// Returns true if all programs could be run and showed only known differences. With `planted`, returns
    /// true if the comparison detected each deliberate defect. With `print`, only prints the programs, and
    /// returns true.
    ///
    /// # Errors
    /// Returns an error if a server does not start, or if a program can't be run again to shorten it. With
    /// `planted`, also returns an error if any program can't be run.
    pub(crate) fn run(&self, runtime: &Runtime) -> Result<bool> {
        if self.print {
            for seed in self.seeds.clone() {
                say(&Program::draw(seed, self.length).text(&format!("Seed {seed}")));
            }
            return Ok(true);
        }
        let mut sides = runtime.block_on(Sides::start())?;
        if self.planted.is_none() {
            return self.compare(runtime, &sides);
        }
        find_each(Bug::ALL.iter().copied(), |bug| {
            sides.bug = Some(bug);
            runtime.block_on(self.search(&sides, bug))
        })
    }

    fn compare(&self, runtime: &Runtime, sides: &Sides) -> Result<bool> {
        let begun = Instant::now();
        let totals = runtime.block_on(async {
            let runs = stream::iter(self.seeds.clone()).map(|seed| async move {
                let program = Program::draw(seed, self.length);
                (seed, sides.run(&format!("s{seed}"), &program).await)
            });
            let add = |mut totals: Totals, (seed, outcome)| async move {
                totals.add(seed, outcome);
                totals
            };
            runs.buffered(AT_ONCE).fold(Totals::default(), add).await
        });
        for (seed, first) in totals.different.iter().take(PRINTED) {
            let (program, difference) = shortest(runtime, sides, *seed, self.length)?;
            match difference {
                None => say(&format!(
                    "DIFFERENT seed {seed}, but not in a second run\nat\n{}",
                    first.report(),
                )),
                Some(difference) => say(&format!(
                    "DIFFERENT {}\nat\n{}",
                    program.text(&format!("Seed {seed}")),
                    difference.report(),
                )),
            }
        }
        totals.report(begun.elapsed().as_secs_f64());
        Ok(totals.different.is_empty() && totals.broken.is_empty())
    }

    /// Searches for a seed that shows `bug`.
    async fn search(&self, sides: &Sides, bug: Bug) -> Result<Search> {
        for seed in self.seeds.clone() {
            let program = Program::draw(seed, self.length);
            let name = format!("{bug:?}-{seed}").to_lowercase();
            let outcome = sides.run(&name, &program).await?;
            if let Some(difference) = outcome.difference {
                let (by, shown) = (format!("seed {seed}"), difference.report());
                return Ok(Search::Found { by, shown });
            }
        }
        let within = format!("{} seeds", self.seeds.clone().count());
        Ok(Search::Missed { within })
    }
}

/// Runs the random program of `seed`. If it shows an unintentional difference, removes parts of the program
/// that are not needed for such a difference.
///
/// Returns the remaining program and its difference, if any.
fn shortest(
    runtime: &Runtime,
    sides: &Sides,
    seed: u64,
    length: usize,
) -> Result<(Program, Option<Difference>)> {
    let mut program = Program::draw(seed, length);
    let mut attempts = 0;
    let mut different = |program: &Program| {
        attempts += 1;
        let outcome = runtime.block_on(sides.run(&format!("s{seed}-{attempts}"), program))?;
        anyhow::Ok(outcome.difference)
    };
    let mut found = different(&program)?;
    if found.is_some() {
        leave_out(program.units.len(), |range| {
            let mut shorter = program.clone();
            shorter.units.drain(range);
            let Some(difference) = different(&shorter)? else {
                return anyhow::Ok(None);
            };
            (program, found) = (shorter, Some(difference));
            Ok(Some(program.units.len()))
        })?;
    }
    Ok((program, found))
}

impl Totals {
    fn add(&mut self, seed: u64, outcome: Result<Outcome>) {
        self.programs += 1;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.broken.push((seed, format!("{error:#}"))),
        };
        self.commands += outcome.case.steps.len();
        for status in outcome.statuses {
            *self.statuses.entry(status).or_default() += 1;
        }
        for name in outcome.known {
            *self.known.entry(name).or_default() += 1;
        }
        self.different
            .extend(outcome.difference.map(|difference| (seed, difference)));
    }

    fn report(&self, seconds: f64) {
        let requests: usize = self.statuses.values().sum();
        for ((method, status), number) in &self.statuses {
            say(&format!("{method:>6} {status} {number:>8}"));
        }
        for (name, number) in &self.known {
            say(&format!("known difference: {name} {number}"));
        }
        for (seed, error) in &self.broken {
            say(&format!("BROKEN seed {seed}: {error}"));
        }
        say(&format!(
            "{} programs with {requests} requests in {seconds:.1} s, {} commands compared: {} different, {} broken",
            self.programs,
            self.commands,
            self.different.len(),
            self.broken.len(),
        ));
        if !self.different.is_empty() {
            let seeds: Vec<_> = self.different.iter().map(|(seed, _)| seed).collect();
            say(&format!("different seeds: {seeds:?}"));
        }
    }
}
