//! `cargo xtask bench`: compares the informer with its peers, side by side.
//!
//! It is a program of a workspace of its own (`bench/runner`), so that neither this one nor the library is
//! built with what only the comparison needs.

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

pub(crate) fn run(root: &Path, options: &[String]) -> Result<ExitCode> {
    let status = Command::new(env!("CARGO"))
        .current_dir(root.join("bench"))
        .args(["run", "--quiet", "--release", "--package", "runner"])
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
