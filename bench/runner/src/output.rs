//! Standard output of the program.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints a text and a line break.
///
/// # Errors
/// Returns an error if standard output is closed.
pub(crate) fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("standard output is closed")
}
