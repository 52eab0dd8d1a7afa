//! Runs the fuzz targets on stable Rust: their corpus, and mutations of it that follow from a seed.
//!
//! `cargo xtask fuzz` starts it. Guarantees: a seed produces the same inputs each time, every input has
//! limited time and memory, and a failing input is shortened and saved to a file.

mod corpus;
mod minimize;
mod mutate;
mod smoke;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    harness::report::exit(run::run(&run::Arguments::parse()))
}
