//! Runs the fuzz targets on stable Rust, with their corpus and with random mutations of the corpus.
//!
//! `cargo xtask fuzz` starts this program. The same seed always produces the same inputs. An input that makes
//! a target panic is shortened and saved to a file.
//!
//! Each target runs in its own process. The process aborts if an input runs for more than 10 seconds. On
//! Unix, the address space of the process is limited to 2 GiB.

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
