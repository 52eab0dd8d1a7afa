//! Runs the subcommand that the command line selects. Each subcommand has its own module.
//!
//! Guarantees: when a signal arrives, each subcommand removes its temporary files and objects before it ends.

pub(crate) mod demo;
pub(crate) mod serve;
pub(crate) mod stand_in;

use anyhow::Context as _;

use crate::interrupt::{Interrupt, Signal};

#[derive(Debug)]
pub(crate) enum Command {
    Demo(demo::Options),
    Serve(serve::Options),
    /// Started under the name `kube-apiserver`.
    KubeApiserver(stand_in::KubeApiserver),
    /// Started under the name `etcd`.
    Etcd(stand_in::Etcd),
}

/// The reason why a subcommand ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Ended(Signal),
}

/// Runs the subcommand until it completes or a signal arrives.
pub(crate) async fn run(command: Command) -> anyhow::Result<Ending> {
    let mut interrupt = Interrupt::listen().context("can't install a signal handler")?;
    match command {
        Command::Demo(options) => demo::run(&options, &mut interrupt).await,
        Command::Serve(options) => serve::run(&options, &mut interrupt).await,
        Command::KubeApiserver(options) => stand_in::kube_apiserver(&options, &mut interrupt).await,
        Command::Etcd(options) => stand_in::etcd(&options, &mut interrupt).await,
    }
}
