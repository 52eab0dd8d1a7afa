//! Tests the replica set controller with the embedded server and paused time.

use std::time::Duration;

use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::step::Step;

/// Maximum virtual time that a test waits until the caches are synced.
const LONG: Duration = Duration::from_secs(60);

fn replica_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "pause"}]},
            },
        },
    })
}

fn names(server: &Server) -> BTreeSet<String> {
    let pods = server.list("v1", "pods");
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    pods.iter().map(name).collect()
}

/// Starts a replica set controller without workers in a new control plane, and waits until the caches of the
/// controller are synced.
async fn controller(server: &Server) -> (ControlPlane, mpsc::Receiver<Step>) {
    let (mut plane, steps) = ControlPlane::of_default();
    let mut process = plane.process("controller", server.client());
    open(&mut plane, &mut process).await.unwrap();
    plane.host(process);
    plane.observe(LONG).await.unwrap();
    (plane, steps)
}

/// Waits one second of virtual time, in which all pending operations complete.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stale_cache_creates_no_pod_twice() {
    let server = Server::builder().seed([replica_set(3)]).build();
    let (mut plane, _steps) = controller(&server).await;
    server.faults().freeze_watches();
    plane.act();
    settle().await;
    let made = names(&server);
    assert_eq!(made.len(), 3);
    for _ in 0..3 {
        plane.queues[0].add(ObjectName::namespaced("default", "web"));
        settle().await;
    }
    assert_eq!(names(&server), made, "the cache shows none of them");

    server.faults().thaw_watches();
    settle().await;
    assert_eq!(names(&server), made);
    let set = server.get("apps/v1", "replicasets", "default/web").unwrap();
    assert_eq!(set["status"]["replicas"], 3);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_deleted_and_replaced() {
    let server = Server::builder().seed([replica_set(2)]).build();
    let (mut plane, _steps) = controller(&server).await;
    plane.act();
    settle().await;
    let before = names(&server);
    let failed = before.first().unwrap();
    let status = json!({"status": {"phase": "Failed"}});
    server
        .patch("v1", "pods", &format!("default/{failed}"), status)
        .unwrap();
    settle().await;
    let after = names(&server);
    assert_eq!(after.len(), 2);
    assert!(!after.contains(failed));
    assert_eq!(
        before.intersection(&after).count(),
        1,
        "the other one stays"
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn scaling_down_deletes_the_least_useful_pods() {
    let server = Server::builder().seed([replica_set(2)]).build();
    let (mut plane, _steps) = controller(&server).await;
    plane.act();
    settle().await;
    let before = names(&server);
    let useful = before.last().unwrap();
    let bound = json!({"spec": {"nodeName": "n"}});
    server
        .patch("v1", "pods", &format!("default/{useful}"), bound)
        .unwrap();
    let fewer = json!({"spec": {"replicas": 1}});
    server
        .patch("apps/v1", "replicasets", "default/web", fewer)
        .unwrap();
    settle().await;
    assert_eq!(names(&server), BTreeSet::from([useful.clone()]));
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_creation_is_retried_until_there_are_enough() {
    let server = Server::builder().seed([replica_set(3)]).build();
    let (mut plane, _steps) = controller(&server).await;
    let creations =
        kube_informer_apiserver::Match::verb(kube_informer_apiserver::Verb::Create, "pods");
    server.faults().answer(creations, 500).times(2);
    plane.act();
    settle().await;
    assert_eq!(names(&server).len(), 3);
    plane.shutdown().await;
}
