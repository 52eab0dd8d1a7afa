//! Defines the command-line flags that all measured Rust programs share.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

/// Flags that select the server and the phases of a measurement
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Address of the neutral source, the server of generated objects (plain HTTP)
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub server: Option<String>,
    /// Path of the kubeconfig of a real API server
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Remove `managedFields` from each object before the cache stores the object
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub prune: bool,
    /// Kind of request that lists all objects; default: `streaming` in the kube-rs program, and
    /// kube-informer's own default in the kube-informer program
    #[arg(long, value_enum)]
    pub list: Option<List>,
    /// Part of each event's object that the handler reads
    #[arg(long, value_enum, default_value_t = Handler::Objects)]
    pub handler: Handler,
    /// Number of events in the watch phase, after the sync
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub events: u64,
    /// Number of events per second in the watch phase; 0 means no limit
    #[arg(long, default_value_t = 0, value_name = "PER_SECOND")]
    pub rate: u64,
    /// Number of relists in the relist phase, which follows the watch phase
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub relist: u64,
}

/// The server from which a measured program lists and watches objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server<'a> {
    /// The benchmark's server of generated objects, at this `http://` address.
    Neutral(&'a str),
    /// A real API server. The value is the path of the kubeconfig.
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

/// The kind of request with which a measured client lists all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum List {
    /// A watch that starts with an `ADDED` event for each object (`sendInitialEvents`).
    Streaming,
    /// One list request without pages, answered from the server's cache and possibly stale
    /// (`resourceVersion=0`).
    Whole,
    /// List requests, one per page of 500 objects, answered with the newest state (no `resourceVersion`).
    Pages,
}

/// The part of each object that the event handler of a measured program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Handler {
    /// The handler counts the containers of each added object. To measure the latency of each update, the
    /// handler reads the time of the update from the annotation `bench/ts`.
    Objects,
    /// The handler reads only the namespace and the name of each object.
    Keys,
}
