//! Registers a handler on an informer that is already running.
//!
//! The handler receives the current objects from the cache, without a request to the server, and then all
//! later changes. Each current object is delivered as added exactly once. A slow handler does not delay the
//! other handlers.
//!
//! `cargo run -p kube-informer --example late_handler [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{process::ExitCode, time::Duration};

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InformerOptions, SharedInformer, SharedInformerFactory,
    shared_informer::{Registration, Stopped},
};
use kube_informer_apiserver::Server;

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
    transcript::Transcript,
};

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(late_handler().await)
}

async fn late_handler() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let output = Transcript::new();
    let ours = Pods::new(cluster.client(), "late-handler").await?;
    ours.create("pod-1").await?;

    let factory = SharedInformerFactory::builder(cluster.client()).build();
    let selector = format!("{LABEL}=late-handler").parse()?;
    let pods = factory.informer_with(InformerOptions::new().labels(selector))?;
    register("early", &pods, output)?;
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(Duration::from_secs(30)).await?;
    ours.create("pod-2").await?;
    let early = ["early: added pod-1, initial (1)", "early: added pod-2 (2)"];
    output.shows(&early).await?;

    let late = register("late", &pods, output)?;
    late.wait_for_sync()
        .deadline(Duration::from_secs(10))
        .await?;
    output
        .shows(&[
            "late: added pod-1, initial (1)",
            "late: added pod-2, initial (2)",
        ])
        .await?;

    ours.create("pod-3").await?;
    ours.label("pod-1", "tier", "web").await?;
    ours.delete("pod-2").await?;
    for handler in ["early", "late"] {
        let line = |what: &str| format!("{handler}: {what}");
        let lines = ["added pod-3 (3)", "updated pod-1", "deleted pod-2"].map(line);
        output.shows(&lines.each_ref().map(String::as_str)).await?;
    }

    factory.shutdown().await;
    let refused = register("too late", &pods, output).err();
    ensure!(
        refused == Some(Stopped),
        "a stopped informer accepted a handler"
    );
    output.say("too late: the informer has stopped");

    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

/// Registers a handler that prints its events. Each line begins with `name`, the name of the handler.
///
/// A line about an added pod also contains the number of pods that the handler has received as added so far.
fn register(
    name: &'static str,
    pods: &SharedInformer<Pod>,
    output: Transcript,
) -> Result<Registration<Pod>, Stopped> {
    let mut added = 0;
    pods.on_add(move |pod, in_initial_list| {
        added += 1;
        let initial = if in_initial_list { ", initial" } else { "" };
        output.say(format!("{name}: added {}{initial} ({added})", pod.name()));
    })
    .on_update(move |_, new| output.say(format!("{name}: updated {}", new.name())))
    .on_delete(move |gone| output.say(format!("{name}: deleted {}", gone.object_name().name())))
    .register()
}
