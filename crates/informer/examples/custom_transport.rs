//! Runs an informer without an API server: a custom `ListerWatcher` serves objects from memory.
//!
//! The `ListerWatcher` returns responses in the format of the Kubernetes API. A list response is one JSON
//! object with `items`, and a watch response has one JSON object per event. The informer decodes and caches
//! the objects, calls the handlers, and recovers from errors.
//!
//! `cargo run -p kube-informer --example custom_transport`

#[path = "setting/args.rs"]
mod args;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::ensure;
use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, future, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{
    SharedInformer,
    transport::{ByteStream, Error, ListOptions, ListerWatcher, Response},
};
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use self::transcript::Transcript;

/// Maximum time to wait for the initial sync, and for the cache to contain the last change.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A `ListerWatcher` that stores a log of all events in memory, and computes the current objects from the
/// log.
///
/// The revision of an event is its position in the log, counted from 1. Clones share one log.
#[derive(Clone)]
struct Memory {
    log: watch::Sender<Vec<Value>>,
}

impl Memory {
    fn new() -> Self {
        let log = watch::Sender::default();
        Self { log }
    }

    /// Appends an event of type `event` for a config map to the log, and returns the event's revision.
    fn append(&self, event: &str, name: &str, color: &str) -> u64 {
        let mut revision = 0;
        self.log.send_modify(|log| {
            revision = log.len() as u64 + 1;
            log.push(json!({"type": event, "object": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "memory", "resourceVersion": revision.to_string()},
                "data": {"color": color},
            }}));
        });
        revision
    }
}

impl ListerWatcher for Memory {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let log = self.log.borrow();
        let mut objects = BTreeMap::new();
        for event in &*log {
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str();
            match event["type"].as_str() {
                Some("DELETED") => objects.remove(&name),
                _ => objects.insert(name, object),
            };
        }
        let list = json!({
            "apiVersion": "v1",
            "kind": "ConfigMapList",
            "metadata": {"resourceVersion": log.len().to_string()},
            "items": objects.into_values().collect::<Vec<_>>(),
        });
        let body: ByteStream = Box::pin(stream::iter([Ok(Bytes::from(list.to_string()))]));
        future::ok(body.into()).boxed()
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        // Without a revision, the watch starts at the first event of the log.
        let seen = options.resource_version.to_string().parse().unwrap_or(0);
        let events = stream::unfold((self.log.subscribe(), seen), async |(mut log, seen)| {
            let changed = log.wait_for(|log| log.len() > seen).await.ok()?;
            let event = Bytes::from(format!("{}\n", changed[seen]));
            drop(changed);
            Some((Ok(event), (log, seen + 1)))
        });
        let body: ByteStream = events.boxed();
        future::ok(body.into()).boxed()
    }

    fn description(&self) -> String {
        "config maps in memory".to_owned()
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(custom_transport().await)
}

async fn custom_transport() -> anyhow::Result<()> {
    // Checks the arguments that all examples accept; this one needs no cluster.
    args::parse()?;
    let memory = Memory::new();
    memory.append("ADDED", "sky", "blue");
    memory.append("ADDED", "grass", "green");

    let output = Transcript::new();
    let (maps, controller) = SharedInformer::<ConfigMap>::builder(memory.clone()).build();
    maps.on_add(move |map, _| output.say(format!("added {map:?}")))
        .on_update(move |old, new| output.say(format!("updated {old:?} → {}", new.revision())))
        .on_delete(move |gone| output.say(format!("deleted {}", gone.object_name())))
        .register()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    // An error means that the program failed; it ends the informer too.
    tasks.spawn(controller.run(async { drop(stopped.await) }));
    maps.wait_for_sync().deadline(TIMEOUT).await?;

    memory.append("MODIFIED", "sky", "grey");
    let last = memory.append("DELETED", "grass", "green");
    maps.wait_for_revision(last, TIMEOUT).await?;
    let lister = maps.lister().namespace("memory");
    let sky = lister.get("sky")?;
    let color = sky.data.as_ref().and_then(|data| data.get("color"));
    ensure!(
        color.is_some_and(|color| color == "grey"),
        "the sky is {color:?} in the cache"
    );
    let error = lister.get("grass").err().map(|error| error.to_string());
    ensure!(error.as_deref() == Some("ConfigMap memory/grass not found"));
    output
        .shows(&[
            "added memory/grass@2",
            "added memory/sky@1",
            "updated memory/sky@1 → 3",
            "deleted memory/grass",
        ])
        .await?;

    // The send fails if the informer has failed; its result has the reason.
    let _ = stop.send(());
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
