//! Reads the cache of an informer by name, by labels, by an index, and from a snapshot.
//!
//! A read sends no request and does not block. Each read returns objects of one consistent state of the
//! cache. A snapshot does not change when the cache changes.
//!
//! `cargo run -p kube-informer --example read_cache [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;

use std::{num::ParseIntError, process::ExitCode, sync::Arc, time::Duration};

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{InformerOptions, Object, Selector, SharedInformer, SharedInformerFactory};
use kube_informer_apiserver::Server;

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
};

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(read_cache().await)
}

async fn read_cache() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Pods::new(cluster.client(), "read-cache").await?;
    for (name, tier, rank) in [
        ("a", "web", "1"),
        ("b", "web", "first"),
        ("c", "cache", "2"),
    ] {
        ours.create(name).await?;
        ours.label(name, "tier", tier).await?;
        ours.label(name, "rank", rank).await?;
    }

    let factory = SharedInformerFactory::builder(cluster.client()).build();
    let selector = format!("{LABEL}=read-cache").parse()?;
    let pods = factory.informer_with::<Pod>(InformerOptions::new().labels(selector))?;
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(TIMEOUT).await?;

    by_name(&pods)?;
    by_labels(&pods)?;
    by_index(&pods).await?;
    as_a_snapshot(&pods, &ours).await?;
    factory.shutdown().await;
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

fn by_name(pods: &SharedInformer<Pod>) -> anyhow::Result<()> {
    let lister = pods.lister().namespace("default");
    // The pod is shared with the cache, not copied.
    let pod: Arc<Pod> = lister.get("a")?;
    println!("a is {}", pod.labels()["tier"]);
    ensure!(pod.labels()["tier"] == "web", "a has another tier");

    // The error names the kind and the object, so it can be returned as it is.
    let error = lister
        .get("mypod")
        .map(|_| ())
        .map_err(|error| error.to_string());
    println!("mypod: {error:?}");
    ensure!(error == Err("Pod default/mypod not found".to_owned()));

    let nothing: Option<Object<Pod>> = lister.find("mypod");
    ensure!(nothing.is_none(), "a pod was found that was never created");
    Ok(())
}

fn by_labels(pods: &SharedInformer<Pod>) -> anyhow::Result<()> {
    let web: Selector = "tier in (web, api), rank!=1".parse()?;
    let found: Vec<_> = pods.lister().list(&web).collect();
    let found = names(&found);
    println!("{web}: {found}");
    ensure!(found == "b", "{web} finds {found:?}");
    Ok(())
}

async fn by_index(pods: &SharedInformer<Pod>) -> anyhow::Result<()> {
    // An index can be added at any time, and covers all cached objects at once.
    let tier = pods
        .add_index("tier", |pod| pod.labels().get("tier").cloned())
        .await?;
    let indexer = pods.indexer();
    // The token is checked at compile time; the name works where the token is not available.
    let web = names(&indexer.by_index(&tier, "web")?);
    let cache = names(&indexer.by_index("tier", "cache")?);
    println!("web: {web}; cache: {cache}");
    ensure!(
        (web.as_str(), cache.as_str()) == ("a b", "c"),
        "the index by tier is wrong"
    );
    let error = indexer
        .by_index("teir", "web")
        .map(|_| ())
        .map_err(|error| error.to_string());
    println!("teir: {error:?}");
    ensure!(error.is_err(), "an index was found that was never added");

    // Objects for which the function fails are not in this index, and are counted.
    let rank = |pod: &Pod| -> Result<Option<String>, ParseIntError> {
        let rank = pod.labels().get("rank").map(|rank| rank.parse::<u32>());
        Ok(rank.transpose()?.map(|rank| format!("{rank:03}")))
    };
    pods.try_add_index("rank", rank).await?;
    let ranks = indexer.index_values("rank")?;
    let status = pods.status().get();
    let error = status.last_index_error.unwrap_or_default();
    println!("ranks: {ranks:?}; not indexed: {error}");
    ensure!(
        ranks.iter().eq(["001", "002"].map(Arc::from).iter()),
        "the index by rank is wrong"
    );
    ensure!(
        status.index_errors == 1,
        "{} pods were not indexed",
        status.index_errors
    );
    Ok(())
}

async fn as_a_snapshot(pods: &SharedInformer<Pod>, ours: &Pods) -> anyhow::Result<()> {
    let before = pods.indexer().snapshot();
    ours.delete("a").await?;
    let moved = ours.label("c", "tier", "web").await?;
    // The response to a write has a revision. A cache that has reached this revision contains this write and
    // all earlier writes.
    pods.wait_for_revision(&moved, TIMEOUT).await?;
    let now = pods.indexer().snapshot();
    for (moment, snapshot, expected) in [("before", before, (3, "a b")), ("now", now, (2, "b c"))] {
        let web: Vec<_> = snapshot.by_index("tier", "web")?.cloned().collect();
        let (count, web) = (snapshot.namespace("default").iter().count(), names(&web));
        println!("{moment}: {count} pods, web: {web}");
        ensure!(
            (count, web.as_str()) == expected,
            "{moment} the pods differ"
        );
    }
    Ok(())
}

fn names(pods: &[Object<Pod>]) -> String {
    let names: Vec<_> = pods.iter().map(Object::name).collect();
    names.join(" ")
}
