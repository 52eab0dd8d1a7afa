//! Runs the command `cargo xtask conformance oracle`: selects components and seeds, compares the library with
//! client-go, and reports the results.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use clap::Parser;
use harness::{
    planted::{Planted as _, Search, find_each},
    report::say,
    seeds::{self, Origin, Selection},
};
use tokio::time::Instant;

use crate::{
    bench::{Bench, Tally},
    component::Component,
    components::COMPONENTS,
    coverage::Coverage,
    divergences::{self, Divergences},
    oracle::Version,
    planted::Bug,
    report,
};

/// Path of the file with the fixed seeds, relative to the workspace.
const FIXED: &str = "verify/differential/seeds.toml";

/// A range of fixed seeds for all components, and additional seeds for single components.
type Fixed = seeds::Fixed<BTreeMap<String, Vec<u64>>>;

/// Maximum number of failing test cases per component that are shortened and printed.
const SHOWN: usize = 3;

/// Minimum number of seeds in a full run.
///
/// A full run of a component fails if [`divergences::FILE`] lists an intentional difference of the component
/// that never occurs.
const FULL_RUN: usize = 1000;

/// Maximum number of seeds that are tried to find one planted bug.
const BUG_SEEDS: u64 = 500;

/// The arguments of the command line.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask conformance oracle",
    bin_name = "cargo xtask conformance oracle",
    about = "Compare with client-go, on random sequences; with --fixed, docs/CONFORMANCE.md must be up to date"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Write docs/CONFORMANCE.md
    #[arg(long, requires = "fixed", conflicts_with = "component")]
    write: bool,
    /// Compare only this component
    #[arg(long)]
    component: Option<String>,
    /// Print how often each behavior, such as a kind of operation, occurred, and how often it was compared
    /// with each client-go version
    #[arg(long)]
    counts: bool,
}

/// Compares the library with client-go. With `--planted`, checks instead that the comparison finds planted
/// bugs, which are deliberate defects.
///
/// Returns `true` if all checks passed.
///
/// # Errors
/// Returns an error if a program that runs client-go fails, or if a file can't be read or written.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let wanted = |component: &&&Component| {
        let name = arguments.component.as_ref();
        name.is_none_or(|name| name == component.name)
    };
    let components: Vec<_> = COMPONENTS.iter().filter(wanted).copied().collect();
    ensure!(!components.is_empty(), "there is no such component");
    let mut bench = Bench::new()?;
    if arguments.selection.planted.is_some() {
        find_bugs(&mut bench, &components)
    } else {
        let divergences = divergences::read()?;
        compare_all(&mut bench, arguments, &components, &divergences)
    }
}

/// Reads the fixed seeds from the file [`FIXED`].
///
/// # Errors
/// Returns an error if the file can't be read, or if it names an unknown component.
fn fixed() -> Result<Fixed> {
    let fixed = Fixed::read(FIXED)?;
    for name in fixed.joined.keys() {
        let known = COMPONENTS.iter().any(|component| component.name == name);
        ensure!(known, "{FIXED}: there is no component {name}");
    }
    Ok(fixed)
}

fn compare_all(
    bench: &mut Bench,
    arguments: &Arguments,
    components: &[&'static Component],
    divergences: &Divergences,
) -> Result<bool> {
    let fixed = fixed()?;
    let mut good = true;
    let mut shown = Vec::new();
    for component in components {
        let mut judge = Judge {
            bench,
            component,
            divergences,
            counts: arguments.counts,
        };
        let joined = fixed.joined.get(component.name);
        let joined = joined.map_or(&[][..], Vec::as_slice);
        for (origin, seeds) in arguments.selection.sets(|| Ok(fixed.and(joined)))? {
            let (as_it_must, coverage) = judge.judge(&seeds, origin)?;
            good &= as_it_must;
            if origin == Origin::Fixed {
                shown.push((*component, coverage));
            }
        }
    }
    if arguments.selection.fixed && arguments.component.is_none() {
        good &= report::keep(&report::text(&shown, divergences), arguments.write)?;
    }
    Ok(good)
}

/// Runs the comparison of one component with client-go, and prints the results.
struct Judge<'a> {
    bench: &'a mut Bench,
    component: &'static Component,
    divergences: &'a Divergences,
    counts: bool,
}

impl Judge<'_> {
    /// Runs one comparison per seed, and prints the results.
    ///
    /// Returns whether all comparisons passed, and the coverage.
    fn judge(&mut self, seeds: &[u64], origin: Origin) -> Result<(bool, Coverage)> {
        let component = self.component;
        let fresh = origin == Origin::Fresh;
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
            if fresh { "fresh " } else { "" },
            coverage.median(),
            begun.elapsed().as_secs_f64(),
        ));
        if self.counts {
            tell_counts(component, &coverage);
        }
        for finding in findings.iter_mut().take(SHOWN) {
            self.bench.shrink(component, None, finding)?;
            say(&self.bench.show(component, None, finding)?);
        }
        if let Some(finding) = findings.first().filter(|_| fresh) {
            say(&format!(
                "  to add the seed to the fixed ones, write in {FIXED}: {} = [{}]",
                component.name, finding.seed
            ));
        }
        let mut complaints = coverage.findings(component, origin);
        // A run over few seeds need not show every divergence.
        let complete = seeds.len() >= FULL_RUN;
        complaints.extend(strays(component, self.divergences, &coverage, complete));
        for complaint in &complaints {
            say(&format!("  {complaint}"));
        }
        Ok((failed == 0 && complaints.is_empty(), coverage))
    }
}

/// Compares the accepted differences with the list of intentional differences in [`divergences::FILE`].
///
/// Returns a message for each accepted difference that the file does not list for the component. If
/// `complete`, also returns a message for each listed difference that never occurred.
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
    let met = coverage.accepted().iter().map(|(name, _)| name);
    let mut strays: Vec<_> = met
        .filter(|name| !described(name))
        .map(|name| format!("{name} is not in {}", divergences::FILE))
        .collect();
    let of_it = divergences
        .iter()
        .filter(|(_, divergence)| divergence.component == component.name);
    let stale = of_it.filter(|(name, _)| complete && coverage.accepted().of(name.as_str()) == 0);
    strays.extend(
        stale.map(|(name, _)| format!("{name} never occurred; remove it if it is obsolete")),
    );
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
    for (name, times) in coverage.accepted().iter() {
        say(&format!("  {times:>7} intentional difference: {name}"));
    }
}

fn find_bugs(bench: &mut Bench, components: &[&Component]) -> Result<bool> {
    let seeds: Vec<_> = (1..=BUG_SEEDS).collect();
    let named = |bug: &Bug| components.iter().find(|of| of.name == bug.place());
    let bugs = Bug::ALL.iter().copied();
    find_each(bugs.filter(|bug| named(bug).is_some()), |bug| {
        let component = named(&bug).expect("only bugs of these components are searched");
        let mut tally = bench.run(component, Some(bug), &seeds, true)?;
        let Some(finding) = tally.findings.first_mut() else {
            let within = format!("{BUG_SEEDS} seeds");
            return Ok(Search::Missed { within });
        };
        bench.shrink(component, Some(bug), finding)?;
        Ok(Search::Found {
            by: format!("seed {}", finding.seed),
            shown: bench.show(component, Some(bug), finding)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_seeds_name_existing_components() {
        assert_eq!(fixed().unwrap().all, 1..2001);
    }
}
