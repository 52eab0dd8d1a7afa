//! Output of a subcommand.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints the line of JSON.
pub(crate) fn print(line: &serde_json::Value) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("standard output is closed")
}
