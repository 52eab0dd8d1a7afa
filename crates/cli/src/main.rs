//! `kubectl-informer`: exit codes and the last word, nothing else.
//!
//! Guarantees: 0 when what was asked for has happened, 1 when it has not, 2 when it was asked wrongly, 130 and 143 after a signal; every failure is one line that says what to do.

mod args;
mod command;
mod control_plane;
mod interrupt;
mod output;

use std::{process::ExitCode, time::Duration};

use crate::{
    args::{Asked, Wanted},
    command::Ending,
};

/// How long a task that blocks, such as a look-up of a host name, may hold up the end.
const LAST_TASKS: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let wanted = match args::read() {
        Asked::For(wanted) => wanted,
        Asked::Help(text) => {
            output::print(text);
            return ExitCode::SUCCESS;
        }
        Asked::Wrongly(what) => {
            output::complain(what);
            return ExitCode::from(2);
        }
    };
    match run(wanted) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Ended(signal)) => ExitCode::from(signal.exit_code()),
        Err(error) => {
            output::complain(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: Wanted) -> anyhow::Result<Ending> {
    tracing_subscriber::fmt()
        .with_max_level(wanted.verbosity)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ending = runtime.block_on(command::run(wanted.command));
    runtime.shutdown_timeout(LAST_TASKS);
    ending
}
