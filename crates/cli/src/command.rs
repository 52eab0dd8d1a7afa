//! What the program can be asked to do; one file per subcommand.
//!
//! Guarantees: a signal ends any of them in order and within seconds.

pub(crate) mod demo;
pub(crate) mod serve;

use anyhow::Context as _;

use crate::interrupt::{Interrupt, Signal};

/// A subcommand and its options.
#[derive(Debug)]
pub(crate) enum Command {
    Demo(demo::Options),
    Serve(serve::Options),
}

/// How a subcommand ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// What was asked for has happened.
    Done,
    /// A signal came first.
    Ended(Signal),
}

/// Does what was asked.
///
/// # Errors
/// It can't be done; the message says why, and what to do.
pub(crate) async fn run(command: Command) -> anyhow::Result<Ending> {
    let mut interrupt = Interrupt::listen().context("the system refuses a signal handler")?;
    match command {
        Command::Demo(options) => demo::run(&options, &mut interrupt).await,
        Command::Serve(options) => serve::run(&options, &mut interrupt).await,
    }
}
