//! Lets informers live through drawn changes and faults, and checks that all comes right.
//!
//! `cargo xtask simulate` starts it.

mod coverage;
mod draw;
mod fault;
mod history;
mod life;
mod planted;
mod run;
mod seeds;
mod shrink;
mod stored;
mod truth;
mod wire;
mod world;

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
