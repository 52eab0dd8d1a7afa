//! `cargo xtask fuzz`: gives the fuzz targets their corpus and mutations of it.
//!
//! The runner is a program of its own (`verify/fuzz`), so that this one does not need the library.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

pub(crate) fn run(root: &Path, options: &[String]) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["run", "--quiet", "--package", "kube-informer-fuzz"])
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
