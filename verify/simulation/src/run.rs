//! Implements the command `cargo xtask simulate`.
//!
//! Each seed determines one run of a simulated informer: its settings, steps and faults.
//! The command simulates the runs of the selected seeds, and reports the failures and the tested behaviors.

use std::ops::ControlFlow;

use anyhow::Result;
use clap::Parser;
use harness::{
    planted::{Planted as _, Search, find_each},
    report::say,
    seeds::{Fixed, Origin, Selection},
    threads::run_each,
};
use tokio::time::Instant;

use crate::{
    coverage::Seen,
    draw::draw,
    life::Life,
    planted::Bug,
    shrink::{keep, shrink},
    world::{Wrong, live},
};

/// Path of the file with the seeds that `--fixed` selects, relative to the root of the workspace.
const FIXED: &str = "verify/simulation/seeds.toml";

/// Maximum number of failed runs that are shortened and printed with their steps.
const SHOWN: usize = 3;

/// Minimum number of runs for the check that all required behaviors occurred.
///
/// In fewer runs, a behavior can be missing or rare by chance.
const FULL_RUN: usize = 500;

/// Maximum number of seeds that the simulation runs to find one deliberate bug.
const BUG_SEEDS: u64 = 1000;

/// The arguments of the command line.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask simulate",
    bin_name = "cargo xtask simulate",
    about = "Run informers through random changes and faults, and check that they recover"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Run only the steps with these numbers, as printed for a failed run, for example 3,7,12
    #[arg(long, value_name = "PLACES", value_delimiter = ',', requires = "seeds")]
    steps: Option<Vec<usize>>,
    /// Print how often each behavior, such as a fault, occurred
    #[arg(long)]
    counts: bool,
    /// Print the requests and the received events
    #[arg(long, requires = "seeds")]
    trace: bool,
}

/// Simulates the selected seeds, prints a report, and returns whether all checks passed.
///
/// # Errors
/// Returns an error if the file of the fixed seeds can't be read.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    // Handlers panic as drawn, and other panics are reported with their seed.
    std::panic::set_hook(Box::new(|_| {}));
    let mut good = true;
    if arguments.selection.planted.is_some() {
        good &= find_bugs()?;
    }
    let sets = arguments.selection.sets(|| {
        let fixed: Fixed<Vec<u64>> = Fixed::read(FIXED)?;
        Ok(fixed.and(&fixed.joined))
    })?;
    for (origin, seeds) in sets {
        good &= judge(origin, &seeds, arguments);
    }
    Ok(good)
}

/// The coverage of several simulated runs, and the failures and traces by seed.
#[derive(Default)]
struct Tally {
    seen: Seen,
    failed: Vec<(u64, Wrong)>,
    traces: Vec<(u64, Vec<String>)>,
}

