//! Tests the command `serve`, and the command `demo` with a server that `serve` runs in a separate process.

use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
};
use kube_client::{
    Api, Client, Config,
    api::{ListParams, PostParams, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tokio::time::timeout;

use crate::binary::{LONG, Running, file, run};

/// Returns a ready `serve` process and the path of its kubeconfig.
async fn serving(name: &str) -> (Running, PathBuf) {
    serving_with(name, &[]).await
}

/// Returns a ready `serve` process with additional `flags`, and the path of its kubeconfig.
pub(crate) async fn serving_with(name: &str, flags: &[&str]) -> (Running, PathBuf) {
    let path = file(name);
    let serve = ["serve", "--kubeconfig-out", path.to_str().unwrap()];
    let mut running = Running::start(&[&serve, flags].concat());
    running.line_with("Ctrl-C").await;
    (running, path)
}

pub(crate) async fn client(kubeconfig: &PathBuf) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    // The client has no retries, which would wait for a fault to end.
    kube_informer::client::connect(config.unwrap()).unwrap()
}

#[tokio::test]
async fn it_serves_until_control_c_and_removes_its_kubeconfig() {
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
    // Another user could create such a link to a file that all users may read.
    let elsewhere = path.with_extension("elsewhere");
    drop(std::fs::remove_file(&elsewhere));
    std::fs::write(&elsewhere, &left).unwrap();
    std::fs::set_permissions(&elsewhere, PermissionsExt::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let mut second = Running::start(&["serve", "--kubeconfig-out", path.to_str().unwrap()]);
    second.line_with("Ctrl-C").await;
    assert_ne!(
        std::fs::read_to_string(&path).unwrap(),
        left,
        "another port"
    );
    let written = std::fs::symlink_metadata(&path).unwrap();
    assert!(written.is_file());
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), left);
    second.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn the_loops_act_on_a_server_without_a_control_plane_and_leave_no_objects() {
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
    // The second run would count the objects that the first run has left.
    let ended = run(&demo).await.with_code(0);
    assert!(
        ended
            .out
            .contains("1 Deployment, 1 ReplicaSet, 3 Pods, 2 Nodes")
    );
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn an_interrupted_demo_removes_its_objects() {
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
            .contains("the demo did not complete: a ReplicaSet is made (0 of 1)"),
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
async fn a_missing_namespace_is_rejected() {
    let (server, path) = serving("namespace.yaml").await;
    let path = path.to_str().unwrap();
    let ended = run(&["demo", "--kubeconfig", path, "--namespace", "nowhere"])
        .await
        .with_code(1);
    assert!(
        ended.err.contains("namespace \"nowhere\" does not exist"),
        "{}",
        ended.err
    );
    assert_eq!(ended.err.lines().count(), 1);
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn a_namespace_has_a_service_account_and_the_root_certificate() {
    let (server, path) = serving("accounts.yaml").await;
    let client = client(&path).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "new"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    for namespace in ["default", "new"] {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
        accounts.get("default").await.unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let map = maps.get("kube-root-ca.crt").await.unwrap();
        assert!(map.data.unwrap()["ca.crt"].starts_with("-----BEGIN CERTIFICATE-----"));
    }
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn seeded_objects_exist_and_change() {
    let flags = [
        "--seed-objects",
        "pods=300",
        "--seed-objects",
        "cm=20",
        "--churn",
        "200/s",
    ];
    let path = file("seeded.yaml");
    let serve = ["serve", "--kubeconfig-out", path.to_str().unwrap()];
    let mut server = Running::start(&[&serve[..], &flags].concat());
    server.line_with("300 pods, 20 configmaps in ").await;
    server.line_with("200/s").await;
    server.line_with("Ctrl-C").await;
    let client = client(&path).await;
    let pods: Api<Pod> = Api::all(client.clone());
    let list = pods.list(&ListParams::default()).await.unwrap();
    assert!((300..=301).contains(&list.items.len()));
    let maps: Api<ConfigMap> = Api::all(client);
    let seeded = ListParams::default().fields("metadata.name!=kube-root-ca.crt");
    let maps = maps.list(&seeded).await.unwrap();
    assert!((20..=21).contains(&maps.items.len()));
    let revision = |list: &str| list.parse::<u64>().unwrap();
    let start = revision(list.metadata.resource_version.as_ref().unwrap());
    let changed = async {
        loop {
            let list = pods.list(&ListParams::default()).await.unwrap();
            if revision(list.metadata.resource_version.as_ref().unwrap()) > start {
                break;
            }
        }
    };
    timeout(LONG, changed).await.unwrap();
    let ended = server.end_by("-INT").await.with_code(130);
    assert!(ended.out.contains("Churn made "), "{}", ended.out);
}

#[tokio::test]
async fn with_controllers_a_deployment_becomes_running_pods() {
    let (server, path) = serving_with("controllers.yaml", &["--controllers"]).await;
    let client = client(&path).await;
    let labels = json!({"app": "web"});
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "pause"}]},
            },
        },
    });
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "shop");
    let deployment = serde_json::from_value(deployment).unwrap();
    let refused = deployments
        .create(&PostParams::default(), &deployment)
        .await;
    let refused = refused
        .expect_err("the namespace does not exist")
        .to_string();
    assert!(
        refused.contains(r#"namespaces "shop" not found"#),
        "{refused}"
    );
    let shop = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &shop)
        .await
        .unwrap();
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let ready = async {
        loop {
            let web = deployments.get("web").await.unwrap();
            let status = web.status.unwrap_or_default();
            if status.ready_replicas == Some(2) {
                break;
            }
        }
    };
    timeout(LONG, ready).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "shop");
    let pods = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(pods.items.len(), 2);
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn a_fault_plan_is_printed_with_its_seed_and_applied() {
    let plan = file("broken.plan");
    std::fs::write(&plan, "seed 7\nwatch pods: 503 retry-after=1\n").unwrap();
    let at_plan = format!("@{}", plan.to_str().unwrap());
    let path = file("faults.yaml");
    let serve = ["serve", "--kubeconfig-out", path.to_str().unwrap()];
    let mut server = Running::start(&[&serve[..], &["--fault", &at_plan]].concat());
    server.line_with("/faults reads (GET)").await;
    server.line_with("seed 7").await;
    server.line_with("watch pods: 503 retry-after=1").await;
    server.line_with("Ctrl-C").await;
    let client = client(&path).await;
    let pods: Api<Pod> = Api::all(client.clone());
    let refused = pods.watch(&WatchParams::default(), "0").await.err();
    let refused = refused.expect("watches of pods are refused").to_string();
    assert!(
        refused.contains("503") || refused.contains("ServiceUnavailable"),
        "{refused}"
    );
    let request = http::Request::delete("/faults").body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap();
    let again = pods.watch(&WatchParams::default(), "0").await;
    assert!(again.is_ok(), "the plan was cleared");
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn without_a_fault_plan_the_fault_endpoint_is_not_served() {
    let (server, path) = serving("no_faults.yaml").await;
    let request = http::Request::get("/faults").body(Vec::new()).unwrap();
    let answer = client(&path).await.request_text(request).await;
    assert!(answer.is_err(), "{answer:?}");
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn control_c_interrupts_seeding() {
    let path = file("interrupted_seeding.yaml");
    let arguments = [
        "serve",
        "--kubeconfig-out",
        path.to_str().unwrap(),
        "--seed-objects",
        "pods=10000000",
    ];
    let mut server = Running::start(&arguments);
    server.line_with("Seeding").await;
    server.end_by("-INT").await.with_code(130);
    assert!(!path.exists());
}
