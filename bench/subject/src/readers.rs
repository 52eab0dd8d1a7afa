//! Measures reads and writes per second while readers read all pods of the cache and a writer changes pods.
//!
//! This is a port of client-go's `BenchmarkSharedIndexInformer`.
//!
//! Guarantees: each read accesses every pod. A write is counted when the handler receives its event, if the
//! cache contains the changed pod or a newer revision. At most [`WINDOW`] writes wait for their events at a
//! time.

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

/// Maximum number of writes whose events the handler has not received; `queuedEvents` in client-go's
/// benchmark.
const WINDOW: usize = 10;

/// Command-line options of `subject reads`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Number of pods in the cache
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pods: usize,
    /// Number of readers that repeatedly read all pods of the cache
    #[arg(long, default_value_t = 0, value_name = "N")]
    readers: usize,
    /// Duration of the measurement, in seconds
    #[arg(long, default_value_t = 3, value_name = "SECONDS")]
    seconds: u64,
    /// Whether each reader runs as a thread or as a task
    #[arg(long, value_enum, default_value_t = Readers::Threads, value_name = "WHAT")]
    readers_as: Readers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Readers {
    /// Each reader is a thread.
    Threads,
    /// Each reader is a task on the informer's runtime and yields after each read.
    Tasks,
}

/// Numbers of completed reads and writes, and whether the readers must stop.
#[derive(Debug, Default)]
struct Done {
    reads: AtomicU64,
    writes: AtomicU64,
    over: AtomicBool,
}

/// Runs the measurement and prints reads and writes per second.
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

    // Warm-up of one second: threads start and processor caches fill.
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

#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// Returns an update handler that counts completed writes.
///
/// After each update, the handler permits the writer one more write. A write is counted only if the cache
/// contains the updated pod or a newer revision of it.
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

/// Changes one pod for each permit from `window` until the informer stops.
async fn write(mut writer: PodWriter, window: Arc<Semaphore>) {
    // The step is a prime number. The writer reaches all pods unless the step divides the number of pods.
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
                threads.push(thread.context("cannot start a thread for a reader")?);
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

/// Reads every pod of one snapshot of the cache, and counts one read.
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
