//! Asks client-go and the library the same, and compares what they say.
//!
//! `cargo xtask conformance oracle` starts it; what it asks client-go with stands in
//! `verify/differential/oracle`.

mod bench;
mod cached;
mod compare;
mod component;
mod coverage;
mod delta_fifo;
mod divergences;
mod draw;
mod in_order;
mod indexer;
mod informer;
mod oracle;
mod planted;
mod rate_limiter;
mod report;
mod requests;
mod run;
mod seeds;
mod sequence;
mod shrink;
mod workqueue;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match run::run(&run::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
