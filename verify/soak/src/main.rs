//! Runs informers against a real kube-apiserver and etcd that are killed, replaced and restored.
//!
//! `cargo xtask soak` runs this program.

mod setback;
mod machine;
mod proxy;
mod wire;
mod audit;
mod object;
mod subject;
mod writer;
mod cluster;
mod fleet;
mod figures;
mod failure;
mod run;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    harness::report::exit(run::Arguments::parse().run())
}
