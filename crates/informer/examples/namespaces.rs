//! Uses one informer factory for two namespaces, with four informers of the kind `Secret`.
//!
//! - The first informer caches all secrets of the two namespaces.
//! - The second informer caches only the secrets with a certain label.
//! - The third informer caches only the metadata of the secrets.
//! - The fourth informer caches the secrets as dynamic objects. Such objects are for kinds that are known
//!   only at run time.
//!
//! Each informer has one cache for both namespaces. If the factory is called twice with the same type,
//! namespaces and selectors, it returns the same informer.
//!
//! `cargo run -p kube-informer --example namespaces [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube_client::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use kube_core::{ApiResource, GroupVersionKind, PartialObjectMeta, Resource};
use kube_informer::{InformerOptions, Lister, Selector, SharedInformerFactory};
use kube_informer_apiserver::Server;
use serde_json::json;

use self::cluster::Cluster;

/// Key of a label that all secrets of the program have.
const LABEL: &str = "kube-informer-example";

/// Namespaces in which the program creates secrets. Every cluster has these namespaces.
///
/// The factory's informers observe only the first two namespaces.
const NAMESPACES: [&str; 3] = ["default", "kube-node-lease", "kube-public"];

/// Content of every secret: nine bytes, base64-encoded as in the JSON of a secret.
const WORD: &str = "eHl6enktMTIz";

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(namespaces().await)
}

async fn namespaces() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    clear(&cluster.client()).await?;
    for namespace in NAMESPACES {
        create(&cluster.client(), namespace, "ours", "us").await?;
        create(&cluster.client(), namespace, "theirs", "them").await?;
    }
    let compared = compare(cluster.client()).await;
    clear(&cluster.client()).await?;
    cluster.close().await;
    compared
}

async fn compare(client: Client) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(client)
        .namespaces([NAMESPACES[0], NAMESPACES[1]])
        .build();
    let secrets = factory.informer::<Secret>();
    let ours: Selector = "managed-by=us".parse()?;
    let ours = factory.informer_with::<Secret>(InformerOptions::new().labels(ours))?;
    // This type requests only metadata: the server sends no content of a secret.
    let names = factory.informer::<PartialObjectMeta<Secret>>();
    let kind = GroupVersionKind::gvk("", "v1", "Secret");
    let resource = ApiResource::from_gvk_with_plural(&kind, "secrets");
    let dynamic = factory.for_resource(&resource)?;
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(Duration::from_secs(30)).fail_fast().await?;

    let made = format!("{LABEL}=namespaces").parse()?;
    let all = "default/ours default/theirs kube-node-lease/ours kube-node-lease/theirs";
    expect("all", &listed(&secrets.lister(), &made), all)?;
    let us = "default/ours kube-node-lease/ours";
    expect("managed by us", &listed(&ours.lister(), &made), us)?;
    expect("metadata only", &listed(&names.lister(), &made), all)?;
    expect("at run time", &listed(&dynamic.lister(), &made), all)?;

    let secret = secrets.lister().namespace("default").get("ours")?;
    let size = secret.data.as_ref().and_then(|data| data.get("word"));
    let size = size.map(|word| word.0.len());
    println!("a secret's word has {size:?} bytes");
    ensure!(size == Some(9), "the secret has another word");
    let secret = dynamic.lister().namespace("default").get("ours")?;
    println!("at run time it is {}", secret.data["data"]["word"]);
    ensure!(
        secret.data["data"]["word"] == WORD,
        "the dynamic secret has another word"
    );
    let secret = names.lister().namespace("default").get("ours")?;
    let kind = secret.types.as_ref().map(|types| types.kind.as_str());
    println!("the metadata have kind {kind:?}");
    ensure!(
        kind == Some("PartialObjectMetadata"),
        "the server sent more than metadata"
    );

    // Requests that share an informer must have the same options, except for its scope.
    let otherwise = InformerOptions::new().resync(Duration::from_secs(60));
    let conflict = factory.informer_with::<Secret>(otherwise).map(|_| ());
    let conflict = conflict
        .err()
        .context("two resync periods for one informer")?;
    println!("refused: {conflict}");
    factory.shutdown().await;
    Ok(())
}

/// Returns the names of the cached objects that match the selector `made`, as text.
///
/// The names are in the order in which the lister returns the objects.
fn listed<K: Resource>(lister: &Lister<K>, made: &Selector) -> String {
    let names: Vec<_> = lister
        .list(made)
        .map(|object| object.object_name().to_string())
        .collect();
    names.join(" ")
}

fn expect(what: &str, found: &str, expected: &str) -> anyhow::Result<()> {
    println!("{what}: {found}");
    ensure!(found == expected, "{what}: {expected} were expected");
    Ok(())
}

async fn create(client: &Client, namespace: &str, name: &str, by: &str) -> anyhow::Result<()> {
    let secret = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {LABEL: "namespaces", "managed-by": by}},
        "data": {"word": WORD},
    }))?;
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let created = secrets.create(&PostParams::default(), &secret).await;
    created.with_context(|| format!("can't create secret {namespace}/{name}"))?;
    Ok(())
}

/// Deletes all secrets that this run or an earlier failed run of the program created.
async fn clear(client: &Client) -> anyhow::Result<()> {
    let at_once = DeleteParams::default();
    let made = ListParams::default().labels(&format!("{LABEL}=namespaces"));
    for namespace in NAMESPACES {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        let deleted = secrets.delete_collection(&at_once, &made).await;
        deleted.with_context(|| format!("can't delete secrets in {namespace}"))?;
    }
    Ok(())
}
