//! Builds an informer from its components, as client-go programs do with `cache.Config` and `cache.New`.
//!
//! The components are a reflector, a `DeltaFifo`, an indexer, and a process function that applies the deltas
//! to the indexer. If the process function returns an error, the deltas are queued again.
//!
//! `cargo run -p kube-informer --example informer_by_hand [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;

use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{
    Indexers, ObjectName, Selector,
    client::ListWatch,
    controller::Config,
    indexer::{self, Change, IndexerWriter},
    queue::{Batch, DeltaFifo, Popped},
    reflector::{Delta, Reflector},
};
use kube_informer_apiserver::Server;
use tokio::{sync::mpsc, time::timeout};

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Capacity, in lines, of the channel for the output of the process function.
///
/// The process function sends fewer lines than this in total, so the channel is never full.
const SHOWN_MAX: usize = 64;

/// Name of the pod for which the process function returns an error once.
const FLAKY: &str = "default/flaky";

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(informer_by_hand().await)
}

async fn informer_by_hand() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Pods::new(cluster.client(), "informer-by-hand").await?;
    ours.create("steady").await?;
    ours.create("flaky").await?;

    let ours_only: Selector = format!("{LABEL}=informer-by-hand").parse()?;
    let source = ListWatch::<Pod>::new(cluster.client()).labels(&ours_only);
    let (indexer, writer) = indexer::new(Indexers::new())?;
    let (lines, mut printed) = mpsc::channel(SHOWN_MAX);
    let controller = Config::new(
        Reflector::builder(source).name("pods by hand"),
        DeltaFifo::new(),
        process(writer, lines),
    )
    .known_objects(indexer.clone())
    .retry_on_error(true)
    .build();

    let synced = controller.wait_for_sync().deadline(TIMEOUT);
    let mut outcome = Ok(());
    let acting = async {
        outcome = async {
            synced.await?;
            expect(&mut printed, "added default/flaky at the second attempt").await?;
            ours.label("steady", "tier", "web").await?;
            expect(&mut printed, "updated default/steady").await?;
            let steady = indexer.get(&ObjectName::namespaced("default", "steady"));
            let steady = steady.context("the store lacks a pod")?;
            println!("steady has {:?}", steady.get()?.labels().get("tier"));
            ours.delete("flaky").await?;
            expect(&mut printed, "deleted default/flaky").await
        }
        .await;
    };
    let ended = controller.run(acting).await?;
    outcome?;
    println!("ended; {} changes were discarded", ended.discarded);
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

/// Returns the process function. It applies the deltas of one object to the store.
///
/// The function sends a line to `lines` for each object that was added, updated or deleted in the store.
fn process(
    mut writer: IndexerWriter<Pod>,
    lines: mpsc::Sender<String>,
) -> impl FnMut(&Popped<Pod>) -> Result<(), &'static str> {
    let mut attempts = 0;
    move |popped| {
        let is_flaky = popped.name.as_str() == FLAKY;
        attempts += u32::from(is_flaky);
        if is_flaky && attempts == 1 {
            println!(
                "failed {FLAKY} with {:?}",
                popped
                    .deltas
                    .iter()
                    .map(Delta::delta_type)
                    .collect::<Vec<_>>()
            );
            return Err("not ready yet");
        }
        let suffix = if is_flaky && attempts == 2 {
            " at the second attempt"
        } else {
            ""
        };
        let applied = writer.apply(Batch {
            deltas: popped.deltas.clone(),
            in_initial_list: popped.in_initial_list,
            completes: None,
            reached: Vec::new(),
        });
        for change in applied.changes {
            let what = match change {
                Change::Added { .. } => "added",
                Change::Updated { .. } => "updated",
                Change::Deleted { .. } => "deleted",
                _ => continue,
            };
            // The send fails only when the example ends and drops the receiver.
            drop(lines.try_send(format!("{what} {}{suffix}", popped.name)));
        }
        Ok(())
    }
}

/// Receives and prints lines until a line equals `expected`.
///
/// Returns an error if this takes too long or if the controller has ended.
async fn expect(printed: &mut mpsc::Receiver<String>, expected: &str) -> anyhow::Result<()> {
    loop {
        let line = timeout(TIMEOUT, printed.recv()).await;
        let line = line.with_context(|| format!("{expected:?} was not printed"))?;
        let line = line.context("the controller has ended")?;
        println!("{line}");
        if line == expected {
            return Ok(());
        }
    }
}
