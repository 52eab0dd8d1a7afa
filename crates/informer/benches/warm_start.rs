//! Measures a warm start with 100,000 pods: the time to save the cache, and the time to load it again.
//!
//! `cargo bench -p kube-informer --bench warm_start`
//!
//! For comparison, the benchmark also measures a list from the embedded server. All of these times depend on
//! the machine and have no limit. The embedded server runs in the same process and uses neither network nor
//! etcd, so the measured list is faster than a list from a real cluster.
//!
//! Then a separate process loads a packed (compressed) cache on a runtime with one thread. The exit code is 0
//! if the load meets two limits:
//!
//! - The peak resident memory is at most 1.15 times the resident memory two seconds after the load.
//! - No poll of a task occupies the runtime's thread for longer than 5 ms. A second task, which is always
//!   ready, measures the time between its own polls. On Linux, the time during which the thread was runnable
//!   but did not run is subtracted.
//!
//! If the load exceeds a limit, the exit code is 1. If the second task measures more than 5 ms even before
//! the load starts, the result is inconclusive and the exit code is 2.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::unwrap_used, reason = "a bench panics if it can't continue")]

use std::{
    cell::Cell,
    fs::File,
    io::{Read as _, Seek as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer,
    client::ListWatch,
    shared_informer::Builder,
    status::{Status, WarmStart},
    transport::{Error, ListOptions, ListerWatcher, Response},
    warm_start::SavedStore,
};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::{
    task::yield_now,
    time::{Instant, sleep},
};

const OBJECTS: usize = 100_000;

const ROUNDS: usize = 3;

/// Maximum peak resident memory while a process loads the packed (compressed) cache.
///
/// The value is a multiple of the process's resident memory two seconds after the load.
const PEAK_MAX: f64 = 1.15;

const POLL_MAX: Duration = Duration::from_millis(5);

/// First command line argument of the process that loads the saved cache.
const LOAD: &str = "load";

fn pod(number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number}"),
            "namespace": format!("ns-{}", number % 100),
            "labels": {"app": format!("app-{}", number % 1000), "pod-template-hash": "5d78c9869d"},
        },
        "spec": {
            "nodeName": format!("node-{}", number % 1000),
            "containers": [{"name": "main", "image": "registry.example.com/app:1.0"}],
        },
    })
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    if arguments.next().as_deref() == Some(LOAD) {
        let [file, collection] = [(); 2].map(|()| arguments.next().unwrap());
        return load_packed(Path::new(&file), collection);
    }
    let (file, collection) = runtime.unwrap().block_on(compare());
    let mut loading = Command::new(std::env::current_exe().unwrap());
    let status = loading.arg(LOAD).arg(file).arg(collection).status();
    let code = status.unwrap().code().and_then(|code| code.try_into().ok());
    code.map_or(ExitCode::FAILURE, |code: u8| ExitCode::from(code))
}

/// Prints the times of lists, saves and loads.
///
/// Returns the file of a saved packed cache, and the URI of the collection in this cache.
async fn compare() -> (PathBuf, String) {
    let server = Server::builder().enforce_namespaces(false).build();
    server.create_all((0..OBJECTS).map(pod)).await.unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm-start-bench");
    let _ = std::fs::remove_dir_all(&folder);
    let saved = || SavedStore::in_directory(&folder, "1");
    let source = || ListWatch::<Pod>::new(server.client());
    let informer = || SharedInformer::<Pod>::builder(source());
    for round in 1..=ROUNDS {
        listed(informer()).await;
        save(informer().warm_start(saved())).await;
        loaded(informer().warm_start(saved())).await;
        println!("round {round} of {ROUNDS}");
    }
    let file = folder.join("packed");
    save(informer().packed().warm_start(in_file(&file))).await;
    (file, source().collection().unwrap())
}

fn in_file(file: &Path) -> SavedStore {
    SavedStore::in_file(file, "1").server("the bench's")
}

async fn listed(builder: Builder<Pod>) {
    let (pods, controller) = builder.build();
    let begun = Instant::now();
    let synced = async { pods.wait_for_sync().await.unwrap() };
    controller
        .run(synced)
        .await
        .expect("the informer does not fail");
    println!("listed {} in {:?}", pods.indexer().len(), begun.elapsed());
}

async fn save(builder: Builder<Pod>) {
    let (pods, controller) = builder.build();
    let saved = async {
        pods.wait_for_sync().await.unwrap();
        let begun = Instant::now();
        let saved = pods.save().await.unwrap();
        println!("saved {} bytes in {:?}", saved.bytes, begun.elapsed());
    };
    controller
        .run(saved)
        .await
        .expect("the informer does not fail");
}

