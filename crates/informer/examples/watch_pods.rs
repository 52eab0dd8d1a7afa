//! Watches all pods of a cluster through a shared factory and prints their changes.
//!
//! The factory creates only one informer per kind, with one list, one watch and one cache. All callers that
//! request this kind share the informer. Every minute (the resync period) the handlers receive every pod
//! again from the cache.
//!
//! `cargo run -p kube-informer --example watch_pods [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{process::ExitCode, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube_informer::SharedInformerFactory;
use kube_informer_apiserver::Server;

use self::{cluster::Cluster, pods::Pods, transcript::Transcript};

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(watch_pods().await)
}

async fn watch_pods() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let output = Transcript::new();
    let ours = Pods::new(cluster.client(), "watch-pods").await?;
    ours.create("watched-1").await?;

    let factory = SharedInformerFactory::builder(cluster.client())
        .resync(Duration::from_secs(60))
        .build();
    let pods = factory.informer::<Pod>();
    pods.on_add(move |pod, _| output.say(format!("New Pod Added to Store: {}", pod.name())))
        .on_update(move |old, new| {
            output.say(format!(
                "{} with UID {} has been updated to {} with {}",
                old.name(),
                old.uid(),
                new.name(),
                new.uid()
            ));
        })
        .on_delete(move |gone| {
            let name = gone.object_name().name();
            output.say(format!("Resource {name} has been deleted."));
        })
        .register()?;
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(Duration::from_secs(30)).await?;

    ours.create("watched-2").await?;
    let changed = ours.label("watched-1", "tier", "web").await?;
    let uid = changed.metadata.uid.unwrap_or_default();
    ours.delete("watched-2").await?;
    output
        .shows(&[
            "New Pod Added to Store: watched-1",
            "New Pod Added to Store: watched-2",
            &format!("watched-1 with UID {uid} has been updated to watched-1 with {uid}"),
            "Resource watched-2 has been deleted.",
        ])
        .await?;

    factory.shutdown().await;
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}
