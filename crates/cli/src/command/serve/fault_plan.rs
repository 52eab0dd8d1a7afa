//! `--fault`: a plan as text, or in a file.
//!
//! Guarantees: a plan that can't be read is refused before anything is served, with the line and column of its mistake, and the file if it is in one.

use std::{fs, path::PathBuf, str::FromStr};

use anyhow::Context as _;
use kube_informer_apiserver::{PlanError, Server};

/// What `--fault` names.
#[derive(Clone, Debug)]
pub(crate) enum FaultPlan {
    Text(String),
    /// Typed as `@FILE`.
    File(PathBuf),
}

/// A plan that makes sense, and where it is from.
#[derive(Debug)]
pub(super) struct Read {
    text: String,
    origin: String,
}

impl FromStr for FaultPlan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(FaultPlan::File(PathBuf::from(path)));
        }
        check(text)?;
        Ok(FaultPlan::Text(text.to_owned()))
    }
}

impl FaultPlan {
    /// The plan itself.
    ///
    /// # Errors
    /// The file can't be read, or there is a mistake in it.
    pub(super) fn read(&self) -> anyhow::Result<Read> {
        let (text, origin) = match self {
            FaultPlan::Text(text) => (text.clone(), "--fault".to_owned()),
            FaultPlan::File(path) => {
                let shown = path.display().to_string();
                let text = fs::read_to_string(path).with_context(|| {
                    format!("can't read the fault plan {shown}: name another with --fault @FILE")
                })?;
                (text, shown)
            }
        };
        check(&text).with_context(|| origin.clone())?;
        Ok(Read { text, origin })
    }
}

impl Read {
    /// Puts the plan in force.
    ///
    /// # Errors
    /// It restarts the server at a revision that this does not have; one that was kept has none before this start.
    pub(super) fn inject(&self, server: &Server, kept: bool) -> anyhow::Result<()> {
        let injected = server.faults().inject(&self.text);
        injected.with_context(|| {
            if kept {
                format!(
                    "{} (a data directory keeps objects, and no revision from before this start)",
                    self.origin
                )
            } else {
                self.origin.clone()
            }
        })
    }
}

fn check(plan: &str) -> Result<(), PlanError> {
    Server::builder().faults(plan).map(drop)
}
