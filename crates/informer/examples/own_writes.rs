//! Shows two ways to read an object that the program has just written.
//!
//! A cache receives changes slightly later than the server. A controller that reads the cache right after its
//! own write may read the previous state and repeat its work. There are two solutions. The program reads
//! through an overlay, which adds the program's own writes to the cache immediately. Alternatively, the
//! program waits until the cache contains the write.
//!
//! `cargo run -p kube-informer --example own_writes [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;

use std::{process::ExitCode, time::Duration};

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{InformerOptions, ObjectName, SharedInformer, SharedInformerFactory};
use kube_informer_apiserver::Server;

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
};

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(own_writes().await)
}

async fn own_writes() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Pods::new(cluster.client(), "own-writes").await?;
    let factory = SharedInformerFactory::builder(cluster.client()).build();
    let selector = format!("{LABEL}=own-writes").parse()?;
    let pods = factory.informer_with::<Pod>(InformerOptions::new().labels(selector))?;
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(TIMEOUT).await?;

    by_overlay(&pods, &ours).await?;
    by_waiting(&pods, &ours).await?;
    factory.shutdown().await;
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

async fn by_overlay(pods: &SharedInformer<Pod>, ours: &Pods) -> anyhow::Result<()> {
    let overlay = pods.overlay();
    let name = overlay.put(ours.create("a").await?)?;
    let read = overlay.get(&name)?;
    println!("{name} is in the overlay right after the write");
    overlay.put(ours.label("a", "tier", "web").await?)?;
    let tier = overlay.get(&name)?.labels().get("tier").cloned();
    println!("its tier is {tier:?}");
    ensure!(tier.as_deref() == Some("web"), "an old state was read");

    ours.delete("a").await?;
    overlay.delete(&name, read.uid().unwrap_or_default());
    let gone = overlay.find(&name).is_none();
    println!("it is absent right after the deletion: {gone}");
    ensure!(gone, "a deleted pod was read");
    Ok(())
}

async fn by_waiting(pods: &SharedInformer<Pod>, ours: &Pods) -> anyhow::Result<()> {
    let written = ours.create("b").await?;
    pods.wait_for_revision(&written, TIMEOUT).await?;
    let name = ObjectName::namespaced("default", "b");
    pods.lister().get(&name)?;
    println!("{name} is in the cache");

    ours.delete("b").await?;
    // The server does not return the revision of a deletion. The uid distinguishes this pod from a later one
    // with the same name.
    let uid = written.uid().unwrap_or_default();
    pods.wait_for_deleted(&name, uid, TIMEOUT).await?;
    let gone = pods.lister().find(&name).is_none();
    println!("it is absent from the cache: {gone}");
    ensure!(gone, "it is still in the cache");
    Ok(())
}
