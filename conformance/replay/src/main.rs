//! Asks client-go and the library the same, and compares what they say.
//!
//! `cargo xtask conformance oracle` starts it; what it asks client-go with stands in
//! `conformance/oracle`.

mod bench;
mod cached;
mod compare;
mod component;
mod coverage;
mod delta_fifo;
mod divergences;
mod draw;
mod oracle;
mod planted;
mod run;
mod sequence;
mod shrink;

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
