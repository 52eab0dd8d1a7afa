//! Reads the status of an informer: its activity, its last error, and the objects that can't be decoded.
//!
//! If a wait for the sync fails, the error contains the informer's status, which shows the reason.
//!
//! `cargo run -p kube-informer --example status [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use kube_core::{ApiResource, GroupVersionKind, ObjectMeta};
use kube_derive::Resource;
use kube_informer::{
    InformerOptions, SharedInformerFactory,
    status::{Activity, Status, StatusReader, SyncFailure},
};
use kube_informer_apiserver::Server;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use self::{cluster::Cluster, transcript::Transcript};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Key of the label of all config maps that the program creates.
const LABEL: &str = "kube-informer-example";

/// A type for config maps whose data values are `low` or `high`. A config map with any other value can't be
/// decoded into this type.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = ConfigMap, crates(kube_core = "kube_core"))]
struct Limits {
    metadata: ObjectMeta,
    data: BTreeMap<String, Limit>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Limit {
    Low,
    High,
}

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(status().await)
}

async fn status() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let output = Transcript::new();
    let maps = Api::<ConfigMap>::namespaced(cluster.client(), "default");
    clear(&maps).await?;
    create(&maps, "good", "high").await?;
    create(&maps, "bad", "sky-high").await?;
    an_informer_from_start_to_stop(cluster.client(), output).await?;
    an_informer_of_an_unknown_kind(cluster.client(), output).await?;
    clear(&maps).await?;
    cluster.close().await;
    Ok(())
}

async fn an_informer_from_start_to_stop(client: Client, output: Transcript) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(client).build();
    let options = InformerOptions::new()
        .labels(format!("{LABEL}=status").parse()?)
        .namespaces(["default"]);
    let limits = factory.informer_with::<Limits>(options)?;
    let mut telling = JoinSet::new();
    telling.spawn(tell("limits", limits.status(), output));

    let early = limits.wait_for_sync().deadline(Duration::from_millis(10));
    let error = early
        .await
        .err()
        .context("it synced before it was started")?;
    ensure!(error.failure == SyncFailure::Deadline(Duration::from_millis(10)));
    output.say(format!("limits: too early: {}", error.status));

    factory.start();
    limits.wait_for_sync().deadline(TIMEOUT).await?;
    let watching = |status: &Status| status.activity() == Activity::Watching;
    let status = limits.status().wait_for(watching).await;
    let status = status.context("it ended before its first watch")?;
    ensure!(status.synced, "a broken object prevented the sync");
    let source = status.sources.first().context("there is no source")?;
    ensure!(!source.revision.is_unset(), "it watches without a revision");
    ensure!(
        status.broken_count == 1,
        "{} objects are broken",
        status.broken_count
    );
    let broken = &status.broken[0];
    output.say(format!("limits: broken: {broken}"));
    let good = limits.lister().namespace("default").get("good")?;
    output.say(format!(
        "limits: good: {:?} {:?}",
        good.metadata.name, good.data
    ));
    output.shows(&["limits: Idle", "limits: Watching"]).await?;
    factory.shutdown().await;
    while let Some(ended) = telling.join_next().await {
        ended?;
    }
    output.shows(&["limits: Watching", "limits: Stopped"]).await
}

/// Prints the activity of an informer each time the activity changes. Returns when the informer stops.
///
/// An activity that ends quickly may not be printed, because the status contains only the current activity.
async fn tell(name: &'static str, mut status: StatusReader, output: Transcript) {
    let mut told = None;
    while let Some(now) = status.wait_for(|now| Some(now.activity()) != told).await {
        match now.activity() {
            Activity::Listing { page, objects } => {
                output.say(format!("{name}: page {page}, {objects} objects so far"));
            }
            Activity::BackingOff { pause, attempt } => {
                output.say(format!(
                    "{name}: failed {attempt} times, waits for {pause:?}"
                ));
            }
            other => output.say(format!("{name}: {other:?}")),
        }
        if now.is_stopped() {
            break;
        }
        told = Some(now.activity());
    }
}

/// Runs an informer for a kind that the server does not serve.
///
/// The informer retries. The wait for its sync fails immediately, because the wait has the option
/// `fail_fast`.
async fn an_informer_of_an_unknown_kind(client: Client, output: Transcript) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("kube-informer.example.com", "v1", "Nonesuch");
    let resource = ApiResource::from_gvk_with_plural(&kind, "nonesuches");
    let factory = SharedInformerFactory::builder(client).build();
    let nonesuches = factory.for_resource(&resource)?;
    factory.start();
    let synced = nonesuches.wait_for_sync().deadline(TIMEOUT).fail_fast();
    let error = synced.await.err().context("an unknown kind has synced")?;
    output.say(format!("nonesuches: {}", error.status));
    ensure!(
        error.failure == SyncFailure::Refused,
        "the failure has another reason: {error}"
    );
    let activity = error.status.activity();
    ensure!(
        matches!(activity, Activity::BackingOff { attempt: 1, .. }),
        "its activity is {activity:?}"
    );
    ensure!(error.status.last_error().is_some(), "the reason is missing");
    factory.shutdown().await;
    Ok(())
}

async fn create(maps: &Api<ConfigMap>, name: &str, limit: &str) -> anyhow::Result<()> {
    let map = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {LABEL: "status"}},
        "data": {"memory": limit},
    }))?;
    let created = maps.create(&PostParams::default(), &map).await;
    created.with_context(|| format!("can't create config map {name}"))?;
    Ok(())
}

async fn clear(maps: &Api<ConfigMap>) -> anyhow::Result<()> {
    let ours = ListParams::default().labels(&format!("{LABEL}=status"));
    let deleted = maps
        .delete_collection(&DeleteParams::default(), &ours)
        .await;
    deleted.context("can't delete the example's config maps")?;
    Ok(())
}
