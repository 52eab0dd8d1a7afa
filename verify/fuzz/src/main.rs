//! Runs the fuzz targets on stable Rust, with their corpus and with random mutations of the corpus.
//!
//! `cargo xtask fuzz` starts this program. The same seed always produces the same inputs. Each input may run
//! for 10 seconds, and the process of each target may use 2 GiB of memory. An input that makes a target panic
//! is shortened and saved to a file.

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