/// Simulates one run per seed. If `first_only` is true, no further run starts after a run has failed.
fn live_all(
    seeds: &[u64],
    arguments: Option<&Arguments>,
    bug: Option<Bug>,
    first_only: bool,
) -> Tally {
    let mut tally = Tally::default();
    let run = |seed: &u64| live(&drawn(*seed, arguments), bug);
    run_each(seeds, run, |seed, outcome| {
        tally.seen.add(outcome.seen);
        if arguments.is_some_and(|arguments| arguments.trace) {
            tally.traces.push((*seed, outcome.trace));
        }
        match outcome.wrong {
            Some(wrong) => tally.failed.push((*seed, wrong)),
            None => return ControlFlow::Continue(()),
        }
        if first_only {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    tally.failed.sort_unstable();
    tally.traces.sort_unstable();
    tally
}

fn drawn(seed: u64, arguments: Option<&Arguments>) -> Life {
    let mut life = draw(seed);
    if let Some(places) = arguments.and_then(|arguments| arguments.steps.as_ref()) {
        keep(&mut life, places);
    }
    life
}

fn judge(origin: Origin, seeds: &[u64], arguments: &Arguments) -> bool {
    let began = Instant::now();
    let tally = live_all(seeds, Some(arguments), None, false);
    let (passed, failed) = (seeds.len() - tally.failed.len(), tally.failed.len());
    let seconds = began.elapsed().as_secs_f64();
    for (seed, trace) in &tally.traces {
        say(&drawn(*seed, Some(arguments)).to_string());
        for line in trace {
            say(&format!("      {line}"));
        }
    }
    if arguments.counts {
        tally.seen.lines().for_each(|line| say(&line));
    }
    for (seed, wrong) in tally.failed.iter().take(SHOWN) {
        show(drawn(*seed, Some(arguments)), wrong.clone());
    }
    for (seed, wrong) in tally.failed.iter().skip(SHOWN) {
        let wrong = wrong.lines().next().unwrap_or_default();
        say(&format!("seed {seed} also failed: {wrong}"));
    }
    let is_whole = arguments.steps.is_none() && seeds.len() >= FULL_RUN && failed == 0;
    let missing = if is_whole {
        tally.seen.missing(origin, seeds.len())
    } else {
        Vec::new()
    };
    for line in &missing {
        say(line);
    }
    if is_whole {
        say(&tally.seen.summary());
    }
    say(&format!("{passed} passed, {failed} failed, {seconds:.1} s"));
    failed == 0 && missing.is_empty()
}

/// Shortens a failing simulated run, and returns the remaining steps and the failure as text.
fn shortened(life: &mut Life, wrong: Wrong, bug: Option<Bug>) -> String {
    let wrong = shrink(life, wrong, &mut |life| live(life, bug).wrong);
    format!("{life}  {wrong}")
}

/// Shortens and prints a failing run, with the command that replays it.
fn show(mut life: Life, wrong: Wrong) {
    say(&shortened(&mut life, wrong, None));
    let places: Vec<_> = life.steps.iter().map(|(at, _)| at.to_string()).collect();
    let (seed, next) = (life.seed, life.seed + 1);
    say(&format!(
        "replay: cargo xtask simulate --seeds {seed}..{next} --steps {}\n",
        places.join(",")
    ));
}

fn find_bugs() -> Result<bool> {
    let seeds: Vec<_> = (1..=BUG_SEEDS).collect();
    find_each(Bug::ALL.iter().copied(), |bug| {
        let tally = live_all(&seeds, None, Some(bug), true);
        let Some((seed, wrong)) = tally.failed.first() else {
            let within = format!("{BUG_SEEDS} lives");
            return Ok(Search::Missed { within });
        };
        Ok(Search::Found {
            by: format!("seed {seed}"),
            shown: shortened(&mut draw(*seed), wrong.clone(), Some(bug)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn informers_recover_from_all_faults() {
        std::panic::set_hook(Box::new(|_| {}));
        let seeds: Vec<_> = (1..41).collect();
        assert_eq!(live_all(&seeds, None, None, false).failed, []);
    }

    #[test]
    fn a_seed_always_runs_the_same_life() {
        for seed in [3, 7, 12] {
            let life = draw(seed);
            let (first, second) = (live(&life, None).trace, live(&life, None).trace);
            assert!(first.len() > 20, "seed {seed} has a trace");
            for (line, (a, b)) in first.iter().zip(&second).enumerate() {
                assert_eq!(a, b, "seed {seed}, line {line}");
            }
            assert_eq!(first.len(), second.len(), "seed {seed}");
        }
    }

    #[test]
    fn a_planted_bug_is_found_and_its_shortened_schedule_has_the_same_failure() {
        let mut life = draw(1);
        let bug = Some(Bug::TaskLeaked);
        let wrong = live(&life, bug).wrong.expect("a task is left");
        let wrong = shrink(&mut life, wrong, &mut |life| live(life, bug).wrong);
        assert_eq!(live(&life, bug).wrong, Some(wrong));
        assert!(life.steps.is_empty(), "{life}");
    }
}
