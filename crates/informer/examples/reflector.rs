//! Runs reflectors without an informer. A reflector lists and watches, and has no queue and no handlers.
//!
//! The first reflector writes to an indexer. The second reflector writes to a custom store.
//!
//! `cargo run -p kube-informer --example reflector [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{
    Indexers, Object, ObjectName, Selector,
    client::ListWatch,
    indexer,
    reflector::{Delta, DeltaKind, Reflector, ReflectorStore, StoreError},
};
use kube_informer_apiserver::Server;
use tokio::{sync::watch, time::timeout};

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
};

const TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(reflector().await)
}

async fn reflector() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Pods::new(cluster.client(), "reflector").await?;
    ours.create("a").await?;
    ours.label("a", "tier", "web").await?;
    ours.create("b").await?;
    let ours_only: Selector = format!("{LABEL}=reflector").parse()?;
    let source = ListWatch::<Pod>::new(cluster.client()).labels(&ours_only);
    into_an_indexer(source.clone()).await?;
    into_a_store_of_ones_own(source, &ours).await?;
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

async fn into_an_indexer(source: ListWatch<Pod>) -> anyhow::Result<()> {
    let by_tier = Indexers::new().with("tier", |pod: &Pod| pod.labels().get("tier").cloned());
    let (indexer, writer) = indexer::new(by_tier)?;
    let reflector = Reflector::builder(source)
        .name("pods by tier")
        .into_indexer(writer);
    let synced = reflector.wait_for_sync().deadline(TIMEOUT);
    // Any future can end the reflector: here the end of the first list, in a long-running program a signal.
    let mut outcome = Ok(());
    reflector.run(async { outcome = synced.await }).await;
    outcome?;
    let web = indexer.index_keys("tier", "web")?;
    println!("tier web: {web:?}");
    ensure!(format!("{web:?}") == "[default/a]");
    let all = indexer.index_keys("namespace", "default")?;
    println!("all: {all:?}");
    ensure!(format!("{all:?}") == "[default/a, default/b]");
    Ok(())
}

/// A custom store that counts pods by the value of their label `tier`. It stores only the name and the tier
/// of each pod.
struct Census {
    tiers: BTreeMap<ObjectName, String>,
    counts: watch::Sender<BTreeMap<String, usize>>,
}

impl ReflectorStore<Pod> for Census {
    async fn accept(&mut self, delta: Delta<Pod>) -> Result<(), StoreError> {
        match delta.kind {
            DeltaKind::ReplacedAll { objects, .. } => {
                self.tiers.clear();
                for pod in &objects {
                    self.count(pod);
                }
            }
            DeltaKind::Added(pod) | DeltaKind::Updated(pod) => self.count(&pod),
            DeltaKind::Deleted(gone) => {
                self.tiers.remove(gone.object_name());
            }
            // Other deltas contain only the progress of the server.
            _ => return Ok(()),
        }
        self.counts.send_modify(|counts| {
            counts.clear();
            for tier in self.tiers.values() {
                *counts.entry(tier.clone()).or_default() += 1;
            }
        });
        Ok(())
    }
}

impl Census {
    fn count(&mut self, pod: &Object<Pod>) {
        let tier = pod.labels().get("tier").unwrap_or("none").to_owned();
        self.tiers.insert(pod.object_name().clone(), tier);
    }
}

async fn into_a_store_of_ones_own(source: ListWatch<Pod>, ours: &Pods) -> anyhow::Result<()> {
    let (counts, mut counted) = watch::channel(BTreeMap::new());
    let census = Census {
        tiers: BTreeMap::new(),
        counts,
    };
    let reflector = Reflector::builder(source)
        .name("census")
        .transform(|pod: &mut Pod| pod.spec = None)
        .into_store(census);
    let mut outcome = Ok(());
    let acting = async {
        outcome = async {
            shows(&mut counted, &[("none", 1), ("web", 1)]).await?;
            ours.label("b", "tier", "cache").await?;
            shows(&mut counted, &[("cache", 1), ("web", 1)]).await?;
            ours.delete("a").await?;
            shows(&mut counted, &[("cache", 1)]).await
        }
        .await;
    };
    reflector.run(acting).await;
    outcome
}

/// Waits until the numbers of pods per tier in `counted` are exactly the numbers in `expected`.
async fn shows(
    counted: &mut watch::Receiver<BTreeMap<String, usize>>,
    expected: &[(&str, usize)],
) -> anyhow::Result<()> {
    let expected: BTreeMap<_, _> = expected
        .iter()
        .map(|(tier, count)| ((*tier).to_owned(), *count))
        .collect();
    let waiting = timeout(TIMEOUT, counted.wait_for(|counts| *counts == expected));
    let counts = waiting
        .await
        .with_context(|| format!("{expected:?} was not counted"))??;
    println!("census: {:?}", *counts);
    Ok(())
}
