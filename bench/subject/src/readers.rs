//! client-go's `BenchmarkSharedIndexInformer`, re-made: readers list all pods of a namespace without
//! pause while one writes.
//!
//! Guarantees: a read has looked at every pod; a write counts when the handler has been told of it and
//! has found it, or a later one, in a fresh read. [`WINDOW`] writes are under way at a time, as in
//! client-go's.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use gauge::Start;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Indexer, SharedInformer};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use crate::{
    line,
    memory_source::{self, NAMESPACE, PodWriter},
};

/// `queuedEvents` of client-go's benchmark.
const WINDOW: usize = 10;

/// How many readers of what, and for how long.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Pods in the cache
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pods: usize,
    /// Readers
    #[arg(long, default_value_t = 0, value_name = "N")]
    readers: usize,
    /// For how long they read
    #[arg(long, default_value_t = 3, value_name = "SECONDS")]
    seconds: u64,
    /// What a reader is
    #[arg(long, value_enum, default_value_t = Readers::Threads, value_name = "WHAT")]
    readers_as: Readers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Readers {
    /// A thread of the system each.
    Threads,
    /// A task of the informer's own runtime each, which gives way after each read.
    Tasks,
}

/// What has been done since the clock started.
#[derive(Debug, Default)]
struct Done {
    reads: AtomicU64,
    writes: AtomicU64,
    over: AtomicBool,
}

/// Prints reads and writes a second.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let (source, writer) = memory_source::pods(options.pods);
    let (pods, controller) = SharedInformer::<Pod>::builder(source).build();
    let done = Arc::new(Done::default());
    let window = Arc::new(Semaphore::new(WINDOW));
    let registration = pods.on_update(counting(&pods, &done, &window)).register()?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async { drop(controller.run(std::future::pending()).await) });
    registration.wait_for_sync().await?;
    tasks.spawn(write(writer, window));
    let threads = readers(options, &pods.indexer(), &done, &mut tasks)?;

    // The first second is that of threads that start and caches that fill.
    sleep(Duration::from_secs(1)).await;
    let counts = || [&done.reads, &done.writes].map(|count| count.load(Ordering::Relaxed));
    let before = counts();
    let start = Start::new();
    sleep(Duration::from_secs(options.seconds)).await;
    let (took, _) = start.spent();
    let after = counts();
    done.over.store(true, Ordering::Relaxed);
    for thread in threads {
        ensure!(thread.join().is_ok(), "a reader has panicked");
    }
    let rate = |which: usize| per_second(after[which] - before[which], took);
    line::print(&serde_json::json!({
        "readers": options.readers,
        "reads_per_s": rate(0),
        "writes_per_s": rate(1),
    }))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of some seconds are far below 2^52"
)]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// The handler: reads what it was told of, and lets the next write go.
fn counting(
    pods: &SharedInformer<Pod>,
    done: &Arc<Done>,
    window: &Arc<Semaphore>,
) -> impl FnMut(kube_informer::Object<Pod>, kube_informer::Object<Pod>) + Send + 'static {
    let (indexer, done, window) = (pods.indexer(), Arc::clone(done), Arc::clone(window));
    move |_, pod| {
        let fresh = indexer.get(pod.object_name());
        if fresh.is_some_and(|fresh| fresh.revision() >= pod.revision()) {
            done.writes.fetch_add(1, Ordering::Relaxed);
        }
        window.add_permits(1);
    }
}

/// Changes one pod after the other, as many at a time as the window lets; ends when the informer does.
async fn write(mut writer: PodWriter, window: Arc<Semaphore>) {
    // A step that is prime to the number of pods reaches all of them.
    for number in (0..).step_by(7_919) {
        let Ok(permit) = window.acquire().await else {
            return;
        };
        permit.forget();
        if writer.write(number).await.is_err() {
            return;
        }
    }
}

fn readers(
    options: &Options,
    indexer: &Indexer<Pod>,
    done: &Arc<Done>,
    tasks: &mut JoinSet<()>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut threads = Vec::new();
    for _ in 0..options.readers {
        let (indexer, done) = (indexer.clone(), Arc::clone(done));
        match options.readers_as {
            Readers::Threads => {
                let reading = move || {
                    while !done.over.load(Ordering::Relaxed) {
                        read(&indexer, &done);
                    }
                };
                let thread = thread::Builder::new().spawn(reading);
                threads.push(thread.context("no thread for a reader")?);
            }
            Readers::Tasks => {
                tasks.spawn(async move {
                    while !done.over.load(Ordering::Relaxed) {
                        read(&indexer, &done);
                        tokio::task::yield_now().await;
                    }
                });
            }
        }
    }
    Ok(threads)
}

/// Looks at every pod of the namespace.
fn read(indexer: &Indexer<Pod>, done: &Done) {
    let snapshot = indexer.snapshot();
    let mut length = 0;
    for pod in snapshot.namespace(NAMESPACE).iter() {
        let pod = pod.live().and_then(|pod| pod.metadata.name.as_ref());
        length += pod.map_or(0, String::len);
    }
    black_box(length);
    done.reads.fetch_add(1, Ordering::Relaxed);
}
