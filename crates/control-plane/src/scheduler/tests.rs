//! Tests the scheduler with the embedded server and paused time.

use std::time::Duration;

use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::*;
use crate::step::Step;

/// Maximum virtual time that a test waits.
const LONG: Duration = Duration::from_secs(60);

fn node(name: &str, cpu: &str) -> Value {
    let room = json!({"cpu": cpu, "memory": "1Gi", "pods": "10"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"allocatable": room},
    })
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
    })
}

fn bound_pod(name: &str, cpu: &str, node: &str) -> Value {
    let mut pod = pod(name, cpu);
    pod["spec"]["nodeName"] = json!(node);
    pod
}

fn node_name(server: &Server, pod: &str) -> Value {
    let pod = server.get("v1", "pods", &format!("default/{pod}")).unwrap();
    pod["spec"]["nodeName"].clone()
}

/// Returns a control plane whose only loop is the scheduler, and a receiver of the loop's steps.
///
/// The caches are synced, but the scheduler's workers are not started. Call [`ControlPlane::act`] to start
/// them.
async fn scheduler(server: &Server) -> (ControlPlane, mpsc::Receiver<Step>) {
    let (mut plane, steps) = ControlPlane::of_default();
    let mut process = plane.process("scheduler", server.client());
    open(&mut plane, &mut process, Reach::PodsAndNodes)
        .await
        .unwrap();
    plane.host(process);
    plane.observe(LONG).await.unwrap();
    (plane, steps)
}

/// Receives steps until one has the kind `kind`, and returns that step.
async fn next(steps: &mut mpsc::Receiver<Step>, kind: Kind) -> Step {
    let found = async {
        loop {
            let step = steps.recv().await.unwrap();
            if step.kind == kind {
                return step;
            }
        }
    };
    timeout(LONG, found)
        .await
        .unwrap_or_else(|_| panic!("no step of kind {kind:?} was reported"))
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_receives_no_pods_until_it_is_uncordoned() {
    let server = Server::builder()
        .seed([node("n", "1"), pod("waits", "1")])
        .build();
    let cordon = |is: bool| json!({"spec": {"unschedulable": is}});
    server.patch("v1", "nodes", "n", cordon(true)).unwrap();
    let (mut plane, mut steps) = scheduler(&server).await;
    plane.act();
    let step = next(&mut steps, Kind::NoNodeFits).await;
    let text = "0/1 nodes are available: 1 node(s) were unschedulable";
    assert!(step.text.ends_with(text), "{}", step.text);
    server.patch("v1", "nodes", "n", cordon(false)).unwrap();
    next(&mut steps, Kind::PodBound).await;
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_reports_it_and_is_bound_when_a_node_grows() {
    let server = Server::builder()
        .seed([node("n", "1"), pod("large", "2")])
        .build();
    let (mut plane, mut steps) = scheduler(&server).await;
    plane.act();
    let step = next(&mut steps, Kind::NoNodeFits).await;
    assert!(
        step.text
            .ends_with("0/1 nodes are available: 1 insufficient cpu"),
        "{}",
        step.text
    );
    // The scheduler writes the condition after it has reported the step. Then the pod stays unchanged.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stored = server.get("v1", "pods", "default/large").unwrap();
    let condition = &stored["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(
        condition["message"],
        "0/1 nodes are available: 1 insufficient cpu"
    );

    let larger = json!({"status": {"allocatable": {"cpu": "2"}}});
    server.patch("v1", "nodes", "n", larger).unwrap();
    next(&mut steps, Kind::PodBound).await;
    assert_eq!(node_name(&server, "large"), "n");
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_is_retried_when_another_is_deleted() {
    let seeds = [
        node("n", "1"),
        bound_pod("first", "1", "n"),
        pod("second", "1"),
    ];
    let server = Server::builder().seed(seeds).build();
    let (mut plane, mut steps) = scheduler(&server).await;
    plane.act();
    next(&mut steps, Kind::NoNodeFits).await;
    server.delete("v1", "pods", "default/first").unwrap();
    next(&mut steps, Kind::PodBound).await;
    assert_eq!(node_name(&server, "second"), "n");
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_change_does_not_retry_an_unschedulable_pod() {
    let server = Server::builder()
        .seed([node("n", "1"), pod("large", "2")])
        .build();
    let (mut plane, mut steps) = scheduler(&server).await;
    plane.act();
    next(&mut steps, Kind::NoNodeFits).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(server.requests().writes().len(), 1, "one condition, once");
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn room_is_assigned_once_even_with_a_stale_cache() {
    let seeds = [node("n", "1"), pod("a", "1"), pod("b", "1")];
    let server = Server::builder().seed(seeds).build();
    let (mut plane, mut steps) = scheduler(&server).await;
    server.faults().freeze_watches();
    plane.act();
    let step = next(&mut steps, Kind::NoNodeFits).await;
    assert_eq!(step.object, "pod/b");
    assert_eq!(
        node_name(&server, "a"),
        "n",
        "bound before the cache contains it"
    );
    assert_eq!(node_name(&server, "b"), Value::Null);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_emptiest_node_is_selected_or_the_first_of_equals() {
    let seeds = [
        node("a", "3"),
        node("b", "3"),
        bound_pod("old", "1", "a"),
        pod("x", "1"),
        pod("y", "1"),
    ];
    let server = Server::builder().seed(seeds).build();
    let (mut plane, mut steps) = scheduler(&server).await;
    plane.act();
    next(&mut steps, Kind::PodBound).await;
    next(&mut steps, Kind::PodBound).await;
    assert_eq!(node_name(&server, "x"), "b", "the emptier one");
    assert_eq!(node_name(&server, "y"), "a", "equally empty by then");
    plane.shutdown().await;
}
