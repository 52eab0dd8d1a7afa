//! `serve`, and the demo on a server that is not its own, for which `serve` stands.

use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use crate::binary::{Running, file, run};

/// A server with a kubeconfig, up and running.
async fn serving(name: &str) -> (Running, PathBuf) {
    let path = file(name);
    let mut running = Running::start(&["serve", "--kubeconfig-out", path.to_str().unwrap()]);
    running.line_with("Ctrl-C").await;
    (running, path)
}

#[tokio::test]
async fn it_serves_until_control_c_and_takes_its_kubeconfig_away() {
    let (running, path) = serving("serve.yaml").await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    running.end_by("-INT").await.with_code(130);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_kubeconfig_of_an_earlier_serve_is_replaced() {
    let (running, path) = serving("again.yaml").await;
    let left = std::fs::read_to_string(&path).unwrap();
    running.end_by("-TERM").await.with_code(143);
    std::fs::write(&path, &left).unwrap();
    let mut second = Running::start(&["serve", "--kubeconfig-out", path.to_str().unwrap()]);
    second.line_with("Ctrl-C").await;
    assert_ne!(
        std::fs::read_to_string(&path).unwrap(),
        left,
        "another port"
    );
    second.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn the_loops_act_on_a_server_without_a_control_plane_and_leave_nothing() {
    let (server, path) = serving("act.yaml").await;
    let path = path.to_str().unwrap();
    let demo = ["demo", "--kubeconfig", path, "--act"];
    let ended = run(&demo).await.with_code(0);
    assert!(
        ended
            .out
            .contains("Replicas ready: 3 of 3. Failed and replaced: 1.")
    );
    assert!(
        ended
            .out
            .contains("1 Deployment, 1 ReplicaSet, 3 Pods, 2 Nodes")
    );
    assert!(ended.out.contains("requests are not counted"));
    // Whatever the first had left, the second would count as its own if it could see it.
    let ended = run(&demo).await.with_code(0);
    assert!(
        ended
            .out
            .contains("1 Deployment, 1 ReplicaSet, 3 Pods, 2 Nodes")
    );
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn an_interrupted_demo_removes_what_it_has_made() {
    let (server, path) = serving("interrupted.yaml").await;
    let path = path.to_str().unwrap();
    let arguments = [
        "demo",
        "--kubeconfig",
        path,
        "--act",
        "--without",
        "scheduler",
    ];
    let mut demo = Running::start(&arguments);
    demo.line_with("made a pod").await;
    let ended = demo.end_by("-INT").await.with_code(130);
    assert!(
        ended
            .out
            .contains("Removed what the demo had made: 1 Deployment, 1 ReplicaSet")
    );
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn without_act_the_loops_only_observe_and_the_missing_step_is_named() {
    let (server, path) = serving("observe.yaml").await;
    let path = path.to_str().unwrap();
    let ended = run(&["demo", "--kubeconfig", path, "--deadline", "1"])
        .await
        .with_code(1);
    assert!(ended.out.contains("only observe"));
    assert!(ended.out.contains("sees a Deployment of 3 pods"));
    assert!(
        ended.out.contains("deployments: synced, watching"),
        "{}",
        ended.out
    );
    assert!(
        ended
            .err
            .contains("not reached: a ReplicaSet is made (0 of 1)"),
        "{}",
        ended.err
    );
    assert!(
        ended
            .out
            .contains("Removed what the demo had made: 1 Deployment")
    );
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_refused() {
    let (server, path) = serving("namespace.yaml").await;
    let path = path.to_str().unwrap();
    let ended = run(&["demo", "--kubeconfig", path, "--namespace", "nowhere"])
        .await
        .with_code(1);
    assert!(
        ended.err.contains("no namespace \"nowhere\""),
        "{}",
        ended.err
    );
    assert_eq!(ended.err.lines().count(), 1);
    server.end_by("-INT").await.with_code(130);
}
