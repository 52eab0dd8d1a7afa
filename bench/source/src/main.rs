//! `source`: serves a corpus until its standard input, if that is a pipe, or a signal ends it.
//!
//! Guarantees: the first line on standard output says where it listens; it is printed when connections are accepted.

use std::net::Ipv4Addr;
use std::os::unix::fs::FileTypeExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::Parser;
use source::{Chunking, Corpus, CorpusKind, Report, Source, serve};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// It keeps the memory of the chunks it has sent: the system's gives it back, and a quarter of what an event
/// costs the source, on the processors of what is measured, was to get it again.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A neutral source of Kubernetes objects to measure informers against.
#[derive(Debug, Parser)]
struct Args {
    /// How many objects there are, of whatever kind.
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
    /// What they are.
    #[arg(long, value_enum, default_value = "pods")]
    kind: CorpusKind,
    /// What they follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to listen on 127.0.0.1; 0 is any free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where the chunks of lists and watches end.
    #[arg(long, value_enum, default_value_t = Chunking::Server)]
    chunks: Chunking,
    /// Print what the objects are like, and end.
    #[arg(long)]
    describe: bool,
    /// As one line of JSON, mean sizes alone.
    #[arg(long, requires = "describe")]
    line: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
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
    // One thread, so that whatever is measured beside it has the other cores.
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(run(corpus, args.port, args.chunks));
    // A thread that waits for standard input can't be stopped.
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

/// Waits for the end of standard input if it is a pipe, whose other end lives as long as who started this; else for ever.
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
    reason = "the one clock; everything else is given it"
)]
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

#[expect(
    clippy::print_stdout,
    reason = "it is a program, and this is its output"
)]
fn print_line(line: &str) {
    println!("{line}");
}
