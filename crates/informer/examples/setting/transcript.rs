//! The printed lines of an example.
//!
//! Every line is recorded. The example can wait for expected lines, and fails if they are missing or in another
//! order.

#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::time::Duration;

use anyhow::ensure;
use tokio::{sync::watch, time::timeout};

/// Maximum wait for a line; far longer than a distant cluster needs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The lines printed so far.
///
/// Copies share the same transcript. It is never freed, so a handler can own a copy.
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

    /// Prints a line.
    pub(crate) fn say(self, line: impl Into<String>) {
        let line = line.into();
        println!("{line}");
        self.lines.send_modify(|lines| lines.push(line));
    }

    /// Waits until these lines have been printed in this order, possibly with other lines between them.
    ///
    /// # Errors
    /// The lines are not complete within [`TIMEOUT`]; the error names the first missing line.
    pub(crate) async fn shows(self, expected: &[&str]) -> anyhow::Result<()> {
        let mut printed = self.lines.subscribe();
        let complete = printed.wait_for(|lines| missing(lines, expected).is_none());
        let in_time = timeout(TIMEOUT, complete).await.is_ok();
        let line = missing(&self.lines.borrow(), expected).unwrap_or_default();
        ensure!(in_time, "{line:?} was not printed, or in another order");
        Ok(())
    }
}

/// Returns the first line of `expected` that `lines` does not contain in order.
fn missing<'a>(lines: &[String], expected: &[&'a str]) -> Option<&'a str> {
    let mut lines = lines.iter();
    let mut expected = expected.iter().copied();
    expected.find(|wanted| !lines.any(|line| line == wanted))
}
