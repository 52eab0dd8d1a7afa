//! Runs a controller whose event handler and workers are connected by a work queue.
//!
//! The event handler adds the names of changed pods to the queue. Workers get names from the queue and read
//! the pods from the indexer.
//!
//! - Only one worker at a time processes a name. If several events arrive before a name is processed, the
//!   name is processed once. The program runs with one worker and with three workers, and the result is the
//!   same.
//! - A worker acts on the current state in the indexer, not on the event. For a worker, a deleted pod is the
//!   same as a pod that never existed.
//! - A failed name is retried with an increasing delay, and is dropped after five retries.
//! - The pod `mypod` simulates a pod that was deleted while the controller was stopped. The controller adds
//!   `mypod` to its cache before the first list. The list does not contain `mypod`, so the informer delivers
//!   a deletion of `mypod`.
//!
//! `cargo run -p kube-informer --example pod_workqueue [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{process::ExitCode, time::Duration};

use anyhow::{bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;
use kube_informer::{
    Event, EventHandler, Indexer, ObjectName,
    client::ListWatch,
    enqueue,
    event_handler::Enqueue,
    informer::Informer,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use kube_informer_apiserver::Server;
use tokio::{sync::oneshot, task::JoinSet};

use self::{cluster::Cluster, pods::Pods, transcript::Transcript};

const RETRIES_MAX: u32 = 5;

/// Event handler that adds the name of each changed pod to the queue.
///
/// The handler also prints each deletion whose watch event the informer missed.
struct Queueing {
    enqueue: Enqueue,
    output: Transcript,
}

impl EventHandler<Pod> for Queueing {
    async fn handle(&mut self, event: Event<Pod>) {
        if let Event::Deleted(gone) = &event
            && gone.is_final_state_unknown()
        {
            let name = gone.object_name();
            self.output.say(format!(
                "Pod {name} was deleted while the controller was stopped"
            ));
        }
        self.enqueue.handle(event).await;
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(pod_workqueue().await)
}

async fn pod_workqueue() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    for workers in [1, 3] {
        run(&cluster, workers).await?;
    }
    cluster.close().await;
    Ok(())
}

/// Runs the scenario once, with a controller that has `workers` workers.
///
/// The example's pods are deleted from the cluster before and after the run.
async fn run(cluster: &Cluster, workers: usize) -> anyhow::Result<()> {
    let output = Transcript::new();
    output.say(format!("Workers: {workers}"));
    let ours = Pods::new(cluster.client(), "pod-workqueue").await?;
    ours.create("queued-1").await?;

    let queue = RateLimitingQueue::new(rate_limiter::controller_default());
    let source = ListWatch::<Pod>::new(cluster.client()).namespace("default");
    let (pods, controller) = Informer::builder(source)
        .resync(Duration::ZERO)
        .known_objects([known_last_time("mypod")])?
        .handler(Queueing {
            enqueue: enqueue(&queue),
            output,
        })
        .build();
    let synced = controller.wait_for_sync();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(async {
        // An error means that the program failed; it ends the informer too.
        let ended = controller.run(async { drop(stopped.await) }).await;
        ended.map(|_| ()).map_err(anyhow::Error::from)
    });

    // Before the sync, a worker would treat every pod that is not listed yet as deleted.
    synced.deadline(Duration::from_secs(30)).await?;
    output.say("The cache is complete");
    for _ in 0..workers {
        let worker = work(queue.clone(), pods.clone(), output);
        tasks.spawn(async {
            worker.await;
            Ok(())
        });
    }
    act(&ours, output).await?;

    queue.shut_down_with_drain().await;
    // The send fails if the informer has failed; its result has the reason.
    let _ = stop.send(());
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    ensure!(
        queue.given_up_items() == 1,
        "the number of pods that were given up is not one"
    );
    ensure!(queue.dropped_items() == 0, "an item had no verdict");
    ours.clear().await
}

/// Returns a pod that stands for an object in the cache of an earlier run of the program.
///
/// The informer uses only the name of the pod.
fn known_last_time(name: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

/// Runs one worker until the queue is shut down.
async fn work(queue: RateLimitingQueue<ObjectName>, pods: Indexer<Pod>, output: Transcript) {
    while let Some(item) = queue.get().await {
        let (name, failures) = (item.key(), item.requeues());
        match sync(&pods, name, failures) {
            Ok(done) => {
                output.say(done);
                item.forget();
            }
            Err(error) if failures < RETRIES_MAX => {
                let attempt = failures + 1;
                output.say(format!(
                    "Error syncing pod {name}, attempt {attempt}: {error}"
                ));
                item.retry();
            }
            Err(error) => {
                output.say(format!("Dropping pod {name} out of the queue: {error}"));
                item.give_up();
            }
        }
    }
}

/// Reconciles one pod and returns a line to print. `failures` is the number of failed attempts for this pod.
///
/// To demonstrate retries, the function returns an error if the pod has the label `fails`.
fn sync(pods: &Indexer<Pod>, name: &ObjectName, failures: u32) -> anyhow::Result<String> {
    let Some(pod) = pods.get(name) else {
        return Ok(format!("Pod {name} does not exist anymore"));
    };
    match pod.labels().get("fails") {
        Some("twice") if failures < 2 => bail!("not yet"),
        Some("always") => bail!("impossible"),
        _ => Ok(format!(
            "Sync/Add/Update for Pod {name} at {}",
            pod.revision()
        )),
    }
}

/// Creates, changes and deletes pods. After each change, waits for the output of the controller.
///
/// Because of the waits, every run prints the same lines.
async fn act(ours: &Pods, output: Transcript) -> anyhow::Result<()> {
    let synced = |pod: Pod| {
        let meta = pod.metadata;
        let (name, revision) = (meta.name, meta.resource_version);
        let (name, revision) = (name.unwrap_or_default(), revision.unwrap_or_default());
        format!("Sync/Add/Update for Pod default/{name} at {revision}")
    };
    output
        .shows(&["Pod default/mypod was deleted while the controller was stopped"])
        .await?;
    output
        .shows(&[
            "The cache is complete",
            "Pod default/mypod does not exist anymore",
        ])
        .await?;
    let created = synced(ours.create("queued-2").await?);
    output.shows(&[&created]).await?;
    let changed = synced(ours.label("queued-2", "fails", "twice").await?);
    output
        .shows(&[
            "Error syncing pod default/queued-2, attempt 1: not yet",
            "Error syncing pod default/queued-2, attempt 2: not yet",
            &changed,
        ])
        .await?;
    ours.delete("queued-2").await?;
    let gone = "Pod default/queued-2 does not exist anymore";
    output.shows(&[gone]).await?;
    ours.label("queued-1", "fails", "always").await?;
    let failure =
        |attempt| format!("Error syncing pod default/queued-1, attempt {attempt}: impossible");
    let mut failures: Vec<_> = (1..=RETRIES_MAX).map(failure).collect();
    failures.push("Dropping pod default/queued-1 out of the queue: impossible".to_owned());
    let failures: Vec<_> = failures.iter().map(String::as_str).collect();
    output.shows(&failures).await
}
