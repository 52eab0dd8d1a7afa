//! Defines the command-line options that `cargo xtask bench` and `cargo xtask bench real` share.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::samples::Samples;

/// Options of all measurements.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Measure only programs whose name contains this text
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) program: String,
    /// Measure nothing; read the standard error of an earlier run, which may be incomplete, from this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Use the programs of the last build
    #[arg(long)]
    built: bool,
}

impl Common {
    /// Returns whether the runner must build the programs before the measurement.
    pub(crate) fn builds(&self) -> bool {
        !self.built && self.log.is_none()
    }

    /// Returns the samples of the run whose log `--log` names. Returns `None` without `--log`.
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
