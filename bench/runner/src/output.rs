//! What the program prints to standard output.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints a text and ends its line.
///
/// # Errors
/// Standard output is closed.
pub(crate) fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("nobody reads the tables")
}
