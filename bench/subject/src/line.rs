//! Prints the result of a measurement as JSON to standard output.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints `line` as one line of JSON to standard output.
pub(crate) fn print(line: &serde_json::Value) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").context("standard output is closed")
}
