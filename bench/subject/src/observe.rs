//! Measures an informer of pods with one handler: its initial list, its updates and its relists.
//!
//! The pods come from the benchmark's object server or from a real API server.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use gauge::{Flags, Handler, List, Server, Start, Told};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_informer::{
    Event, EventHandler, InitialList, Object, SharedInformer,
    client::{self, ListWatch},
    transport,
};
use tokio::{sync::oneshot, task::JoinSet};

/// Representation of the objects in the informer's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// The cache stores objects as values of their Rust type.
    Typed,
    /// Objects are compressed, and decoded on every read.
    Packed,
}

/// Encoding of lists and watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// Runs the informer with these flags and prints the measurements.
pub(crate) async fn run(flags: &Flags, store: Store, encoding: Encoding) -> Result<()> {
    let told = Arc::new(Told::default());
    let start = Start::new();
    let config = config(flags.source()?).await?;
    let source = ListWatch::<Pod>::new(client::connect(config)?);
    let mut builder = SharedInformer::builder(source)
        .name("pods")
        .on_error(|error| eprintln!("{error}"));
    if let Some(list) = flags.list {
        builder = builder.initial_list(match list {
            List::Streaming => InitialList::Streaming,
            List::Whole => InitialList::List,
            List::Pages => InitialList::Pages,
        });
    }
    if flags.prune {
        builder = builder.prune(["metadata.managedFields".parse()?])?;
    }
    builder = builder.encoding(match encoding {
        Encoding::Json => transport::Encoding::Json,
        Encoding::Protobuf => transport::Encoding::Protobuf,
    });
    if store == Store::Packed {
        builder = builder.packed();
    }
    let (pods, controller) = builder.build();
    let handler = Counting {
        told: Arc::clone(&told),
        looks: flags.handler == Handler::Objects,
    };
    let registration = pods.handler(handler).register()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    // Dropping the sender stops the controller too.
    tasks.spawn(controller.run(async { drop(stopped.await) }));
    let synced = async { Ok(registration.wait_for_sync().await?) };
    gauge::observe(flags, &told, start, synced).await?;
    drop(stop);
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn config(server: Server<'_>) -> Result<Config> {
    match server {
        Server::Neutral(address) => Ok(Config::new(
            address.parse().context("--server is not a URL")?,
        )),
        Server::Real(path) => {
            let file = Kubeconfig::read_from(path)?;
            Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
        }
    }
}

/// Handler that counts its events in `told`.
struct Counting {
    told: Arc<Told>,
    /// Whether the handler reads the content of each object.
    looks: bool,
}

impl EventHandler<Pod> for Counting {
    async fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Added { object, .. } => {
                let found = if self.looks {
                    containers(&object)
                } else {
                    object.name().len()
                };
                self.told.added(found);
            }
            Event::Updated { new, .. } if self.looks => match new.get() {
                Ok(pod) => self.told.updated(sent(&pod)),
                Err(error) => eprintln!("{error}"),
            },
            Event::Updated { .. } => self.told.updated(None),
            Event::Deleted(_) | Event::Synced => {}
        }
    }
}

fn containers(object: &Object<Pod>) -> usize {
    let pod = object.get().ok();
    let spec = pod.as_ref().and_then(|pod| pod.spec.as_ref());
    spec.map_or(0, |spec| spec.containers.len())
}

/// Returns the time of the pod's last change, from the annotation `bench/ts`.
fn sent(pod: &Pod) -> Option<&str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    annotations.get("bench/ts").map(String::as_str)
}
