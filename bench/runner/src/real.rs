//! `cargo xtask bench real`: what a first list and events cost a real kube-apiserver, by client.
//!
//! Guarantees: each block of runs has a kube-apiserver that has just begun, over the same etcd, so that
//! neither its heap nor its memory are those that another client left behind; runs of a block follow each
//! other, blocks of different clients take turns.
//!
//! The server's garbage collector runs when its heap has grown, whoever made it grow. A run may get a whole
//! collection or none of it, up to 1.5 s of CPU time, so that the least of many runs is compared.

mod clients;
mod meter;
mod pods;
mod report;
mod session;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kube_informer_realserver::Binaries;
use tokio::signal::unix::{SignalKind, signal};

use self::session::Session;
use crate::{
    case::Program,
    child::{Chunks, Programs, target},
    document::Document,
    machine, root,
    samples::Samples,
    say,
};

/// What may be asked for of the measurement against a real server.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Blocks of runs of each client
    #[arg(long, default_value_t = 2, value_name = "N")]
    rounds: usize,
    /// Runs of a block
    #[arg(long, default_value_t = 5, value_name = "N")]
    runs: usize,
    /// Pods in the server
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pods: usize,
    /// Changes of pods while clients watch
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    events: usize,
    /// Changes a second
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// How many clients list at the same time; may be given several times
    #[arg(long, default_values_t = [1, 16], value_name = "N")]
    clients: Vec<usize>,
    /// Only programs whose name contains this; writes nothing
    #[arg(long, default_value = "", value_name = "TEXT")]
    program: String,
    /// One run with 500 pods, and 1 and 2 clients: whether everything works; writes nothing
    #[arg(long)]
    quick: bool,
    /// Measures nothing, and takes what an earlier run wrote to standard error
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Takes the programs as they were built last
    #[arg(long)]
    built: bool,
}

/// The events of a run without any client: what the writes themselves cost the server.
const NO_CLIENT: &str = "no client";

/// What is served, as `Samples` knows it.
const SERVED: &str = "served";

/// Clients, and how each lists. What stands before the last comma is one client, whose ways are compared.
const CASES: [(&str, Program, &str); 8] = [
    ("client-go, protobuf, streaming", Program::ClientGo, ""),
    (
        "client-go, protobuf, whole",
        Program::ClientGo,
        "--list whole",
    ),
    ("kube-rs, streaming", Program::KubeRs, ""),
    ("kube-rs, pages of 500", Program::KubeRs, "--list pages"),
    (
        "ours, streaming",
        Program::Subject,
        "--store typed --list streaming",
    ),
    (
        "ours, whole",
        Program::Subject,
        "--store typed --list whole",
    ),
    (
        "ours, pages of 500",
        Program::Subject,
        "--store typed --list pages",
    ),
    (
        "ours packed, pages of 500",
        Program::Subject,
        "--store packed --list pages",
    ),
];

/// Measures, prints the tables, and writes them to `BENCHMARKING.md`.
///
/// # Errors
/// Something can't be built, the server or a client fails, or an interrupt arrives.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut options = options.clone();
    if options.quick {
        (options.rounds, options.runs, options.pods) = (1, 1, 500);
        (options.events, options.clients) = (200, vec![1, 2]);
    }
    let root = root()?;
    let programs = Programs::of(root, Chunks::Server);
    if !options.built && options.log.is_none() {
        programs.build(&["--package=subject", "--package=peer-kube-rs"])?;
    }
    let binaries = Binaries::build(&target(root))?;
    let servers = binaries.versions().iter();
    let servers = servers.map(|(name, version)| ((*name).to_owned(), version.clone()));
    let versions: Vec<_> = servers.chain(programs.versions()?).collect();
    let settings = machine::settings(&versions)?;
    let samples = if let Some(log) = &options.log {
        let text = std::fs::read_to_string(log);
        Samples::of_log(&text.with_context(|| format!("can't read {}", log.display()))?)?
    } else {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(measure_until_interrupted(&options, &programs, &binaries))?
    };
    let tables = report::tables(&options.clients, &samples);
    say(&format!("{settings}\n{tables}"))?;
    if options.quick || !options.program.is_empty() {
        return Ok(());
    }
    let mut document = Document::read(root.join("BENCHMARKING.md"))?;
    document.set("real settings", &settings);
    document.set("real", &tables);
    document.write()
}

/// Dropping the measurement ends the server and the clients.
async fn measure_until_interrupted(
    options: &Options,
    programs: &Programs,
    binaries: &Binaries,
) -> Result<Samples> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
        measured = Session::measure(options, programs, binaries) => measured,
    }
}
