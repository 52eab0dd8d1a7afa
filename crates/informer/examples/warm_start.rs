//! Shows a warm start: the second run of a program loads the cache that the first run saved.
//!
//! After the load, the second run receives only the changes since the save. The example executes both runs in
//! one process.
//!
//! `cargo run -p kube-informer --example warm_start [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_informer::{SharedInformer, client::ListWatch, status::WarmStart, warm_start::SavedStore};
use kube_informer_apiserver::Server;

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
};

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(warm_start().await)
}

async fn warm_start() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Pods::new(cluster.client(), "warm-start").await?;
    ours.create("a").await?;
    ours.create("b").await?;
    let folder = Folder::new();

    let first = run(cluster.client(), &folder.0, 2).await?;
    println!("the first run starts {first}");
    ensure!(
        matches!(first, WarmStart::Cold { .. }),
        "the first run has loaded a cache"
    );

    ours.delete("a").await?;
    ours.label("b", "tier", "web").await?;
    ours.create("c").await?;
    ours.create("d").await?;
    let second = run(cluster.client(), &folder.0, 3).await?;
    println!("the second run starts {second}");
    let is_warm = matches!(second, WarmStart::Warm { objects: 2, .. });
    ensure!(is_warm, "the saved cache was not loaded");

    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

/// Runs an informer until its cache contains `count` pods.
///
/// At its start, the informer loads the saved cache from `folder`. At its end, it saves its cache to
/// `folder`. Returns the result of the load.
async fn run(client: Client, folder: &Path, count: usize) -> anyhow::Result<WarmStart> {
    let pods = ListWatch::<Pod>::new(client).labels(&format!("{LABEL}=warm-start").parse()?);
    // Change the version with every change of the type or the transform; a store with another version is not
    // loaded.
    let saved = SavedStore::in_directory(folder, env!("CARGO_PKG_VERSION"));
    let (informer, controller) = SharedInformer::builder(pods).warm_start(saved).build();
    informer
        .on_add(|pod, initial| {
            let when = if initial {
                "is in the initial list"
            } else {
                "is new"
            };
            println!("  {pod:?} {when}");
        })
        .on_update(|_, pod| println!("  {pod:?} has changed"))
        .on_delete(|deleted| println!("  {} is gone", deleted.object_name()))
        .register()?;
    let mut outcome = Ok(());
    controller
        .run(async { outcome = reach(&informer, count).await })
        .await?;
    outcome?;
    let status = informer.status().get();
    status.warm_start.context("the status has no warm start")
}

async fn reach(informer: &SharedInformer<Pod>, count: usize) -> anyhow::Result<()> {
    informer.wait_for_sync().deadline(TIMEOUT).await?;
    let reached = async {
        while informer.indexer().len() != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        informer.handlers_idle().await;
    };
    tokio::time::timeout(TIMEOUT, reached)
        .await
        .with_context(|| format!("the cache does not reach {count} pods"))
}

/// Path of the temporary directory for the saved cache. The directory is removed when the value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("kube-informer-warm-start-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error is ignored, because the directory is temporary and not used again.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
