//! Compares the library with client-go. The program runs the same random sequences of operations on both, and
//! compares the answers.
//!
//! `cargo xtask conformance oracle` runs this program. The Go programs in `verify/differential/oracle` run
//! the sequences on client-go.

mod sequence;
mod draw;
mod cached;
mod oracle;
mod planted;
mod component;
mod rate_limiter;
mod workqueue;
mod delta_fifo;
mod in_order;
mod indexer;
mod informer;
mod requests;
mod components;
mod compare;
mod coverage;
mod divergences;
mod shrink;
mod bench;
mod report;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    harness::report::exit(run::run(&run::Arguments::parse()))
}
