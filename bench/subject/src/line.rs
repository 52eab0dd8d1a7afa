//! The line of JSON that a subcommand prints.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// The one line of a subcommand.
pub(crate) fn print(line: &serde_json::Value) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("nobody reads the line")
}
