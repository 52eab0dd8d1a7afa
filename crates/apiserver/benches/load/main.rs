//! What the server costs under load, by clients in another process and over plain TCP.
//!
//! ```sh
//! cargo bench -p kube-informer-apiserver --bench load
//! cargo bench -p kube-informer-apiserver --bench load -- by-node --seconds 60
//! ```
//!
//! | scenario | what is asked of it |
//! | --- | --- |
//! | `everything` | 1,000 watchers of all pods at 100 writes/s: 9 µs of the server's CPU per delivery at most (in the median second), none over 1 s behind |
//! | `by-node` | 10,000 watchers by `spec.nodeName` at 500 writes/s: none over 1 s behind |
//! | `stored` | 1,000,000 objects: under 3 GB of memory |
//!
//! Objects are of 1 KB.
//! The server is a child process, so its CPU (user and system, as the kernel counts it) and its memory are its own; on a loopback device its system time includes the receiving side of TCP.
//! Most of a delivery's cost is the kernel's, and differs between machines and hours: beside the server a loop runs that does nothing but write the same bytes to as many sockets.
//! A delivery's lag is from before the request that writes to after the read that has the event, so it includes the client's own queueing.
//! Every watcher must be told of every write that is for it, or the run fails; so it does where a figure above is missed.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod child;
mod client;
mod scenario;

use anyhow::{Context as _, bail};

use scenario::Options;

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error:#}");
        std::process::exit(1);
    }
}

fn run() -> anyhow::Result<()> {
    // Cargo adds it.
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
    runtime.block_on(async {
        for scenario in scenarios {
            match scenario.as_str() {
                "everything" => scenario::everything(&options).await?,
                "by-node" => scenario::by_node(&options).await?,
                "stored" => scenario::stored()?,
                other => bail!("no scenario {other:?}: everything, by-node or stored"),
            }
        }
        Ok(())
    })
}

fn read(arguments: &[String]) -> anyhow::Result<(Options, Vec<String>)> {
    let mut options = Options { seconds: 20 };
    let mut scenarios = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = rest.next().context("--seconds N")?;
                options.seconds = seconds.parse().context("--seconds is a whole number")?;
            }
            flag if flag.starts_with('-') => bail!("unknown flag {flag}: there is --seconds N"),
            scenario => scenarios.push(scenario.to_owned()),
        }
    }
    if scenarios.is_empty() {
        scenarios = ["everything", "by-node", "stored"]
            .map(str::to_owned)
            .to_vec();
    }
    Ok((options, scenarios))
}
