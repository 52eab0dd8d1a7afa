//! Defines the command-line options that `cargo xtask bench` and `cargo xtask bench real` share.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::samples::Samples;

/// Options that both `cargo xtask bench` and `cargo xtask bench real` accept
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Measure only the cases whose name contains this text, such as `kube-rs`
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) program: String,
    /// Measure nothing; read the results from this file, which contains the standard error of an earlier
    /// complete or interrupted run
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Build nothing; use the programs of the last build
    #[arg(long)]
    built: bool,
}

impl Common {
    /// Returns whether the runner must build the programs.
    pub(crate) fn builds(&self) -> bool {
        !self.built && self.log.is_none()
    }

    /// Returns the samples in the file that `--log` names, or `None` without this option.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or is not the log of a run.
    pub(crate) fn logged(&self) -> Result<Option<Samples>> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(log);
        let text = text.with_context(|| format!("can't read {}", log.display()))?;
        Samples::of_log(&text).map(Some)
    }
}
