//! Runs a subcommand. Each subcommand has its own module.
//!
//! Guarantees: a signal ends every subcommand cleanly within seconds.

pub(crate) mod demo;
pub(crate) mod serve;

use anyhow::Context as _;

use crate::interrupt::{Interrupt, Signal};

/// A subcommand with the options from its command line.
#[derive(Debug)]
pub(crate) enum Command {
    Demo(demo::Options),
    Serve(serve::Options),
}

/// The reason why a subcommand ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The subcommand completed.
    Done,
    /// A signal ended the subcommand.
    Ended(Signal),
}

/// Runs the subcommand until it completes or a signal arrives.
///
/// # Errors
/// Returns an error that contains the reason and the next step.
pub(crate) async fn run(command: Command) -> anyhow::Result<Ending> {
    let mut interrupt = Interrupt::listen().context("can't install a signal handler")?;
    match command {
        Command::Demo(options) => demo::run(&options, &mut interrupt).await,
        Command::Serve(options) => serve::run(&options, &mut interrupt).await,
    }
}
