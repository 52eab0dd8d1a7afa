//! Tests the start and the end of a control plane, and the selection of its loops.

use super::*;
use crate::step::Kind;

#[tokio::test(start_paused = true)]
async fn a_dropped_control_plane_leaves_nothing_that_runs() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.create(deployment("default", 2)).unwrap();
    sleep(LONG).await;
    drop(plane);
    sleep(LONG).await;
    let (revision, requests) = (server.revision(), server.requests().len());
    change(&server, json!({"spec": {"replicas": 5}}));
    // An informer that runs on would watch again.
    server.faults().cut_watches();
    sleep(LONG).await;
    assert_eq!(server.revision(), revision + 1);
    assert_eq!(server.requests().len(), requests);
}

#[tokio::test(start_paused = true)]
async fn only_the_selected_loops_and_nodes_exist() {
    let server = Server::builder().build();
    let plane = ControlPlane::builder()
        .loops([Loop::ReplicaSet, Loop::Deployment, Loop::Scheduler])
        .nodes(["a"])
        .start(&server)
        .await
        .unwrap();
    server.create(deployment("default", 2)).unwrap();
    sleep(LONG).await;
    let pods = server.list("v1", "pods");
    let nodes: Vec<_> = pods.iter().map(|pod| &pod["spec"]["nodeName"]).collect();
    assert_eq!(nodes, ["a", "a"]);
    assert_eq!(running(&server, "default"), 0, "there is no node agent");
    assert_eq!(server.list("v1", "nodes").len(), 1);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn loops_that_only_observe_write_nothing() {
    let server = Server::builder().build();
    let (steps, mut observed) = mpsc::channel(100);
    let observing = ControlPlane::builder()
        .only_observe()
        .steps(steps)
        .start(&server)
        .await
        .unwrap();
    assert!(server.requests().writes().is_empty());
    assert_eq!(server.list("v1", "nodes").len(), 0);
    let acting = open(&server).await;
    server.create(deployment("default", 1)).unwrap();
    sleep(LONG).await;
    let mut kinds = Vec::new();
    while let Ok(step) = observed.try_recv() {
        kinds.push(step.kind);
    }
    assert!(
        kinds.contains(&Kind::DeploymentSeen) && kinds.contains(&Kind::PodRuns),
        "{kinds:?}"
    );
    assert_eq!(server.list("v1", "pods").len(), 1);
    observing.shutdown().await;
    acting.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_reader_of_steps() {
    let server = Server::builder().build();
    let (steps, _unread) = mpsc::channel(1);
    let plane = ControlPlane::builder()
        .steps(steps)
        .start(&server)
        .await
        .unwrap();
    server.create(deployment("default", 3)).unwrap();
    sleep(LONG).await;
    let ended = tokio::time::timeout(LONG, plane.shutdown()).await;
    assert!(ended.is_ok(), "the shutdown waits");
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_requests_fail_is_an_error_that_names_them() {
    let server = Server::builder().build();
    server.faults().inject("list deployments: 500").unwrap();
    let failed = ControlPlane::builder().start(&server).await.unwrap_err();
    let text = failed.to_string();
    assert!(text.contains("deployments"), "{text}");
    let failed = ControlPlane::builder().nodes(["A B"]).start(&server).await;
    let text = failed.unwrap_err().to_string();
    assert!(text.starts_with("can't create node A B: "), "{text}");
    let failed = ControlPlane::builder().manager("a\nb").start(&server).await;
    let text = failed.unwrap_err().to_string();
    assert!(
        text.starts_with("\"a\\nb\" can't be a `User-Agent`"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_nothing() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.create(deployment("default", 2)).unwrap();
    sleep(LONG).await;
    let begin = tokio::time::Instant::now();
    plane.shutdown().await;
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
}
