//! Compares the embedded server with a real kube-apiserver.
//!
//! - `cargo xtask conformance cases` runs the cases in `verify/cases` on one of them, and compares the
//!   responses with the expected ones.
//! - `cargo xtask conformance requests` runs random programs of requests on both.

mod informer_command;
mod command;
mod case;
mod json;
mod answer;
mod layout;
mod trace;
mod manifest;
mod target;
mod proxy;
mod clients;
mod informer;
mod run;
mod divergences;
mod compare;
mod requests;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime;

#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask conformance")]
enum Command {
    Cases(compare::Arguments),
    Requests(requests::Arguments),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime
        .map_err(Into::into)
        .and_then(|runtime| match command {
            Command::Cases(arguments) => runtime.block_on(arguments.run()),
            Command::Requests(arguments) => arguments.run(&runtime),
        });
    harness::report::exit(result)
}
