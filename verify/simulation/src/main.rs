//! Simulates informers under random changes and faults, and checks that they recover.
//!
//! `cargo xtask simulate` runs this program.

mod fault;
mod life;
mod draw;
mod coverage;
mod truth;
mod history;
mod stored;
mod wire;
mod planted;
mod world;
mod shrink;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    harness::report::exit(run::run(&run::Arguments::parse()))
}
