//! The benchmark program of this project: runs and measures the informer through the library's public API.
//!
//! Guarantees: each subcommand prints its result as one line of JSON to standard output and exits with 0. If
//! an error occurs, the program prints the error to standard error and exits with a nonzero code. With
//! `--kubeconfig`, the program also prints progress lines before the result, such as `synced`. The parent
//! process reads these lines.
//!
//! The program uses Tokio's multi-threaded runtime with one worker per processor, and the library's defaults
//! unless a flag changes them. The binary that calls [`run`] selects the allocator.

mod line;
mod memory_source;
mod observe;
mod readers;
mod queue;
mod fan_out;

use anyhow::Result;
use clap::{Parser, Subcommand};

use self::observe::{Encoding, Store};

/// Without a subcommand, measures an informer that lists and watches pods of a server
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Option<gauge::Flags>,
    /// Representation of the objects in the informer's cache
    #[arg(long, value_enum, default_value_t = Store::Typed)]
    store: Store,
    /// Encoding that the informer requests
    #[arg(long, value_enum, default_value_t = Encoding::Protobuf)]
    encoding: Encoding,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure cache reads and pod changes per second, with many readers and one writer
    Reads(readers::Options),
    /// Measure the time of a key in a work queue, from add to done
    Queue(queue::Options),
    /// Measure the time to deliver an event to many handlers
    FanOut(fan_out::Options),
}

/// Runs the measurement that the command line selects.
///
/// # Errors
/// Returns an error if the flags are incomplete or the measurement fails.
///
/// # Panics
/// Panics if Tokio's runtime can't be created.
#[tokio::main]
pub async fn run() -> Result<()> {
    let arguments = Arguments::parse();
    match (arguments.command, arguments.flags) {
        (Some(Command::Reads(options)), _) => readers::run(&options).await,
        (Some(Command::Queue(options)), _) => queue::run(&options).await,
        (Some(Command::FanOut(options)), _) => fan_out::run(&options).await,
        (None, Some(flags)) => observe::run(&flags, arguments.store, arguments.encoding).await,
        (None, None) => anyhow::bail!(
            "--server or --kubeconfig is missing; --help explains what can be measured"
        ),
    }
}
