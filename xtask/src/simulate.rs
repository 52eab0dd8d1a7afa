//! `cargo xtask simulate`: lets informers live through drawn changes and faults.
//!
//! The simulation is a program of its own (`verify/simulation`), so that this one does not need the library.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

pub(crate) fn run(root: &Path, options: &[String]) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["run", "--quiet", "--package", "kube-informer-simulation"])
        .arg("--")
        .args(options)
        .status()
        .context("cargo can't be run")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
