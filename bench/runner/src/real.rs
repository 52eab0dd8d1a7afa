//! `cargo xtask bench real`: measures the cost of the initial list and of events for a real kube-apiserver,
//! by client.
//!
//! Guarantees: each block of runs starts a new kube-apiserver over the same etcd, so the heap that another
//! client caused has no influence. The runs of a block follow each other. Blocks of different clients
//! alternate.
//!
//! The server collects garbage when its heap has grown, also because of earlier runs. A run may therefore
//! include a complete collection, up to 1.5 s of CPU time, or no collection. The tables compare the minimum
//! of many runs.

mod clients;
mod meter;
mod pods;
mod report;
mod session;

use anyhow::{Result, bail};
use clap::Args;
use kube_informer_realserver::Binaries;
use tokio::signal::unix::{SignalKind, signal};

use self::session::Session;
use crate::{
    case::Program,
    child::{Chunks, Programs, root, target},
    document::Document,
    machine,
    options::Common,
    output::say,
    samples::Samples,
};

/// Command-line options of `cargo xtask bench real`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Number of blocks of runs per client
    #[arg(long, default_value_t = 2, value_name = "N")]
    rounds: usize,
    /// Number of runs per block
    #[arg(long, default_value_t = 5, value_name = "N")]
    runs: usize,
    /// Number of pods in the server
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pods: usize,
    /// Number of changes of pods while clients watch
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    events: usize,
    /// Changes per second
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Number of clients that list at the same time; may be repeated
    #[arg(long, default_values_t = [1, 16], value_name = "N")]
    clients: Vec<usize>,
    /// Run once with 500 pods, and 1 and 2 clients, to check that everything works; writes nothing
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

/// Name of the runs without a client. They measure the server's cost of the writes alone.
const NO_CLIENT: &str = "no client";

/// Name under which [`Samples`] stores the number of pods in the server, and their mean size in bytes of
/// JSON.
const SERVED: &str = "served";

/// Name, program and arguments of each measured client. Clients whose names are equal up to the last comma
/// differ only in their initial list, and the tables compare them.
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

/// Measures the clients, prints the tables, and writes the tables to `BENCHMARKING.md`.
///
/// # Errors
/// Returns an error if a build, the server or a client fails, or if the process is interrupted.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut options = options.clone();
    if options.quick {
        (options.rounds, options.runs, options.pods) = (1, 1, 500);
        (options.events, options.clients) = (200, vec![1, 2]);
    }
    let root = root()?;
    let programs = Programs::of(root, Chunks::Server);
    if options.common.builds() {
        programs.build(&["--package=subject", "--package=peer-kube-rs"])?;
    }
    let binaries = Binaries::build(&target(root))?;
    let servers = binaries.versions().iter();
    let servers = servers.map(|(name, version)| ((*name).to_owned(), version.clone()));
    let versions: Vec<_> = servers.chain(programs.versions()?).collect();
    let settings = machine::settings(&versions)?;
    let samples = if let Some(samples) = options.common.logged()? {
        samples
    } else {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(measure_until_interrupted(&options, &programs, &binaries))?
    };
    let tables = report::tables(&options.clients, &samples);
    say(&format!("{settings}\n{tables}"))?;
    if options.quick || !options.common.program.is_empty() {
        return Ok(());
    }
    let mut document = Document::read(root.join("BENCHMARKING.md"))?;
    document.set("real settings", &settings);
    document.set("real", &tables);
    document.write()
}

/// Measures all clients. A signal to interrupt or terminate the process stops the measurement, the server and
/// the clients.
///
/// # Errors
/// Returns an error if the measurement fails or a signal arrives.
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
