//! Kills a server with a data directory under writes, starts it again, and looks what is left.
//!
//! `cargo xtask crash` starts it.

mod child;
mod informed;
mod known;
mod object;
mod planted;
mod revisions;
mod run;
mod watcher;
mod writer;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((role, rest)) if role == child::ROLE => child::play(rest),
        _ => run::Arguments::parse().run(),
    };
    report(done)
}

fn report(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