/// Prints the time in which an informer loads its saved cache.
async fn loaded(builder: Builder<Pod>) {
    let (pods, controller) = builder.build();
    let begun = Instant::now();
    let mut status = pods.status();
    let started = async {
        let is_decided = |status: &Status| status.warm_start.is_some();
        let decided = status.wait_for(is_decided).await.unwrap();
        let is_warm = matches!(decided.warm_start, Some(WarmStart::Warm { .. }));
        assert!(is_warm, "{:?}", decided.warm_start);
        println!("loaded {} in {:?}", pods.indexer().len(), begun.elapsed());
    };
    controller
        .run(started)
        .await
        .expect("the informer does not fail");
}

/// `ListerWatcher` with empty lists at the requested revision, and watches without events.
struct Nothing {
    collection: String,
}

impl ListerWatcher for Nothing {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let revision = options.resource_version.to_string();
        let list = json!({"metadata": {"resourceVersion": revision}, "items": []});
        let body = stream::iter([Ok(list.to_string().into())]);
        std::future::ready(Ok(body.boxed().into())).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        std::future::ready(Ok(stream::pending().boxed().into())).boxed()
    }

    fn collection(&self) -> Option<String> {
        Some(self.collection.clone())
    }
}

/// Measures the load of the packed cache in `file`, and returns the exit code.
fn load_packed(file: &Path, collection: String) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(async {
        let longest = Cell::new(Duration::ZERO);
        let measured = async {
            sleep(Duration::from_secs(1)).await;
            let idle = longest.take();
            let source = Nothing { collection };
            let builder = SharedInformer::<Pod>::builder(source).packed();
            let (pods, controller) = builder.warm_start(in_file(file)).build();
            let mut status = pods.status();
            let measured = async {
                let is_decided = |status: &Status| status.warm_start.is_some();
                let decided = status.wait_for(is_decided).await.unwrap();
                assert!(
                    matches!(decided.warm_start, Some(WarmStart::Warm { .. })),
                    "{decided}"
                );
                assert_eq!(pods.indexer().len(), OBJECTS);
                let (poll, peak) = (longest.take(), memory("VmHWM"));
                sleep(Duration::from_secs(2)).await;
                verdict(idle, poll, peak, memory("VmRSS"))
            };
            // The controller is dropped, so that it does not save at its end.
            tokio::select! {
                biased;
                ended = controller.run(std::future::pending()) => panic!("{ended:?}"),
                verdict = measured => verdict,
            }
        };
        tokio::select! {
            biased;
            verdict = measured => verdict,
            () = tick(&longest) => unreachable!("it never returns"),
        }
    })
}

fn verdict(idle: Duration, poll: Duration, peak: Option<u64>, steady: Option<u64>) -> ExitCode {
    println!("packed: the longest poll while loading took {poll:?}, while idle {idle:?}");
    let mut is_met = poll <= POLL_MAX;
    if let (Some(peak), Some(steady)) = (peak, steady) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 KiB")]
        let ratio = peak as f64 / steady as f64;
        println!(
            "packed: at most {peak} KiB while loading, {steady} KiB afterwards: {ratio:.2} times"
        );
        is_met &= ratio <= PEAK_MAX;
    }
    if is_met {
        return ExitCode::SUCCESS;
    }
    if idle > POLL_MAX {
        println!("inconclusive: this machine stops threads for longer than {POLL_MAX:?}");
        return ExitCode::from(2);
    }
    println!("a limit does not hold: {POLL_MAX:?}, {PEAK_MAX} times");
    ExitCode::FAILURE
}

/// Yields in an endless loop, and stores the longest time between two polls in `longest`.
async fn tick(longest: &Cell<Duration>) {
    let mut processor = File::open("/proc/thread-self/schedstat").ok();
    loop {
        let waited = waited_for(processor.as_mut());
        let last = Instant::now();
        yield_now().await;
        let mut gap = last.elapsed();
        if gap > POLL_MAX / 10 {
            gap = gap.saturating_sub(waited_for(processor.as_mut()).saturating_sub(waited));
        }
        longest.set(longest.get().max(gap));
    }
}

/// Returns this thread's total wait for a CPU, or zero if the kernel does not report that.
fn waited_for(processor: Option<&mut File>) -> Duration {
    let read = |file: &mut File| {
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    Duration::from_nanos(processor.and_then(read).unwrap_or_default())
}

/// Returns the KiB of the field `what` of `/proc/self/status`, such as `VmHWM`.
fn memory(what: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix(what))?;
    line.trim_matches([':', ' ', '\t'])
        .split(' ')
        .next()?
        .parse()
        .ok()
}
