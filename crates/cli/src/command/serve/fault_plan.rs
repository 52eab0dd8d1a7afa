//! `--fault`: a plan as text or in a file.
//!
//! Guarantees: a malformed plan is rejected before the server starts, with line and column of the mistake, and the file
//! if there is one.

use std::{fs, path::PathBuf, str::FromStr};

use anyhow::{Context as _, anyhow};
use kube_informer_apiserver::{PlanError, Server};

/// The argument of `--fault`.
#[derive(Clone, Debug)]
pub(crate) enum FaultPlan {
    Text(String),
    /// Given as `@FILE`.
    File(PathBuf),
}

/// A valid plan and its source.
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
    /// Reads and parses the plan.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or the plan has a mistake.
    pub(super) fn read(&self) -> anyhow::Result<Read> {
        let (text, origin) = match self {
            FaultPlan::Text(text) => (text.clone(), "--fault".to_owned()),
            FaultPlan::File(path) => {
                let shown = path.display().to_string();
                let text = fs::read_to_string(path).map_err(|error| {
                    anyhow!("can't read the fault plan {shown}: {error}; name another file with --fault @FILE")
                })?;
                (text, shown)
            }
        };
        check(&text).with_context(|| origin.clone())?;
        Ok(Read { text, origin })
    }
}

impl Read {
    /// Activates the plan.
    ///
    /// # Errors
    /// Returns an error if the plan restarts the server at an unknown revision; a server with stored objects has no
    /// revisions from before this start.
    pub(super) fn inject(&self, server: &Server, kept: bool) -> anyhow::Result<()> {
        let injected = server.faults().inject(&self.text);
        let origin = &self.origin;
        injected.map_err(|error| {
            if kept {
                anyhow!(
                    "{origin}: {error} (a data directory has no revisions from before this start)"
                )
            } else {
                anyhow!("{origin}: {error}")
            }
        })
    }
}

fn check(plan: &str) -> Result<(), PlanError> {
    Server::builder().faults(plan).map(drop)
}
