//! Runs the cases in `verify/cases` on the embedded server or on a real kube-apiserver, and compares the
//! responses with the expected ones.
//!
//! `cargo xtask conformance cases` runs this program.

mod command;
mod case;
mod answer;
mod layout;
mod trace;
mod target;
mod run;
mod divergences;
mod compare;

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    harness::report::exit(compare::Arguments::parse().run().await)
}
