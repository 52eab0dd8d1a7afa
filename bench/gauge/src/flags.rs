//! What every program that is measured may be told; the Go program takes the same flags.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

/// How a program is set up, and what it goes through.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Address of the neutral source (plain HTTP)
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub server: Option<String>,
    /// Kubeconfig of a real server; the parent process writes the events after this program prints `ready`
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Whether managedFields are dropped before an object is kept
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub prune: bool,
    /// Initial list, also after an expired watch; the default is streaming for kube-rs, and the library's
    /// default for ours
    #[arg(long, value_enum)]
    pub list: Option<List>,
    /// What the handler does with an event
    #[arg(long, value_enum, default_value_t = Handler::Objects)]
    pub handler: Handler,
    /// How many events are watched once everything is synced
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub events: u64,
    /// Events a second; 0 is as fast as they are taken
    #[arg(long, default_value_t = 0, value_name = "PER_SECOND")]
    pub rate: u64,
    /// How often everything is listed again, after a watch that has expired
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub relist: u64,
}

/// The server that a program lists from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server<'a> {
    /// The neutral source at an address.
    Neutral(&'a str),
    /// A real server, named by a kubeconfig.
    Real(&'a PathBuf),
}

impl Flags {
    /// The server to list from.
    ///
    /// # Errors
    /// The flags name none.
    pub fn source(&self) -> Result<Server<'_>> {
        let real = self.kubeconfig.as_ref().map(Server::Real);
        real.or_else(|| self.server.as_deref().map(Server::Neutral))
            .context("--server or --kubeconfig is missing; --help explains them")
    }
}

/// How everything is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum List {
    /// A watch that begins with everything (`sendInitialEvents`).
    Streaming,
    /// One list of any state in the server's cache (`resourceVersion=0`).
    Whole,
    /// A list of the newest state in pages of 500.
    Pages,
}

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Handler {
    /// Looks into each object: counts the containers of its specification, and reads when it was sent.
    Objects,
    /// Takes the namespace and the name.
    Keys,
}
