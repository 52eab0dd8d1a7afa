//! Shows a `DeltaFifo` without an informer, and then an informer whose queue is a `DeltaFifo`.
//!
//! For each object, a `DeltaFifo` contains the changes (deltas) since the object was last popped. Objects are
//! popped in the order in which they were queued. A `DeltaFifo` has no lock, because it has only one owner,
//! such as the controller of an informer.
//!
//! `cargo run -p kube-informer --example delta_fifo [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube_core::ObjectMeta;
use kube_informer::{
    Deleted, Indexers, InformerOptions, Object, ObjectName, SharedInformerFactory,
    factory::QueueKind,
    indexer,
    object::SourceId,
    queue::{DeltaFifo, Popped, Queue, Replaced},
    reflector::{Delta, DeltaKind, DeltaType},
};
use kube_informer_apiserver::Server;

use self::cluster::Cluster;

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(delta_fifo().await)
}

async fn delta_fifo() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    deltas_of_one_object_are_popped_together()?;
    a_list_deletes_missing_objects()?;
    a_resync_skips_objects_with_queued_deltas()?;
    an_informer_with_a_delta_fifo(&cluster).await?;
    cluster.close().await;
    Ok(())
}

fn deltas_of_one_object_are_popped_together() -> anyhow::Result<()> {
    let mut fifo = DeltaFifo::new();
    fifo.push(Delta::updated(object("pod1", "2")?))?;
    fifo.push(Delta::updated(object("pod2", "3")?))?;
    fifo.push(Delta::updated(object("pod1", "4")?))?;
    fifo.push(Delta::deleted(object("pod1", "5")?))?;
    ensure!(fifo.len() == 2, "deltas of two objects are not two keys");

    let popped = fifo.pop().context("no key is queued")?;
    println!("popped {} with {:?}", popped.name, types(&popped));
    ensure!(
        popped.name.as_str() == "default/pod1",
        "the first key was not popped first"
    );
    ensure!(types(&popped) == [DeltaType::Updated, DeltaType::Updated, DeltaType::Deleted]);
    Ok(())
}

fn a_list_deletes_missing_objects() -> anyhow::Result<()> {
    let (_, mut store) = indexer::new(Indexers::new())?;
    store.add(pod("pod1", "2"))?;
    store.add(pod("pod2", "3"))?;
    let mut fifo = DeltaFifo::new();
    let list = Replaced {
        source: SourceId::default(),
        objects: vec![object("pod1", "2")?],
        revision: "9".into(),
    };
    // The queue borrows the store for this call, to find the missing objects.
    fifo.replace(list, &store)?;

    let listed = fifo.pop().context("an object of the list is not queued")?;
    println!("popped {} with {:?}", listed.name, types(&listed));
    ensure!(types(&listed) == [DeltaType::Replaced]);
    let missing = fifo.pop().context("a missing object is not queued")?;
    println!("popped {} with {:?}", missing.name, types(&missing));
    let Some(DeltaKind::Deleted(gone)) = missing.newest().map(|delta| &delta.kind) else {
        anyhow::bail!("a missing object is not deleted");
    };
    // The deletion event was missed, so the final state is unknown.
    ensure!(matches!(gone, Deleted::FinalStateUnknown { .. }));
    ensure!(gone.object_name().name() == "pod2");
    Ok(())
}

fn a_resync_skips_objects_with_queued_deltas() -> anyhow::Result<()> {
    let (_, mut store) = indexer::new(Indexers::new())?;
    store.add(pod("pod1", "2"))?;
    store.add(pod("pod2", "3"))?;
    let mut fifo = DeltaFifo::new();
    fifo.push(Delta::updated(object("pod1", "4")?))?;
    fifo.resync(&store);

    let popped: Vec<_> = fifo.drain().collect();
    for popped in &popped {
        println!("popped {} with {:?}", popped.name, types(popped));
    }
    // A sync of pod1 would deliver an older state after a newer one.
    let all: Vec<_> = popped.iter().map(types).collect();
    ensure!(all == [[DeltaType::Updated], [DeltaType::Sync]]);
    Ok(())
}

async fn an_informer_with_a_delta_fifo(cluster: &Cluster) -> anyhow::Result<()> {
    let factory = SharedInformerFactory::builder(cluster.client()).build();
    let options = InformerOptions::new().queue(QueueKind::DeltaFifo);
    let namespaces = factory.informer_with::<Namespace>(options)?;
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(Duration::from_secs(30)).await?;
    let default = namespaces.lister().get(&ObjectName::cluster("default"))?;
    println!(
        "an informer with a DeltaFifo has cached {:?}",
        default.metadata.name
    );
    factory.shutdown().await;
    Ok(())
}

fn types(popped: &Popped<Pod>) -> Vec<DeltaType> {
    popped.deltas.iter().map(Delta::delta_type).collect()
}

fn object(name: &str, revision: &str) -> anyhow::Result<Object<Pod>> {
    Ok(Object::new(pod(name, revision))?)
}

fn pod(name: &str, revision: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            resource_version: Some(revision.to_owned()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}
