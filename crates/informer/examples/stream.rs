//! Receives the events of an informer as a stream, for programs that use a loop instead of handlers.
//!
//! The stream delivers the current objects first, then `Synced`, then all later changes. The stream ends when
//! the informer stops.
//!
//! `cargo run -p kube-informer --example stream [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Event, InformerOptions, SharedInformerFactory, shared_informer::Subscription};
use kube_informer_apiserver::Server;
use tokio::time::timeout;

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
    transcript::Transcript,
};

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(stream().await)
}

async fn stream() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let output = Transcript::new();
    let ours = Pods::new(cluster.client(), "stream").await?;
    ours.create("pod-1").await?;
    ours.create("pod-2").await?;

    let factory = SharedInformerFactory::builder(cluster.client()).build();
    let selector = format!("{LABEL}=stream").parse()?;
    let pods = factory.informer_with::<Pod>(InformerOptions::new().labels(selector))?;
    let mut events = pods.subscribe()?;
    factory.start();
    let followed = timeout(Duration::from_secs(30), follow(&mut events, &ours, output)).await;
    followed.context("an event is missing")??;

    factory.shutdown().await;
    ensure!(
        events.next().await.is_none(),
        "the stream continues after its informer"
    );
    output.say("the stream has ended");
    output
        .shows(&[
            "+ default/pod-1, initial true",
            "+ default/pod-2, initial true",
            "synced",
            "~ default/pod-1, Watch",
            "- default/pod-2",
            "the stream has ended",
        ])
        .await?;
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

/// Prints the events of the stream until `pod-2` is deleted.
///
/// When the informer is synced, the function labels `pod-1`. When the update of `pod-1` arrives, the function
/// deletes `pod-2`. Returns an error if the number of additions before the deletion is not two.
async fn follow(
    events: &mut Subscription<Pod>,
    ours: &Pods,
    output: Transcript,
) -> anyhow::Result<()> {
    let mut added = 0;
    while let Some(event) = events.next().await {
        match event {
            Event::Added {
                object,
                in_initial_list,
            } => {
                added += 1;
                let name = object.object_name();
                output.say(format!("+ {name}, initial {in_initial_list}"));
            }
            Event::Synced => {
                output.say("synced");
                ours.label("pod-1", "tier", "web").await?;
            }
            Event::Updated { new, cause, .. } => {
                output.say(format!("~ {}, {cause:?}", new.object_name()));
                // A deletion may start with an update of pod-2, which needs no response.
                if new.name() == "pod-1" {
                    ours.delete("pod-2").await?;
                }
            }
            Event::Deleted(gone) => {
                output.say(format!("- {}", gone.object_name()));
                ensure!(added == 2, "{added} additions of 2 pods");
                return Ok(());
            }
        }
    }
    anyhow::bail!("the stream ended before the pod was deleted")
}
