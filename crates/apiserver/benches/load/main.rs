//! Measures the CPU time, lag and memory of the server under load, with clients over plain TCP.
//!
//! ```sh
//! cargo bench -p kube-informer-apiserver --bench load
//! cargo bench -p kube-informer-apiserver --bench load -- by-node --seconds 60
//! ```
//!
//! The lag of an event is the time from the write request until a watcher has read the event.
//!
//! The scenarios and their limits:
//! - `everything`: 1,000 watchers of all pods at 100 writes/s. The server's mean CPU time per delivered event
//!   is computed for each second, and the median of these means is at most 2.5 times
//!   that of a loop which only writes. The lag is at most 1 s.
//! - `by-node`: 10,000 watchers at 500 writes/s. Each watcher selects the pods of one node by
//!   `spec.nodeName`. The lag is at most 1 s.
//! - `stored`: 1,000,000 objects in less than 3 GB of memory.
//! - `build`: a server without a socket, built in less than 10 ms.
//!
//! An object has 1 KB. The server runs in a child process, so its CPU time and memory are measured without
//! those of the clients. Most of the CPU time of a delivery is spent in the kernel. For comparison, the
//! benchmark also measures a process that only writes events to the same number of sockets.
//!
//! The run fails if a limit is exceeded, if a watcher misses an event, or if a watcher receives an event
//! twice.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod client;
mod child;
mod scenario;

use std::fmt::Write as _;

use anyhow::{Context as _, bail};

use scenario::{Options, Row};

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
}

fn run() -> anyhow::Result<()> {
    // Cargo adds `--bench`.
    let mut arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match arguments.first().map(String::as_str) {
        Some(child::ROLE) => return child::play(&arguments.split_off(1)),
        Some(child::BARE) => return child::write_only(&arguments.split_off(1)),
        _ => {}
    }
    let (options, scenarios) = read(&arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut rows = Vec::new();
    for scenario in &scenarios {
        let row = match scenario.as_str() {
            "everything" => runtime.block_on(scenario::everything(&options))?,
            "by-node" => runtime.block_on(scenario::by_node(&options))?,
            "build" => scenario::build(),
            "stored" => runtime.block_on(async { scenario::stored() })?,
            other => bail!("no scenario {other:?}: everything, by-node, stored or build"),
        };
        println!("{scenario}: {}", row.measured);
        rows.push(row);
    }
    if options.write {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/LOAD.md");
        std::fs::write(path, document(&rows)?)?;
    }
    match rows.iter().find_map(|row| row.missed.as_ref()) {
        Some(missed) => bail!("{missed}"),
        None => Ok(()),
    }
}

/// Returns the content of `LOAD.md`: the requirement and result of each scenario.
fn document(rows: &[Row]) -> anyhow::Result<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu.lines().find(|line| line.starts_with("model name"));
    let model = model
        .and_then(|line| line.split_once(": "))
        .map(|(_, model)| model);
    let cores = std::thread::available_parallelism()?;
    let mut page = format!(
        "What the server costs under load: objects of 1 KB, plain TCP, server and clients as two processes on {cores} cores ({}), release profile.\n\
         `cargo bench -p kube-informer-apiserver --bench load -- --write` measures it and writes this table; the documentation of the benchmark describes the method.\n\n\
         | goal | measured |\n| --- | --- |\n",
        model.unwrap_or("unknown"),
    );
    for row in rows {
        writeln!(page, "| {} | {} |", row.goal, row.measured)?;
    }
    Ok(page)
}

fn read(arguments: &[String]) -> anyhow::Result<(Options, Vec<String>)> {
    let mut options = Options {
        seconds: 20,
        write: false,
    };
    let mut scenarios = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = rest.next().context("--seconds N")?;
                options.seconds = seconds.parse().context("--seconds is a whole number")?;
            }
            "--write" => options.write = true,
            flag if flag.starts_with('-') => {
                bail!("unknown flag {flag}: there are --seconds N and --write")
            }
            scenario => scenarios.push(scenario.to_owned()),
        }
    }
    if options.write && !scenarios.is_empty() {
        bail!("--write is for all scenarios");
    }
    if scenarios.is_empty() {
        scenarios = ["everything", "by-node", "stored", "build"]
            .map(str::to_owned)
            .to_vec();
    }
    Ok((options, scenarios))
}
