//! Reads the fault plan of `serve --fault`, and activates the plan on the embedded server.
//!
//! A fault plan is a text that lists faults, such as rejected requests or closed watches. The argument of
//! `--fault` is either the text or the name of a file that contains the text.
//!
//! Guarantees: a malformed plan is rejected before the server starts. The error contains the line and the
//! column of the mistake. If the plan is in a file, the error also contains the file's name.
//!
//! The module does not define the syntax of fault plans. The crate `kube_informer_apiserver` defines it.

use std::{fs, path::PathBuf, str::FromStr};

use anyhow::{Context as _, anyhow};
use kube_informer_apiserver::{PlanError, Server};

/// The argument of `--fault`: the text of a fault plan, or the path of a file that contains the text.
#[derive(Clone, Debug)]
pub(crate) enum FaultPlan {
    Text(String),
    /// Path of the file. The user types the argument as `@FILE`.
    File(PathBuf),
}

/// The text of a fault plan with valid syntax, and the origin of the text: `--fault` or the file's path.
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
    /// Returns the text of the plan after checking its syntax.
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
    /// Activates the plan on the server.
    ///
    /// `kept` is true if the server has a data directory. It affects only the text of the error.
    ///
    /// # Errors
    /// Returns an error if the plan resets the server to a revision that the server's history does not
    /// contain.
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
