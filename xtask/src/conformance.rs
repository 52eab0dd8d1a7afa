//! `cargo xtask conformance`: runs what compares the library with others.
//!
//! The comparison with client-go is a program of its own (`verify/differential`), so that this one needs
//! neither the library nor Go.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

pub(crate) fn oracle(root: &Path, options: &[String]) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "run",
            "--quiet",
            "--package",
            "kube-informer-differential",
            "--",
        ])
        .args(options)
        .status()
        .context("cargo can't be run")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
