//! What an example prints, line by line.
//!
//! Every line is kept, so that the example can wait for what it is about to show, and fails if that
//! does not come or comes in another order.

#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::time::Duration;

use anyhow::ensure;
use tokio::{sync::watch, time::timeout};

/// How long a line may take: far longer than a distant cluster needs, but the program has to end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The lines printed so far. Copies are the same transcript, which lives as long as the program, so
/// that handlers can have one without further ado.
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

    /// Waits until these lines have been printed, in this order, others in between or not.
    ///
    /// # Errors
    /// They have not come within [`TIMEOUT`]; the error names the first one that is missing.
    pub(crate) async fn shows(self, expected: &[&str]) -> anyhow::Result<()> {
        let mut printed = self.lines.subscribe();
        let complete = printed.wait_for(|lines| missing(lines, expected).is_none());
        let in_time = timeout(TIMEOUT, complete).await.is_ok();
        let line = missing(&self.lines.borrow(), expected).unwrap_or_default();
        ensure!(in_time, "{line:?} was not printed, or not where it belongs");
        Ok(())
    }
}

/// The first line that is missing for `expected` to be part of `lines`, in order.
fn missing<'a>(lines: &[String], expected: &[&'a str]) -> Option<&'a str> {
    let mut lines = lines.iter();
    let mut expected = expected.iter().copied();
    expected.find(|wanted| !lines.any(|line| line == wanted))
}
