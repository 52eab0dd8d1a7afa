//! Runs `cargo xtask bench real`, which measures the costs that clients cause in a real kube-apiserver.
//!
//! The costs are the CPU time and the memory of the server while the clients list and watch. Several
//! consecutive runs with the same client and the same kind of initial list form a block. Blocks of different
//! clients alternate.
//!
//! Guarantees: each block starts a new kube-apiserver process. Clients of an earlier block therefore do not
//! affect the heap of the server. All processes use one etcd.
//!
//! The tables show the minimum of many runs, because some runs include a complete garbage collection of the
//! server. Such a collection takes up to 1.5 s of CPU time.

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
    /// Number of rounds; each round measures every case that `--program` selects, with every number of
    /// clients. A case is a client program with fixed options, such as the kind of initial list
    #[arg(long, default_value_t = 2, value_name = "N")]
    rounds: usize,
    /// Number of consecutive runs of each measurement in a round
    #[arg(long, default_value_t = 5, value_name = "N")]
    runs: usize,
    /// Number of pods in the server
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pods: usize,
    /// Number of pod changes in each run, made while the clients watch
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    events: usize,
    /// Number of pod changes per second
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Number of clients that list at the same time; may be repeated to measure several numbers
    #[arg(long, default_values_t = [1, 16], value_name = "N")]
    clients: Vec<usize>,
    /// Check only that everything works: make one run of each measurement with 1 client and one with 2
    /// clients, on 500 pods; write no results
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

/// Name of the case that measures the server's CPU time while no client watches.
const NO_CLIENT: &str = "no client";

/// Name of the entry in [`Samples`] with the number of pods on the server and their mean size in bytes of
/// JSON.
const SERVED: &str = "served";

/// Name, program and arguments of each measured case.
///
/// In a case name, the part before the last comma is the name of the client.
const CASES: [(&str, Program, &str); 16] = [
    ("client-go, protobuf, streaming", Program::ClientGo, ""),
    (
        "client-go, protobuf, whole",
        Program::ClientGo,
        "--list whole",
    ),
    ("kube-rs, streaming", Program::KubeRs, ""),
    ("kube-rs, pages of 500", Program::KubeRs, "--list pages"),
    (
        "ours, typed, streaming",
        Program::Subject,
        "--list streaming",
    ),
    ("ours, typed, whole", Program::Subject, "--list whole"),
    (
        "ours, typed, pages of 500",
        Program::Subject,
        "--list pages",
    ),
    (
        "ours, packed, streaming",
        Program::Subject,
        "--store packed --list streaming",
    ),
    (
        "ours, packed, whole",
        Program::Subject,
        "--store packed --list whole",
    ),
    (
        "ours, packed, pages of 500",
        Program::Subject,
        "--store packed --list pages",
    ),
    (
        "ours, packed, keys, whole",
        Program::Subject,
        "--store packed --handler keys --list whole",
    ),
    (
        "ours, packed, keys, pages of 500",
        Program::Subject,
        "--store packed --handler keys --list pages",
    ),
    (
        "ours, typed, JSON, streaming",
        Program::Subject,
        "--encoding json --list streaming",
    ),
    (
        "ours, typed, JSON, whole",
        Program::Subject,
        "--encoding json --list whole",
    ),
    (
        "ours, typed, JSON, pages of 500",
        Program::Subject,
        "--encoding json --list pages",
    ),
    (
        "ours, packed, JSON, pages of 500",
        Program::Subject,
        "--store packed --encoding json --list pages",
    ),
];

/// Measures all clients, prints the tables of results, and writes the tables to `BENCHMARKING.md`.
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
    let binaries = Binaries::get(&target(root))?;
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

/// Measures all clients. Stops early if the process receives SIGINT or SIGTERM.
///
/// # Errors
/// Returns an error if the measurement fails, or if the process receives one of these signals.
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
