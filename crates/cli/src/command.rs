//! The subcommands, one module each.
//!
//! Guarantees: a signal ends any of them cleanly within seconds.

pub(crate) mod demo;
pub(crate) mod serve;

use anyhow::Context as _;

use crate::interrupt::{Interrupt, Signal};

/// A subcommand with its options.
#[derive(Debug)]
pub(crate) enum Command {
    Demo(demo::Options),
    Serve(serve::Options),
}

/// How a successful subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The subcommand completed.
    Done,
    /// A signal ended the subcommand.
    Ended(Signal),
}

/// Runs the subcommand.
///
/// # Errors
/// Returns an error with the reason and the next step.
pub(crate) async fn run(command: Command) -> anyhow::Result<Ending> {
    let mut interrupt = Interrupt::listen().context("can't install a signal handler")?;
    match command {
        Command::Demo(options) => demo::run(&options, &mut interrupt).await,
        Command::Serve(options) => serve::run(&options, &mut interrupt).await,
    }
}
