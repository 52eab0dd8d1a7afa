//! `cargo xtask crash`: kills a server under writes, again and again.
//!
//! It is a program of its own (`verify/crash`), so that this one does not need the server.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

pub(crate) fn run(root: &Path, options: &[String]) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["run", "--quiet", "--package", "kube-informer-crash"])
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
