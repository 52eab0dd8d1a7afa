//! Defines the command-line flags that all measured Rust programs share.
//!
//! The measured Go program has the same flags and `--encoding`. Its `--list` does not accept `pages`. This
//! module does not run a measurement: [`observe()`](crate::observe()) does.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

/// Setup and phases of a run.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Address of the neutral source (plain HTTP)
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub server: Option<String>,
    /// Kubeconfig of a real server; the parent process changes objects after this program prints `ready`
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Drop managedFields before an object is stored
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub prune: bool,
    /// Initial list, also after an expired watch; the default is streaming for kube-rs, and the library's
    /// default for ours
    #[arg(long, value_enum)]
    pub list: Option<List>,
    /// What the handler does with an event
    #[arg(long, value_enum, default_value_t = Handler::Objects)]
    pub handler: Handler,
    /// Number of events in the watch phase, after the sync
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub events: u64,
    /// Events per second; 0 sends them as fast as the program reads
    #[arg(long, default_value_t = 0, value_name = "PER_SECOND")]
    pub rate: u64,
    /// Number of relists, each after an expired watch
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub relist: u64,
}

/// The server from which a measured program lists and watches objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server<'a> {
    /// The neutral source, a server of generated objects that accepts commands. The value is its `http://`
    /// address.
    Neutral(&'a str),
    /// A real API server. The value is the path of its kubeconfig.
    Real(&'a PathBuf),
}

impl Flags {
    /// Returns the server that `--server` or `--kubeconfig` selects.
    ///
    /// # Errors
    /// Returns an error if neither `--server` nor `--kubeconfig` is set.
    pub fn source(&self) -> Result<Server<'_>> {
        let real = self.kubeconfig.as_ref().map(Server::Real);
        real.or_else(|| self.server.as_deref().map(Server::Neutral))
            .context("--server or --kubeconfig is missing; --help explains them")
    }
}

/// The kind of request with which a measured client gets the initial list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum List {
    /// A watch that starts with all objects (`sendInitialEvents`).
    Streaming,
    /// One list from the server's cache, possibly stale (`resourceVersion=0`).
    Whole,
    /// A list of the newest state in pages of 500.
    Pages,
}

/// The part of an object that the event handler of a measured client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Handler {
    /// Counts the containers of each added object, and reads the time stamp of each update.
    Objects,
    /// Reads the namespace and the name.
    Keys,
}
