//! Measures the longest time for which an informer blocks the other tasks of its thread.
//!
//! The program fails if this time is longer than 5 ms. It runs two informers, one after the other, on a
//! runtime with one thread. Each informer has 200,000 objects and three indices. The cache of the first
//! informer stores the objects as Rust values. The cache of the second informer stores them compressed.
//!
//! ```text
//! cd bench && MALLOC_CONF=background_thread:true cargo run --release --bin gaps
//! ```
//!
//! The program uses jemalloc. With this `MALLOC_CONF`, jemalloc returns memory to the kernel on a background
//! thread. The program does not use glibc's allocator, because glibc holds a lock while it returns memory.
//! This lock blocked all threads for 60 to 160 ms.
//!
//! The program measures gaps. A gap is the time between two consecutive polls of the task [`tick`], which
//! yields in a loop. On Linux, a gap excludes the time in which the thread was runnable but had no processor.
//!
//! The program first runs for two seconds without an informer. If gaps longer than 5 ms occur in these two
//! seconds and also while an informer runs, the result is inconclusive. The exit code is then 2.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read as _, Seek as _},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Indexers, InitialList, SharedInformer,
    shared_informer::{Builder, ListenerBuffer},
    transport::{ByteStream, Error, ListOptions, ListerWatcher, Response},
};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    task::{JoinSet, yield_now},
    time::{Instant, sleep},
};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const OBJECTS: u64 = 200_000;
const LIMIT: Duration = Duration::from_millis(5);

/// Minimum size in bytes of each chunk of a list's body, except the last chunk.
const CHUNK: usize = 64 * 1024;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let gaps = Gaps::default();
        let mut ticking = JoinSet::new();
        ticking.spawn(tick(gaps.clone()));
        gaps.phase("idle").await;
        sleep(Duration::from_secs(2)).await;
        for (form, packed) in [("typed", false), ("packed", true)] {
            live(form, packed, &gaps).await;
        }
        gaps.phase("end").await;
        gaps.verdict()
    })
}

/// Runs one informer through all phases of the measurement. The phases' names start with `form`.
async fn live(form: &str, packed: bool, gaps: &Gaps) {
    let source = Lists::default();
    let expired = Arc::clone(&source.expired);
    let indexers = Indexers::new()
        .with_label("app", "app")
        .with_owners("owner")
        .with("spec.nodeName", |pod: &Pod| {
            pod.spec.as_ref()?.node_name.clone()
        });
    let mut builder: Builder<Pod> = SharedInformer::builder(source)
        .initial_list(InitialList::List)
        .indexers(indexers)
        .expect("three names");
    if packed {
        builder = builder.packed();
    }
    let (pods, controller) = builder.build();
    let told = Arc::new(AtomicU64::new(0));
    let count = || {
        let told = Arc::clone(&told);
        move || {
            told.fetch_add(1, Ordering::Relaxed);
        }
    };
    let [added, updated, merged] = [count(), count(), count()];
    pods.on_add(move |_, _| added())
        .on_update(move |_, _| updated())
        .register()
        .expect("it runs");
    pods.on_update(move |_, _| merged())
        .buffer(ListenerBuffer::Coalesce)
        .register()
        .expect("it runs");
    gaps.phase(&format!("{form}: first list")).await;
    let steps = async {
        pods.wait_for_sync().await.expect("it syncs");
        pods.handlers_idle().await;
        gaps.phase(&format!("{form}: relist, all changed")).await;
        expired.notify_one();
        let written = pods.wait_for_revision(2 * OBJECTS, Duration::MAX);
        written.await.expect("it is listed");
        pods.handlers_idle().await;
        gaps.phase(&format!("{form}: late handler")).await;
        pods.on_add(|_, _| {}).register().expect("it runs");
        pods.handlers_idle().await;
        gaps.phase(&format!("{form}: another index")).await;
        let by_name = |pod: &Pod| pod.metadata.name.clone();
        pods.add_index("name", by_name).await.expect("a new name");
        gaps.phase(&format!("{form}: relist, nothing left")).await;
        expired.notify_one();
        let written = pods.wait_for_revision(3 * OBJECTS, Duration::MAX);
        written.await.expect("it is listed");
        pods.handlers_idle().await;
        gaps.phase(&format!("{form}: stop")).await;
    };
    controller.run(steps).await.expect("it does not fail");
    drop(pods);
}

/// A source of pods.
///
/// The first list returns all pods. The second list returns a changed version of each pod. All later lists
/// are empty.
///
/// A watch fails with the code 410 (Expired) when `expired` is notified.
#[derive(Default)]
struct Lists {
    lists: AtomicU64,
    expired: Arc<Notify>,
}

