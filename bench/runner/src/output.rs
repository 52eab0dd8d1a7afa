//! Prints text to the standard output of the runner.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints `text` and a line break to standard output.
///
/// # Errors
/// Returns an error if standard output is closed.
pub(crate) fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("standard output is closed")
}
