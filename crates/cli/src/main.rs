//! The entry point of `kubectl-informer`: runs the command, sets the exit code, and prints the final error.
//!
//! Guarantees: the exit code is 0 on success, 1 on failure, 2 for invalid arguments, 130 after SIGINT, and
//! 143 after SIGTERM. Every failure is reported as one line, which also states what the user can do next.

mod interrupt;
mod output;
mod command;
mod args;

use std::{process::ExitCode, time::Duration};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer as _, filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{
    args::{Asked, Wanted},
    command::Ending,
};

/// Maximum time that blocking tasks, such as a host name lookup, can delay the exit.
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

fn log_to_stderr(verbosity: LevelFilter) {
    let mut shown = Targets::new().with_default(verbosity);
    if verbosity <= LevelFilter::ERROR {
        // kube logs the errors that it returns, and the program reports returned errors itself.
        shown = shown.with_target("kube_client", LevelFilter::OFF);
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines.with_filter(shown))
        .init();
}

fn run(wanted: Wanted) -> anyhow::Result<Ending> {
    log_to_stderr(wanted.verbosity);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ending = runtime.block_on(command::run(wanted.command));
    runtime.shutdown_timeout(LAST_TASKS);
    ending
}
