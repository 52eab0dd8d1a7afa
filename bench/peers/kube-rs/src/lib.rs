//! Measures an informer built from kube's `watcher` and `reflector`.
//!
//! The measurements are compared with those of this project's informer.
//!
//! Guarantees:
//! - The setup uses kube's default features and default backoff.
//! - This program drops managedFields with `Event::modify` before the store receives an object. With
//!   `--prune=false`, the objects keep managedFields.
//! - The handler receives each event after the reflector has applied it.
//! - The measured sync ends when the first list is complete and the store is ready.
//!
//! The crate `gauge` implements the measurements.

use std::{future::ready, sync::Arc};

use anyhow::{Context as _, Result};
use clap::Parser;
use futures_util::{StreamExt as _, TryStreamExt as _};
use gauge::{Flags, Handler, List, Server, Start, Told};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config, ResourceExt as _,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        WatchStreamExt as _,
        reflector::{self, ObjectRef},
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::oneshot, task::JoinSet};

/// Command-line arguments of the program.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

/// Creates a Tokio runtime, runs the measurement that the command line selects, and prints one line of JSON.
///
/// # Errors
/// Returns an error if the flags are incomplete or the measurement fails.
///
/// # Panics
/// Panics if the Tokio runtime can't be created.
#[tokio::main]
pub async fn run() -> Result<()> {
    let Arguments { flags } = Arguments::parse();
    let told = Arc::new(Told::default());
    let start = Start::new();
    let config = config(flags.source()?).await?;
    let pods: Api<Pod> = Api::all(Client::try_from(config)?);
    let config = match flags.list.unwrap_or(List::Streaming) {
        List::Streaming => watcher::Config::default().streaming_lists(),
        List::Whole => watcher::Config {
            page_size: None,
            ..watcher::Config::default().any_semantic()
        },
        List::Pages => watcher::Config::default(),
    };
    let prune = flags.prune;
    let events = watcher(pods, config)
        .default_backoff()
        .map_ok(move |event| {
            if prune {
                event.modify(|pod: &mut Pod| pod.managed_fields_mut().clear())
            } else {
                event
            }
        });
    let (store, writer) = reflector::store();
    let (tell_synced, synced) = oneshot::channel();
    let mut handler = Counting {
        told: Arc::clone(&told),
        looks: flags.handler == Handler::Objects,
        synced: Some(tell_synced),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(reflector::reflector(writer, events).for_each(move |event| {
        match event {
            Ok(event) => handler.handle(&event),
            Err(error) => eprintln!("{error}"),
        }
        ready(())
    }));
    let synced = async {
        synced.await.context("the watcher has ended")?;
        store
            .wait_until_ready()
            .await
            .context("the reflector has ended")
    };
    gauge::observe(&flags, &told, start, synced).await
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

/// Event handler that counts events and records their latencies in `told`.
struct Counting {
    told: Arc<Told>,
    looks: bool,
    /// Signals the end of the initial list, once.
    synced: Option<oneshot::Sender<()>>,
}

impl Counting {
    fn handle(&mut self, event: &Event<Pod>) {
        match event {
            Event::InitApply(pod) if self.looks => {
                let spec = pod.spec.as_ref();
                self.told
                    .added(spec.map_or(0, |spec| spec.containers.len()));
            }
            Event::InitApply(pod) => self.told.added(ObjectRef::from_obj(pod).name.len()),
            Event::Apply(pod) if self.looks => {
                let sent = pod.annotations().get("bench/ts");
                self.told.updated(sent.map(String::as_str));
            }
            Event::Apply(pod) => {
                std::hint::black_box(ObjectRef::from_obj(pod));
                self.told.updated(None);
            }
            Event::InitDone => {
                if let Some(synced) = self.synced.take() {
                    // The receiver is dropped if the waiting task has ended.
                    let _ = synced.send(());
                }
            }
            Event::Init | Event::Delete(_) => {}
        }
    }
}
