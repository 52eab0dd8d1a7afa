//! Reads the Git commit from which a release is made.
//!
//! It is an error if the working tree has uncommitted changes, or if the version's tag is on another commit.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::process;

/// The Git commit at `HEAD`, read from a working tree without uncommitted changes.
pub(super) struct Commit {
    pub(super) id: String,
    /// Commit time in seconds since the Unix epoch.
    pub(super) seconds: String,
    /// Commit time in RFC 3339 format, in UTC.
    pub(super) time: String,
}

impl Commit {
    /// Returns the current commit of the Git repository in `root`.
    ///
    /// # Errors
    ///
    /// Returns an error if the working tree has changes, or the tag of `version` is on another commit.
    pub(super) fn read(root: &Path, version: &str) -> Result<Commit> {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(root).env("TZ", "UTC").args(arguments);
            process::output(&mut git)
        };
        let changed = git(&["status", "--porcelain"])?;
        ensure!(
            changed.is_empty(),
            "the working tree has changes, and a release is made from a commit; commit or remove them:\n{}",
            changed.trim_end()
        );
        let date = "--date=iso-strict-local";
        let described = git(&["log", "--max-count=1", "--format=%H %ct %cd", date])?;
        let [id, seconds, time] = described.split_whitespace().collect::<Vec<_>>()[..] else {
            bail!("the output of git log has an unknown form: {described:?}");
        };
        let tag = tag(version);
        if !git(&["tag", "--list", &tag])?.is_empty() {
            let tagged = git(&["rev-list", "--max-count=1", &tag])?;
            ensure!(
                tagged.trim() == id,
                "the tag {tag} is on another commit ({}), so {version} is already released; raise `version` in Cargo.toml, or check out the tag",
                tagged.trim()
            );
        }
        Ok(Commit {
            id: id.to_owned(),
            seconds: seconds.to_owned(),
            time: time.to_owned(),
        })
    }
}

/// Returns the name of the Git tag for a version, for example `v0.1.0`.
pub(super) fn tag(version: &str) -> String {
    format!("v{version}")
}