impl ListerWatcher for Lists {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let round = self.lists.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(list(round).into())).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let expired = Arc::clone(&self.expired);
        async move {
            let body = stream::once(async move {
                expired.notified().await;
                let status =
                    r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
                Ok(Bytes::from(format!("{status}\n")))
            });
            Ok(body.boxed().into())
        }
        .boxed()
    }

    fn streams_lists(&self) -> bool {
        false
    }
}

/// Returns the body of list number `round`, counted from 0.
fn list(round: u64) -> ByteStream {
    let revision = (round + 1) * OBJECTS;
    let objects = if round < 2 { OBJECTS } else { 0 };
    let mut next = 0;
    let mut begun = false;
    let body = std::iter::from_fn(move || {
        if begun && next > objects {
            return None;
        }
        let mut chunk = String::with_capacity(CHUNK + 1024);
        if !begun {
            begun = true;
            let _ = write!(
                chunk,
                r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}"}},"items":["#
            );
        }
        while next < objects && chunk.len() < CHUNK {
            chunk.push_str(if next == 0 { "" } else { "," });
            pod(&mut chunk, round, next);
            next += 1;
        }
        if next == objects {
            next += 1;
            chunk.push_str("]}");
        }
        Some(Ok(Bytes::from(chunk)))
    });
    // Yields before each chunk, as a connection does.
    let body = stream::iter(body).then(|chunk| async {
        yield_now().await;
        chunk
    });
    body.boxed()
}

fn pod(text: &mut String, round: u64, number: u64) {
    let (namespace, app) = (number % 100, (number + round) % 500);
    let (owner, node) = (number / 3, (number + round) % 1_000);
    let revision = round * OBJECTS + number + 1;
    let _ = write!(
        text,
        r#"{{"metadata":{{"name":"pod-{number:06}","namespace":"ns-{namespace:02}","uid":"uid-{number}","resourceVersion":"{revision}","labels":{{"app":"app-{app}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs-{owner}","uid":"uid-rs-{owner}"}}]}},"spec":{{"nodeName":"node-{node}","containers":[{{"name":"main","image":"registry.example/app-{app}:v{round}"}}]}}}}"#
    );
}

/// Name and longest gap of each phase so far. A gap is the time between two consecutive polls of [`tick`].
#[derive(Clone, Default)]
struct Gaps(Arc<Mutex<Vec<(String, Duration)>>>);

impl Gaps {
    /// Prints the longest gap of the current phase and starts the phase `name`.
    async fn phase(&self, name: &str) {
        // The time that the runnable tasks need counts for the current phase.
        for _ in 0..100 {
            yield_now().await;
        }
        let mut phases = self.0.lock();
        if let Some((name, longest)) = phases.last() {
            println!("{name:<32} {longest:>12?}");
        }
        phases.push((name.to_owned(), Duration::ZERO));
    }

    fn note(&self, gap: Duration) {
        if let Some((_, longest)) = self.0.lock().last_mut() {
            *longest = gap.max(*longest);
        }
    }

    fn verdict(&self) -> ExitCode {
        let phases = self.0.lock();
        let longest = |phases: &[(String, Duration)]| {
            let gaps = phases.iter().map(|(_, longest)| *longest);
            gaps.max().unwrap_or_default()
        };
        let (idle, busy) = phases.split_at(1);
        if longest(busy) <= LIMIT {
            return ExitCode::SUCCESS;
        }
        if longest(idle) > LIMIT {
            println!(
                "this machine stops threads for longer than {LIMIT:?}: the result is inconclusive"
            );
            return ExitCode::from(2);
        }
        println!("a gap was longer than {LIMIT:?}");
        ExitCode::FAILURE
    }
}

/// Records the time between every two consecutive polls of this task as a gap. Never returns.
async fn tick(gaps: Gaps) {
    let mut processor = Processor::of_this_thread();
    loop {
        let waited = processor.waited_for();
        let last = Instant::now();
        yield_now().await;
        let mut gap = last.elapsed();
        if gap > LIMIT / 10 {
            gap = gap.saturating_sub(processor.waited_for().saturating_sub(waited));
        }
        gaps.note(gap);
    }
}

/// Reads how long a thread has waited for a processor, from the kernel's scheduling statistics.
///
/// The field is the open file with these statistics, or `None` if the file can't be opened.
struct Processor(Option<File>);

impl Processor {
    fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Returns the total time for which the thread was ready to run but waited for a processor.
    ///
    /// The time is counted from the start of the thread. Returns zero if this time is unknown.
    fn waited_for(&mut self) -> Duration {
        let read = |file: &mut File| {
            let mut text = String::new();
            file.rewind().ok()?;
            file.read_to_string(&mut text).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        };
        Duration::from_nanos(self.0.as_mut().and_then(read).unwrap_or_default())
    }
}
