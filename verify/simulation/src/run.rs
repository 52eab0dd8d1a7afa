//! The command: which lives, and what is said of them.

use std::{
    ops::Range,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Parser};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    coverage::Seen,
    draw::draw,
    life::Life,
    planted::Bug,
    seeds,
    shrink::{keep, shrink},
    world::{Wrong, live},
};

/// So many failing lives are shortened and shown.
const SHOWN: usize = 3;

/// A run over so many lives must have seen everything.
const FULL_RUN: usize = 500;

/// A planted bug must be found among so many lives.
const BUG_SEEDS: u64 = 1000;

/// What may be typed.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask simulate",
    bin_name = "cargo xtask simulate",
    about = "Let informers live through drawn changes and faults, and check that all comes right",
    group = ArgGroup::new("what").required(true).multiple(true).args(["seeds", "fixed", "fresh", "planted"])
)]
pub(crate) struct Arguments {
    /// Which lives: A..B, without B
    #[arg(long, value_name = "A..B", value_parser = seeds::range)]
    seeds: Option<Range<u64>>,
    /// Of each life only these steps, as a shortened schedule names them: 3,7,12
    #[arg(long, value_name = "PLACES", value_delimiter = ',', requires = "seeds")]
    steps: Option<Vec<usize>>,
    /// The lives of verify/simulation/seeds.toml
    #[arg(long)]
    fixed: bool,
    /// Lives that follow from this text, for example from the commit's id
    #[arg(long, value_name = "TEXT")]
    fresh: Option<String>,
    /// Plant bugs instead, and see that each is found within 1,000 lives
    #[arg(long, value_parser = ["all"])]
    planted: Option<String>,
    /// Say how often everything was seen
    #[arg(long)]
    counts: bool,
    /// Say what was asked and what was heard
    #[arg(long, requires = "seeds")]
    trace: bool,
}

/// Does what was typed.
///
/// # Errors
/// A file can't be read.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = root
        .ancestors()
        .nth(2)
        .context("the crate stands in a workspace")?;
    // Handlers panic as drawn, and what else panics is told with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let mut good = true;
    if arguments.planted.is_some() {
        good &= find_bugs();
    }
    if let Some(seeds) = &arguments.seeds {
        let seeds: Vec<_> = seeds.clone().collect();
        good &= judge(&seeds, arguments);
    }
    if arguments.fixed {
        good &= judge(&seeds::fixed(root)?, arguments);
    }
    if let Some(text) = &arguments.fresh {
        good &= judge(&seeds::fresh(text), arguments);
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What lives came to.
#[derive(Default)]
struct Tally {
    seen: Seen,
    failed: Vec<(u64, Wrong)>,
    traces: Vec<(u64, Vec<String>)>,
}

/// Lives all of these, on as many threads as the machine has; with `first_only` until one fails.
fn live_all(
    seeds: &[u64],
    arguments: Option<&Arguments>,
    bug: Option<Bug>,
    first_only: bool,
) -> Tally {
    let next = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    let tally = Mutex::new(Tally::default());
    let work = || {
        while !ended.load(Ordering::Relaxed)
            && let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let outcome = live(&drawn(*seed, arguments), bug);
            let mut tally = tally.lock();
            tally.seen.add(outcome.seen);
            if arguments.is_some_and(|arguments| arguments.trace) {
                tally.traces.push((*seed, outcome.trace));
            }
            if let Some(wrong) = outcome.wrong {
                tally.failed.push((*seed, wrong));
                ended.store(first_only, Ordering::Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut tally = tally.into_inner();
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

fn judge(seeds: &[u64], arguments: &Arguments) -> bool {
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
        show(drawn(*seed, Some(arguments)), wrong.clone(), None);
    }
    for (seed, wrong) in tally.failed.iter().skip(SHOWN) {
        let wrong = wrong.lines().next().unwrap_or_default();
        say(&format!("seed {seed} failed too: {wrong}"));
    }
    let is_whole = arguments.steps.is_none() && seeds.len() >= FULL_RUN && failed == 0;
    let missing = if is_whole {
        tally.seen.missing(seeds.len())
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

/// Shortens a life that fails, and tells it.
fn show(mut life: Life, wrong: Wrong, bug: Option<Bug>) {
    let wrong = shrink(&mut life, wrong, &mut |life| live(life, bug).wrong);
    let places: Vec<_> = life.steps.iter().map(|(at, _)| at.to_string()).collect();
    say(&format!("{life}  {wrong}"));
    let (seed, next) = (life.seed, life.seed + 1);
    say(&format!(
        "replay: cargo xtask simulate --seeds {seed}..{next} --steps {}\n",
        places.join(",")
    ));
}

fn find_bugs() -> bool {
    let seeds: Vec<_> = (1..=BUG_SEEDS).collect();
    let mut good = true;
    for bug in Bug::ALL {
        let tally = live_all(&seeds, None, Some(bug), true);
        let Some((seed, wrong)) = tally.failed.first() else {
            say(&format!("{bug}: NOT FOUND in {BUG_SEEDS} lives"));
            good = false;
            continue;
        };
        say(&format!("{bug}: found by seed {seed}"));
        let mut life = draw(*seed);
        let wrong = shrink(&mut life, wrong.clone(), &mut |life| {
            live(life, Some(bug)).wrong
        });
        say(&format!("{life}  {wrong}\n"));
    }
    good
}

/// Writes a line.
#[expect(
    clippy::print_stdout,
    reason = "a command line's answer goes to standard output"
)]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_come_right_whatever_breaks() {
        std::panic::set_hook(Box::new(|_| {}));
        let seeds: Vec<_> = (1..41).collect();
        assert_eq!(live_all(&seeds, None, None, false).failed, []);
    }

    #[test]
    fn a_seed_lives_the_same_life_twice() {
        for seed in [3, 7, 12] {
            let life = draw(seed);
            let (first, second) = (live(&life, None).trace, live(&life, None).trace);
            assert!(first.len() > 20, "seed {seed} shows something");
            for (line, (a, b)) in first.iter().zip(&second).enumerate() {
                assert_eq!(a, b, "seed {seed}, line {line}");
            }
            assert_eq!(first.len(), second.len(), "seed {seed}");
        }
    }

    #[test]
    fn a_life_with_a_bug_is_found_and_its_shortest_schedule_fails_alike() {
        let mut life = draw(1);
        let bug = Some(Bug::TaskLeaked);
        let wrong = live(&life, bug).wrong.expect("a task is left");
        let wrong = shrink(&mut life, wrong, &mut |life| live(life, bug).wrong);
        assert_eq!(live(&life, bug).wrong, Some(wrong));
        assert!(life.steps.is_empty(), "{life}");
    }
}
