//! Runs the program `source`, which serves generated objects for benchmarks.
//!
//! The program runs until it receives SIGTERM or SIGINT. If standard input is a pipe or a socket, the end of
//! standard input also stops the program.
//!
//! Guarantees: the first line on standard output contains the address of the server. The program prints this
//! line after it has bound the socket.

use std::net::Ipv4Addr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::Parser;
use source::{Chunking, Corpus, CorpusKind, Report, Source, probabilities, serve};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// The memory allocator of this program, which reuses the memory of sent chunks.
///
/// The system's allocator returns that memory to the kernel, which takes a quarter of the CPU time per event.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Serves generated Kubernetes objects for benchmarks of informers.
#[derive(Debug, Parser)]
struct Args {
    /// Number of generated objects, of the kind that `--kind` selects.
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
    /// Kind of the generated objects.
    #[arg(long, value_enum, default_value = "pods")]
    kind: CorpusKind,
    /// Seed from which the objects are generated; the same seed gives the same objects.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Port on 127.0.0.1 on which the program listens; 0 selects a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where to split list and watch responses into HTTP chunks or HTTP/2 DATA frames.
    #[arg(long, value_enum, default_value_t = Chunking::Server)]
    chunks: Chunking,
    /// Print the sizes of the generated objects and exit, without serving them.
    #[arg(long)]
    describe: bool,
    /// With `--describe`, print only the mean size of an object in each format, as one line of JSON.
    #[arg(long, requires = "describe")]
    line: bool,
    /// Write the entropy tables for the zstd dictionaries of packed caches to this file, and exit.
    #[arg(long, value_name = "FILE")]
    probabilities: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(path) = args.probabilities {
        let written = std::fs::write(&path, probabilities::train()?);
        return written.with_context(|| format!("can't write {}", path.display()));
    }
    let corpus = Corpus::new(args.kind, args.pods, args.seed)?;
    if args.describe {
        let report = Report::of(&corpus)?;
        print_line(&if args.line {
            report.line()
        } else {
            report.to_string()
        });
        return Ok(());
    }
    // One thread, so that the measured program has the other cores.
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(run(corpus, args.port, args.chunks));
    // A thread that reads standard input can't be stopped.
    runtime.shutdown_background();
    served
}

async fn run(corpus: Corpus, port: u16, chunking: Chunking) -> Result<()> {
    let source = Source::new(corpus, nanoseconds);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener.with_context(|| format!("can't listen on port {port}"))?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    print_line(&format!("listening on http://{}", listener.local_addr()?));
    let shutdown = async {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = input_end() => {}
        }
    };
    serve(listener, source, chunking, shutdown).await;
    Ok(())
}

/// Waits for the end of standard input if it is a pipe or socket, otherwise forever.
///
/// A pipe ends when the parent process exits.
async fn input_end() {
    let is_pipe = std::fs::metadata("/dev/stdin")
        .is_ok_and(|input| input.file_type().is_fifo() || input.file_type().is_socket());
    if !is_pipe {
        return std::future::pending().await;
    }
    let mut input = tokio::io::stdin();
    let mut ignored = [0; 64];
    while input.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only clock; all other code receives it as an argument"
)]
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[expect(clippy::print_stdout, reason = "the output of the program")]
fn print_line(line: &str) {
    println!("{line}");
}
