//! The command: which seeds, which components, and what is said of them.

use std::{ops::Range, path::Path, process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use tokio::time::Instant;

use crate::{
    bench::{Bench, Tally},
    component::{COMPONENTS, Component},
    coverage::Coverage,
    divergences::{self, Divergences},
    oracle::Version,
    planted::Bug,
    shrink,
};

/// So many failing sequences of a component are shortened and shown.
const SHOWN: usize = 3;

/// A planted bug must be found among so many seeds.
const BUG_SEEDS: u64 = 500;

/// What may be typed.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask conformance oracle",
    about = "Compare with client-go, by drawn sequences"
)]
pub struct Arguments {
    /// Which sequences: A..B, without B
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// Only this component
    #[arg(long)]
    component: Option<String>,
    /// Plant bugs instead, and see that each is found within 500 seeds: `all`
    #[arg(long, value_parser = ["all"])]
    planted: Option<String>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("{text:?} is not A..B with A less than B, for example 1..2001");
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wanted());
    let seeds = number(from)?..number(to)?;
    (!seeds.is_empty()).then_some(seeds).ok_or_else(wanted)
}

/// Does what was typed.
///
/// # Errors
/// An oracle can't be built, or has ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("the crate stands in a workspace")?;
    let mut bench = Bench::new(root)?;
    let wanted = |component: &&&Component| {
        arguments
            .component
            .as_ref()
            .is_none_or(|name| name == component.name)
    };
    let components: Vec<_> = COMPONENTS.iter().filter(wanted).copied().collect();
    anyhow::ensure!(!components.is_empty(), "there is no such component");
    let good = if arguments.planted.is_some() {
        find_bugs(&mut bench, &components)?
    } else {
        let seeds: Vec<_> = arguments.seeds.clone().unwrap_or(1..2001).collect();
        let divergences = divergences::read(root)?;
        let mut good = true;
        for component in &components {
            good &= judge(&mut bench, component, &divergences, &seeds)?;
        }
        good
    };
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One component: whether all is as it must be.
fn judge(
    bench: &mut Bench,
    component: &Component,
    divergences: &Divergences,
    seeds: &[u64],
) -> Result<bool> {
    let begun = Instant::now();
    let Tally {
        coverage,
        mut findings,
    } = bench.run(component, None, seeds, false)?;
    let failed = findings.len();
    say(&format!(
        "{}: {} passed, {failed} failed, {}",
        component.name,
        seeds.len() - failed,
        seconds(begun.elapsed())
    ));
    tell_coverage(component, &coverage);
    for finding in findings.iter_mut().take(SHOWN) {
        shrink::shrink(bench, component, None, finding)?;
        say(&shrink::show(bench, component, None, finding)?);
    }
    let mut complaints = coverage.findings(component);
    complaints.extend(strays(component, divergences, &coverage));
    for complaint in &complaints {
        say(&format!("  {complaint}"));
    }
    Ok(failed == 0 && complaints.is_empty())
}

/// Divergences that were met and are not described, or are described and were never met.
fn strays(component: &Component, divergences: &Divergences, coverage: &Coverage) -> Vec<String> {
    let described = |name: &str| {
        divergences
            .get(name)
            .is_some_and(|divergence| divergence.component == component.name)
    };
    let met = coverage.accepted().keys().filter(|name| !described(name));
    let mut strays: Vec<_> = met
        .map(|name| format!("{name} is not in {}", divergences::FILE))
        .collect();
    let of_it = divergences
        .iter()
        .filter(|(_, divergence)| divergence.component == component.name);
    let stale = of_it.filter(|(name, _)| !coverage.accepted().contains_key(name.as_str()));
    strays.extend(stale.map(|(name, _)| format!("{name} was never met; is it stale?")));
    strays
}

fn tell_coverage(component: &Component, coverage: &Coverage) {
    say(&format!("  median length {}", coverage.median()));
    for behaviour in component.behaviours {
        let asked =
            Version::ALL.map(|version| format!("{:>7}", coverage.asked(version, behaviour)));
        say(&format!(
            "  {:>7}{} {behaviour}",
            coverage.seen(behaviour),
            asked.concat()
        ));
    }
    for (name, times) in coverage.accepted() {
        say(&format!("  {times:>7} different on purpose: {name}"));
    }
}

fn find_bugs(bench: &mut Bench, components: &[&Component]) -> Result<bool> {
    let seeds: Vec<_> = (1..=BUG_SEEDS).collect();
    let mut good = true;
    for component in components {
        for bug in Bug::ALL
            .into_iter()
            .filter(|bug| bug.component() == component.name)
        {
            let mut tally = bench.run(component, Some(bug), &seeds, true)?;
            let Some(finding) = tally.findings.first_mut() else {
                say(&format!(
                    "{}: {bug}: NOT FOUND in {BUG_SEEDS} seeds",
                    component.name
                ));
                good = false;
                continue;
            };
            shrink::shrink(bench, component, Some(bug), finding)?;
            say(&format!(
                "{}: {bug}: found by seed {}",
                component.name, finding.seed
            ));
            say(&shrink::show(bench, component, Some(bug), finding)?);
        }
    }
    Ok(good)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[expect(
    clippy::print_stdout,
    reason = "a command line's answer goes to standard output"
)]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::seeds;

    #[test]
    fn seeds_are_a_range_without_its_end() {
        assert_eq!(seeds("1..51"), Ok(1..51));
        for wrong in ["", "5", "1..", "..5", "5..5", "6..5", "a..b"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
