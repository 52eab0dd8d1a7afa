//! Measures components of the library separately, each on one thread.
//!
//! The components are the work queue, the delivery of events to handlers, decoding, the store and its
//! indices.
//!
//! ```text
//! cargo bench -p kube-informer --bench parts
//! ```
//!
//! Each printed figure is the minimum of several rounds, because other programs on the machine only increase
//! the times. The figures depend on the machine, so the benchmark does not compare them with a limit.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, future, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Indexers, ObjectName, SharedInformer, indexer,
    shared_informer::Builder,
    transport::{ByteStream, Error, ListOptions, ListerWatcher, Response},
    workqueue::{RateLimitingQueue, rate_limiter},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::Instant,
};

/// Number of rounds per printed figure. The figure is from the fastest round.
const ROUNDS: usize = 5;

/// Number of pods in each list and in the store.
const PODS: usize = 2_000;

/// Number of keys that each round adds to the work queue.
const KEYS: usize = 300_000;

/// Number of update events that each handler receives per round.
const EVENTS: usize = 20_000;

/// Capacity, in events, of the channel through which the benchmark sends watch events to [`MemorySource`].
const ON_THE_WAY: usize = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("{:<58} {:>10}", "", "ns");
    row("work queue: add, get and done, a key", work_queue).await?;
    for handlers in [1, 64] {
        let part = format!("informer: an event from its bytes to {handlers} handlers");
        row(&part, async || fan_out(handlers).await).await?;
    }
    decoding().await?;
    store().await
}

/// Runs several rounds, and prints the time per operation in the fastest round, in nanoseconds.
async fn row(part: &str, mut round: impl AsyncFnMut() -> Result<Taken>) -> Result<()> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        least = least.min(round().await?.nanoseconds_each());
    }
    println!("{part:<58} {least:>10.0}");
    Ok(())
}

/// The number of operations in a round, and the total time of these operations.
struct Taken {
    time: Duration,
    operations: usize,
}

impl Taken {
    fn since(begun: Instant, operations: usize) -> Self {
        let time = begun.elapsed();
        Self { time, operations }
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 operations")]
    fn nanoseconds_each(&self) -> f64 {
        self.time.as_secs_f64() * 1e9 / self.operations as f64
    }
}

// === Work queue ===

async fn work_queue() -> Result<Taken> {
    let keys: Vec<Arc<str>> = (0..100).map(|key| format!("key-{key}").into()).collect();
    let queue = RateLimitingQueue::<Arc<str>>::new(rate_limiter::controller_default());
    let begun = Instant::now();
    for key in keys.iter().cycle().take(KEYS) {
        queue.add(Arc::clone(key));
        let item = queue.get().await.context("the queue was shut down")?;
        black_box(item.key());
        item.done();
    }
    Ok(Taken::since(begun, KEYS))
}

// === Informer ===

/// Measures the time from sending the first watch event until all handlers have received all events.
///
/// An operation is one event, regardless of the number of handlers.
async fn fan_out(handlers: u64) -> Result<Taken> {
    let (source, events) = MemorySource::new((0..PODS).map(|number| small_pod(number, 1)));
    let (pods, controller) = SharedInformer::<Pod>::builder(source).build();
    let told_all = Arc::new(Notify::new());
    let left = Arc::new(AtomicU64::new(handlers * EVENTS as u64));
    for _ in 0..handlers {
        let (left, told_all) = (Arc::clone(&left), Arc::clone(&told_all));
        let told = move |_, _| {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                told_all.notify_one();
            }
        };
        pods.on_update(told).register()?;
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(future::pending()));
    pods.wait_for_sync().await?;
    let begun = Instant::now();
    for number in 0..EVENTS {
        let object = small_pod(number % PODS, number + 2);
        let event = json!({"type": "MODIFIED", "object": object});
        events.send(format!("{event}\n").into()).await?;
    }
    told_all.notified().await;
    Ok(Taken::since(begun, EVENTS))
}

/// Measures the times to decode and store a listed pod, with and without packing and pruning, and to read a
/// packed pod from the cache.
///
/// Packing compresses cached objects. Pruning removes `managedFields`.
async fn decoding() -> Result<()> {
    let list = || MemorySource::new((0..PODS).map(pod)).0;
    let informer = || SharedInformer::<Pod>::builder(list());
    let pruned = |builder: Builder<Pod>| -> Result<Builder<Pod>> {
        Ok(builder.prune(["metadata.managedFields".parse()?])?)
    };
    println!("(a pod is {} bytes of JSON)", pod(0).to_string().len());
    let listing = "informer: a pod of a list, into the store";
    row(&format!("{listing}, typed"), async || {
        listed(informer()).await
    })
    .await?;
    let part = format!("{listing}, typed and pruned");
    row(&part, async || listed(pruned(informer())?).await).await?;
    let part = format!("{listing}, packed");
    row(&part, async || listed(informer().packed()).await).await?;
    let part = format!("{listing}, packed and pruned");
    row(&part, async || listed(pruned(informer())?.packed()).await).await?;
    let (pods, controller) = pruned(informer())?.packed().build();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(future::pending()));
    pods.wait_for_sync().await?;
    let get = async || {
        let snapshot = pods.indexer().snapshot();
        let begun = Instant::now();
        for object in snapshot.iter() {
            black_box(object.get()?);
        }
        Ok(Taken::since(begun, PODS))
    };
    row("informer: get a packed and pruned pod", get).await
}

