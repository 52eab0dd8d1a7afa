//! Our informer as a process that is measured, on the library's public API alone.
//!
//! Guarantees: each subcommand prints exactly one line of JSON to standard output and ends with 0, or
//! says on standard error why it can't.
//!
//! It uses Tokio's runtime with a worker per processor, and the defaults of the library except where a flag
//! says something else. Which allocator it uses is the choice of the program that calls [`run`].

mod line;
mod memory_source;
mod observe;
mod readers;
mod queue;
mod fan_out;

use anyhow::Result;
use clap::{Parser, Subcommand};

use self::observe::Store;

/// What is measured; without a subcommand an informer against a source.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Option<gauge::Flags>,
    /// In which form the cache keeps objects
    #[arg(long, value_enum, default_value_t = Store::Typed)]
    store: Store,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Readers list a namespace without pause while one writes
    Reads(readers::Options),
    /// A key goes through a work queue: add, get, done
    Queue(queue::Options),
    /// One event is told to many handlers
    FanOut(fan_out::Options),
}

/// Measures what the command line says.
///
/// # Errors
/// It can't be measured.
///
/// # Panics
/// There is no room for a runtime.
#[tokio::main]
pub async fn run() -> Result<()> {
    let arguments = Arguments::parse();
    match (arguments.command, arguments.flags) {
        (Some(Command::Reads(options)), _) => readers::run(&options).await,
        (Some(Command::Queue(options)), _) => queue::run(&options).await,
        (Some(Command::FanOut(options)), _) => fan_out::run(&options).await,
        (None, Some(flags)) => observe::run(&flags, arguments.store).await,
        (None, None) => anyhow::bail!(
            "--server or --kubeconfig is missing; --help explains what can be measured"
        ),
    }
}
