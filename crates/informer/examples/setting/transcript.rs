//! Prints and records the output lines of an example, and waits for expected lines.
//!
//! A wait fails if an expected line is not printed in time, or if the expected lines are printed in another
//! order.

#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::time::Duration;

use anyhow::ensure;
use tokio::{sync::watch, time::timeout};

/// Maximum time to wait for expected lines.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Record of the lines that the example has printed so far.
///
/// Copies share the same record. The record is never freed, because handlers may keep copies until the
/// program ends.
#[derive(Clone, Copy)]
pub(crate) struct Transcript {
    lines: &'static watch::Sender<Vec<String>>,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self {
            lines: Box::leak(Box::default()),
        }
    }

    /// Prints a line and records it.
    pub(crate) fn say(self, line: impl Into<String>) {
        let line = line.into();
        println!("{line}");
        self.lines.send_modify(|lines| lines.push(line));
    }

    /// Waits until all lines in `expected` have been printed in this order.
    ///
    /// Other lines may be printed between the expected lines.
    ///
    /// # Errors
    /// Returns an error after [`TIMEOUT`]. The error contains the first expected line that is missing.
    pub(crate) async fn shows(self, expected: &[&str]) -> anyhow::Result<()> {
        let mut printed = self.lines.subscribe();
        let complete = printed.wait_for(|lines| missing(lines, expected).is_none());
        let in_time = timeout(TIMEOUT, complete).await.is_ok();
        let line = missing(&self.lines.borrow(), expected).unwrap_or_default();
        ensure!(in_time, "{line:?} was not printed, or in another order");
        Ok(())
    }
}

/// Returns the first line of `expected` that is missing in `lines`, or `None` if no line is missing.
///
/// A line counts as missing if it does not occur after the preceding expected lines.
fn missing<'a>(lines: &[String], expected: &[&'a str]) -> Option<&'a str> {
    let mut lines = lines.iter();
    let mut expected = expected.iter().copied();
    expected.find(|wanted| !lines.any(|line| line == wanted))
}
