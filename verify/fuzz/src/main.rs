//! Runs the fuzz targets on stable Rust: their corpus, and mutations of it that follow from a seed.
//!
//! `cargo xtask fuzz` starts it.
//! It guarantees that a seed makes the same inputs each time, that every input has bounded time and memory, and that one that fails is left in a file, as short as could be made.

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
