//! The command: which seeds, which components, and what is said of them.

use std::{ops::Range, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use clap::{ArgGroup, Parser};
use tokio::time::Instant;

use crate::{
    bench::{Bench, Tally},
    component::{COMPONENTS, Component},
    coverage::Coverage,
    divergences::{self, Divergences},
    oracle::Version,
    planted::Bug,
    report,
    seeds::{self, Fixed},
    shrink,
};

/// So many failing sequences of a component are shortened and shown.
const SHOWN: usize = 3;

/// A run over so many seeds must have met every divergence.
const FULL_RUN: usize = 1000;

/// A planted bug must be found among so many seeds.
const BUG_SEEDS: u64 = 500;

/// What may be typed.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask conformance oracle",
    bin_name = "cargo xtask conformance oracle",
    about = "Compare with client-go, by drawn sequences",
    group = ArgGroup::new("what").required(true).multiple(true).args(["seeds", "fixed", "fresh", "planted"])
)]
pub(crate) struct Arguments {
    /// Which sequences: A..B, without B
    #[arg(long, value_name = "A..B", value_parser = seeds::range)]
    seeds: Option<Range<u64>>,
    /// The seeds of verify/differential/seeds.toml, and docs/CONFORMANCE.md must be what they show
    #[arg(long)]
    fixed: bool,
    /// Seeds that follow from this text, for example from the commit's id
    #[arg(long, value_name = "TEXT")]
    fresh: Option<String>,
    /// Write docs/CONFORMANCE.md
    #[arg(long, requires = "fixed", conflicts_with = "component")]
    write: bool,
    /// Only this component
    #[arg(long)]
    component: Option<String>,
    /// Plant bugs instead, and see that each is found within 500 seeds
    #[arg(long, value_parser = ["all"])]
    planted: Option<String>,
    /// Say how often each behaviour was seen: here, and how often 0.37 and 0.32 were asked
    #[arg(long)]
    counts: bool,
}

/// Does what was typed.
///
/// # Errors
/// An oracle can't be built, or has ended; a file can't be read or written.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = root
        .ancestors()
        .nth(2)
        .context("the crate stands in a workspace")?;
    let wanted = |component: &&&Component| {
        let name = arguments.component.as_ref();
        name.is_none_or(|name| name == component.name)
    };
    let components: Vec<_> = COMPONENTS.iter().filter(wanted).copied().collect();
    ensure!(!components.is_empty(), "there is no such component");
    let mut bench = Bench::new(root)?;
    let good = if arguments.planted.is_some() {
        find_bugs(&mut bench, &components)?
    } else {
        let divergences = divergences::read(root)?;
        compare_all(&mut bench, root, arguments, (&components, &divergences))?
    };
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn compare_all(
    bench: &mut Bench,
    root: &Path,
    arguments: &Arguments,
    (components, divergences): (&[&'static Component], &Divergences),
) -> Result<bool> {
    let fixed = Fixed::read(root)?;
    let mut good = true;
    let mut shown = Vec::new();
    for component in components {
        let mut judge = Judge {
            bench,
            component,
            divergences,
            counts: arguments.counts,
        };
        if let Some(seeds) = &arguments.seeds {
            good &= judge.judge(&seeds.clone().collect::<Vec<_>>(), None)?.0;
        }
        if arguments.fixed {
            let (as_it_must, coverage) = judge.judge(&fixed.of(component.name), None)?;
            good &= as_it_must;
            shown.push((*component, coverage));
        }
        if let Some(text) = &arguments.fresh {
            good &= judge.judge(&seeds::fresh(text), Some("fresh "))?.0;
        }
    }
    if arguments.fixed && arguments.component.is_none() {
        good &= report::keep(root, &report::text(&shown, divergences), arguments.write)?;
    }
    Ok(good)
}

/// Judges one component.
struct Judge<'a> {
    bench: &'a mut Bench,
    component: &'static Component,
    divergences: &'a Divergences,
    counts: bool,
}

impl Judge<'_> {
    /// Whether all is as it must be, and what was seen. Seeds that are of this run alone are told how
    /// to stay.
    fn judge(&mut self, seeds: &[u64], once: Option<&str>) -> Result<(bool, Coverage)> {
        let component = self.component;
        let begun = Instant::now();
        let Tally {
            coverage,
            mut findings,
        } = self.bench.run(component, None, seeds, false)?;
        let failed = findings.len();
        say(&format!(
            "{}: {} {}passed, {failed} failed, median length {}, {:.1} s",
            component.name,
            seeds.len() - failed,
            once.unwrap_or_default(),
            coverage.median(),
            begun.elapsed().as_secs_f64(),
        ));
        if self.counts {
            tell_counts(component, &coverage);
        }
        for finding in findings.iter_mut().take(SHOWN) {
            self.bench.shrink(component, None, finding)?;
            say(&shrink::show(self.bench, component, None, finding)?);
        }
        if let Some(finding) = findings.first().filter(|_| once.is_some()) {
            say(&format!(
                "  it joins the fixed set by a line in {}: {} = [{}]",
                seeds::FILE,
                component.name,
                finding.seed
            ));
        }
        let mut complaints = coverage.findings(component);
        // Few seeds need not meet all.
        let complete = seeds.len() >= FULL_RUN;
        complaints.extend(strays(component, self.divergences, &coverage, complete));
        for complaint in &complaints {
            say(&format!("  {complaint}"));
        }
        Ok((failed == 0 && complaints.is_empty(), coverage))
    }
}

/// Divergences that were met and are not described, or are described and were never met.
fn strays(
    component: &Component,
    divergences: &Divergences,
    coverage: &Coverage,
    complete: bool,
) -> Vec<String> {
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
    let stale =
        of_it.filter(|(name, _)| complete && !coverage.accepted().contains_key(name.as_str()));
    strays.extend(stale.map(|(name, _)| format!("{name} was never met; is it stale?")));
    strays
}

fn tell_counts(component: &Component, coverage: &Coverage) {
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
            bench.shrink(component, Some(bug), finding)?;
            say(&format!(
                "{}: {bug}: found by seed {}",
                component.name, finding.seed
            ));
            say(&shrink::show(bench, component, Some(bug), finding)?);
        }
    }
    Ok(good)
}

/// Writes a line.
#[expect(
    clippy::print_stdout,
    reason = "a command line's answer goes to standard output"
)]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