async fn listed(builder: Builder<Pod>) -> Result<Taken> {
    let (pods, controller) = builder.build();
    let begun = Instant::now();
    let synced = async { pods.wait_for_sync().await };
    controller
        .run(synced.map(drop))
        .await
        .expect("the informer does not fail");
    anyhow::ensure!(pods.indexer().len() == PODS, "not all pods were listed");
    Ok(Taken::since(begun, PODS))
}

// === Store ===

async fn store() -> Result<()> {
    let indexers = Indexers::new().with_label("app", "app");
    let (indexer, mut writer) = indexer::new(indexers)?;
    let pods = (0..PODS).map(|number| serde_json::from_value::<Pod>(pod(number)));
    let pods: Vec<Pod> = pods.collect::<Result<_, _>>()?;
    let mut revision = 1;
    let put = async || {
        revision += 1;
        let mut pods = pods.clone();
        for pod in &mut pods {
            pod.metadata.resource_version = Some(revision.to_string());
        }
        let begun = Instant::now();
        for pod in pods {
            writer.add(pod).ok().context("every pod has a name")?;
        }
        Ok(Taken::since(begun, PODS))
    };
    row("store: put a pod, with one index", put).await?;
    let names: Vec<ObjectName> = (0..PODS).map(name).collect();
    let get = async || {
        let begun = Instant::now();
        for name in &names {
            black_box(indexer.get(name).context("a pod is missing")?);
        }
        Ok(Taken::since(begun, PODS))
    };
    row("store: get a pod by its name", get).await?;
    let list = async || {
        let begun = Instant::now();
        let listed = black_box(indexer.list()).len();
        Ok(Taken::since(begun, listed))
    };
    row("store: a pod of a list of all", list).await?;
    let look_up = async || {
        let begun = Instant::now();
        let mut found = 0;
        for app in 0..APPS {
            found += black_box(indexer.by_index("app", &format!("app-{app}"))?).len();
        }
        anyhow::ensure!(found == PODS, "the index is incomplete");
        Ok(Taken::since(begun, APPS))
    };
    let part = format!("store: the {} pods of a value of an index", PODS / APPS);
    row(&part, look_up).await
}

// === Pods ===

/// Number of different values of the pods' label `app`.
const APPS: usize = 100;

fn name(number: usize) -> ObjectName {
    ObjectName::namespaced(&format!("ns-{}", number % 20), &format!("pod-{number}"))
}

/// Returns the JSON of a pod that has only metadata.
fn small_pod(number: usize, revision: usize) -> Value {
    let name = name(number);
    json!({"metadata": {
        "name": name.name(),
        "namespace": name.namespace(),
        "uid": number.to_string(),
        "resourceVersion": revision.to_string(),
    }})
}

/// Returns a pod of realistic size, with two containers, environment variables and managed fields.
fn pod(number: usize) -> Value {
    let name = name(number);
    let fields: serde_json::Map<String, Value> = (0..40)
        .map(|field| (format!("f:field-{field}"), json!({"f:value": {}})))
        .collect();
    let manager = |manager: &str| {
        json!({
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": &fields},
        })
    };
    let container = |container: &str| {
        let env = (0..10).map(|at| json!({"name": format!("NAME_{at}"), "value": format!("{at}")}));
        json!({
            "name": container,
            "image": format!("registry.example.com/{container}:1.{}", number % 10),
            "env": env.collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config", "readOnly": true}],
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name.name(),
            "namespace": name.namespace(),
            "uid": format!("00000000-0000-0000-0000-{number:012}"),
            "resourceVersion": (number + 1).to_string(),
            "labels": {"app": format!("app-{}", number % APPS), "pod-template-hash": "5d78c9869d"},
            "managedFields": [manager("kube-controller-manager"), manager("kubelet")],
        },
        "spec": {
            "nodeName": format!("node-{}", number % 50),
            "containers": [container("main"), container("proxy")],
            "volumes": [{"name": "config", "configMap": {"name": "config"}}],
        },
        "status": {
            "phase": "Running",
            "podIP": format!("10.0.{}.{}", number / 250, number % 250),
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
        },
    })
}

// === Source ===

/// A `ListerWatcher` that always returns the same list.
///
/// The first watch delivers the events that the benchmark sends through a channel. Later watches deliver no
/// events.
struct MemorySource {
    list: Bytes,
    /// Receiver of the events for the first watch; `None` after the first watch has taken the receiver.
    events: Mutex<Option<mpsc::Receiver<Bytes>>>,
}

impl MemorySource {
    fn new(pods: impl Iterator<Item = Value>) -> (Self, mpsc::Sender<Bytes>) {
        let list = json!({
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": pods.collect::<Vec<_>>(),
        });
        let (sender, events) = mpsc::channel(ON_THE_WAY);
        let source = Self {
            list: list.to_string().into(),
            events: Mutex::new(Some(events)),
        };
        (source, sender)
    }
}

impl ListerWatcher for MemorySource {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let body: ByteStream = stream::iter([Ok(self.list.clone())]).boxed();
        future::ok(body.into()).boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let body: ByteStream = match self.events.lock().take() {
            Some(events) => stream::unfold(events, async |mut events| {
                let event = events.recv().await?;
                Some((Ok(event), events))
            })
            .boxed(),
            None => stream::pending().boxed(),
        };
        future::ok(body.into()).boxed()
    }

    fn description(&self) -> String {
        "pods in memory".to_owned()
    }
}
