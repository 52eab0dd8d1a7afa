//! Measures the latency of `get` while all 100,000 objects in a store with three indices are replaced.
//!
//! ```text
//! cargo bench -p kube-informer --bench replace
//! ```
//!
//! One thread gets objects by name without a pause. Another thread replaces all objects several times, with
//! new revisions and index values. The latency of each `get` must be at most 5 ms. On Linux, the time during
//! which the first thread was runnable but did not run is subtracted, because this time does not depend on
//! the store.
//!
//! For comparison, the latency is also measured while the store is idle, and while another store is replaced.
//! The exit code is 1 if the latency exceeds the limit only while the measured store is replaced. If the
//! latency also exceeds the limit in a comparison, the result is inconclusive and the exit code is 2.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    ops::AddAssign,
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{Pod, PodSpec},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube_core::ObjectMeta;
use kube_informer::{
    Indexer, Indexers, ObjectName,
    indexer::{self, IndexerWriter},
};
use tokio::time::Instant;

const OBJECTS: usize = 100_000;
const ROUNDS: usize = 3;
const LIMIT: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    let indexers = Indexers::new()
        .with_label("app", "app")
        .with_owners("owner")
        .with("spec.nodeName", |pod: &Pod| {
            pod.spec.as_ref()?.node_name.clone()
        });
    let (indexer, mut writer) = indexer::new(indexers.clone()).expect("three names");
    let (_, mut other) = indexer::new(indexers).expect("three names");
    replace(&mut writer, objects(0));
    let names: Vec<ObjectName> = (0..OBJECTS).map(name).collect();
    let [mut idle, mut beside, mut replacing] = [(); 3].map(|()| Gets::default());
    for round in 1..=ROUNDS {
        let (new, same) = (objects(round), objects(round));
        let (gets, took) = during(&indexer, &names, || replace(&mut writer, new));
        replacing += gets;
        beside += during(&indexer, &names, || replace(&mut other, same)).0;
        idle += during(&indexer, &names, || pause(took)).0;
        println!("round {round}: a Replace took {took:?}");
    }
    println!("{OBJECTS} objects, 3 indices, {ROUNDS} rounds");
    println!("idle:                       {}", idle.summary());
    println!("Replace of another store:   {}", beside.summary());
    println!("Replace of this store:      {}", replacing.summary());
    if replacing.max() <= LIMIT {
        return ExitCode::SUCCESS;
    }
    if beside.max().max(idle.max()) > LIMIT {
        println!("inconclusive: this machine stops threads for longer than {LIMIT:?}");
        return ExitCode::from(2);
    }
    println!("a get took longer than {LIMIT:?}");
    ExitCode::FAILURE
}

fn pause(duration: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    // It always returns a timeout, because nothing is sent.
    let _ = receiver.recv_timeout(duration);
}

fn name(number: usize) -> ObjectName {
    ObjectName::namespaced(&format!("ns-{}", number % 100), &format!("pod-{number}"))
}

/// Returns all objects. The revision and the index values of each object differ from round to round.
fn objects(round: usize) -> Vec<Pod> {
    let pod = |number: usize| {
        let name = name(number);
        Pod {
            metadata: ObjectMeta {
                name: Some(name.name().to_owned()),
                namespace: name.namespace().map(str::to_owned),
                resource_version: Some((round * OBJECTS + number + 1).to_string()),
                labels: Some(
                    [("app".to_owned(), format!("app-{}", (number + round) % 500))].into(),
                ),
                owner_references: Some(vec![OwnerReference {
                    uid: format!("uid-{round}-{}", number / 3),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                node_name: Some(format!("node-{}", (number + round) % 1_000)),
                ..PodSpec::default()
            }),
            ..Pod::default()
        }
    };
    (0..OBJECTS).map(pod).collect()
}

fn replace(writer: &mut IndexerWriter<Pod>, objects: Vec<Pod>) -> Duration {
    let begun = Instant::now();
    writer
        .replace(objects, "1")
        .expect("all objects have names");
    begun.elapsed()
}

/// Runs `action` while another thread repeatedly gets objects from the store.
///
/// Returns the latency of each `get`, and the result of `action`.
fn during<R>(
    indexer: &Indexer<Pod>,
    names: &[ObjectName],
    action: impl FnOnce() -> R,
) -> (Gets, R) {
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut gets = Gets::default();
            let mut processor = Processor::of_this_thread();
            // The step is coprime to the number of names, so the loop reads all objects in a mixed order.
            for at in (0..).step_by(7_919) {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let waited = processor.waited_for();
                let begun = Instant::now();
                let found = indexer.get(&names[at % names.len()]);
                let mut took = begun.elapsed();
                if took > LIMIT / 50 {
                    took = took.saturating_sub(processor.waited_for().saturating_sub(waited));
                }
                gets.0.push(took);
                assert!(found.is_some(), "an object is missing during a Replace");
            }
            gets
        });
        let result = action();
        done.store(true, Ordering::Relaxed);
        (reader.join().expect("the reader ends"), result)
    })
}

/// Scheduler statistics of the thread that created this value (`/proc/thread-self/schedstat`), if available.
struct Processor(Option<File>);

impl Processor {
    fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Returns the total time so far that the thread was runnable but did not run, or zero if unknown.
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

#[derive(Default)]
struct Gets(Vec<Duration>);

impl AddAssign for Gets {
    fn add_assign(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

impl Gets {
    fn max(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    fn summary(&self) -> String {
        let mut all = self.0.clone();
        all.sort_unstable();
        let quantile = |permille: usize| all.get((all.len() * permille / 1_000).min(all.len() - 1));
        let [half, most] =
            [500, 999].map(|permille| quantile(permille).copied().unwrap_or_default());
        let max = self.max();
        format!(
            "{} gets, median {half:?}, p99.9 {most:?}, max {max:?}",
            all.len()
        )
    }
}
