//! `cargo xtask simulate`: runs the simulation of the informer's tests for chosen seeds.
//!
//! The simulation itself is a test (`crates/informer/tests/it/simulation.rs`), so that
//! `cargo test` runs a few seeds of it everywhere; this command runs as many as one wants, and
//! replays one that failed.

use std::{
    ops::Range,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

/// The test that lives through the seeds of its environment.
const TEST: &str = "simulation::after_any_faults_cache_and_histories_are_the_servers_state";

/// Reads `A..B`.
pub(crate) fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("{text:?} is not A..B with A less than B, for example 1..51");
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wanted());
    let seeds = number(from)?..number(to)?;
    if seeds.is_empty() {
        return Err(wanted());
    }
    Ok(seeds)
}

pub(crate) fn run(root: &Path, seeds: &Range<u64>) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "test",
            "--quiet",
            "--package",
            "kube-informer",
            "--test",
            "it",
            "--",
        ])
        .args(["--exact", "--nocapture", TEST])
        .env("SIMULATE_SEEDS", format!("{}..{}", seeds.start, seeds.end))
        .status()
        .context("cargo can't be run")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::seeds;

    #[test]
    fn seeds_are_a_range_without_its_end() {
        assert_eq!(seeds("1..51"), Ok(1..51));
        for wrong in ["", "5", "1..", "..5", "5..5", "6..5", "a..b", "1..=5"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }
}
