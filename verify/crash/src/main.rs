//! Kills an API server while clients write to it, restarts the server, and checks the stored objects.
//!
//! Each restart uses the same data directory. `cargo xtask crash` runs this program.

mod child;
mod object;
mod request;
mod definition;
mod informed;
mod known;
mod ownership;
mod shared;
mod file;
mod planted;
mod revisions;
mod writer;
mod watcher;
mod owner;
mod applier;
mod probe;
mod moment;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    harness::report::exit(match arguments.split_first() {
        Some((role, rest)) if role == child::ROLE => child::play(rest).map(|()| true),
        _ => run::Arguments::parse().run(),
    })
}
