//! Tests the node agent, mostly with the embedded server and paused time.

use kube_client::Api;
use kube_informer_apiserver::Server;
use tokio::sync::mpsc;

use super::{
    super::{Scope, step::STEPS_MAX},
    *,
};

/// Maximum virtual time that a test waits for synced caches.
const LONG: Duration = Duration::from_secs(60);

fn pod(name: &str, node: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]},
    })
}

/// Starts the agent of the node `node`, and returns after one second of virtual time.
///
/// Each of the agent's first `doomed` containers fails 400 ms after its start ([`LIFETIME`]).
async fn at_work(server: &Server, node: &str, doomed: u32) -> ControlPlane {
    let (tell, _) = mpsc::channel(STEPS_MAX);
    let scope = Scope {
        namespace: Some("default".to_owned()),
        selector: kube_informer::Selector::everything(),
    };
    let mut plane = ControlPlane::new(scope, tell);
    let mut process = plane.process("agent", server.client());
    open(&mut plane, &mut process, node, &Fates::new(doomed)).unwrap();
    plane.host(process);
    plane.observe(LONG).await.unwrap();
    plane.act();
    tokio::time::sleep(Duration::from_secs(1)).await;
    plane
}

fn phase_of(server: &Server, name: &str) -> Value {
    let pod = server
        .get("v1", "pods", &format!("default/{name}"))
        .unwrap();
    pod["status"]["phase"].clone()
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_nodes_or_without_a_node_are_ignored() {
    let seeds = [
        pod("mine", Some("a")),
        pod("other", Some("b")),
        pod("free", None),
    ];
    let server = Server::builder().seed(seeds).build();
    let plane = at_work(&server, "a", 0).await;
    assert_eq!(phase_of(&server, "mine"), "Running");
    assert_eq!(phase_of(&server, "other"), "Pending");
    assert_eq!(phase_of(&server, "free"), "Pending");
    assert_eq!(server.requests().writes().len(), 1);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_read_from_the_server_before_its_end_is_written() {
    let server = Server::builder().seed([pod("mine", Some("a"))]).build();
    let plane = at_work(&server, "a", 1).await;
    assert_eq!(phase_of(&server, "mine"), "Failed");
    let log = server.requests();
    let verbs: Vec<_> = log.iter().map(|request| request.verb.as_str()).collect();
    assert_eq!(verbs, ["list", "watch", "patch", "get", "patch"]);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminating_pod_is_removed_after_its_container_stops() {
    let server = Server::builder().seed([pod("mine", Some("a"))]).build();
    let plane = at_work(&server, "a", 0).await;
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let gently = DeleteParams::default().grace_period(30);
    pods.delete("mine", &gently).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.get("v1", "pods", "default/mine"), None);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_status_is_retried() {
    let server = Server::builder().seed([pod("mine", Some("a"))]).build();
    let patches =
        kube_informer_apiserver::Match::verb(kube_informer_apiserver::Verb::Patch, "pods");
    server.faults().answer(patches, 500).times(3);
    let plane = at_work(&server, "a", 0).await;
    assert_eq!(phase_of(&server, "mine"), "Running");
    plane.shutdown().await;
}

#[test]
fn the_doomed_number_of_containers_ends_across_nodes() {
    let fates = Fates::new(2);
    let other_node = fates.clone();
    assert!(fates.dooms_next());
    assert!(other_node.dooms_next());
    assert!(!fates.dooms_next());
    assert!(!other_node.dooms_next());
}

#[test]
fn a_status_keeps_the_conditions_of_other_writers() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "pause"}]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"},
        ]},
    }))
    .unwrap();
    let with = |status: Value| {
        let mut pod = pod.clone();
        pod.status = serde_json::from_value(status).unwrap();
        pod
    };
    let runs = with(running(&pod));
    assert!(is_ready(&runs) && !has_ended(&runs));
    let kinds = |pod: &Pod| -> Vec<String> {
        let status = pod.status.clone().unwrap();
        status
            .conditions
            .unwrap()
            .into_iter()
            .map(|c| c.type_)
            .collect()
    };
    assert_eq!(
        kinds(&runs),
        ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
    );
    let ended = with(failed(&runs));
    assert!(has_ended(&ended) && !is_ready(&ended));
    assert_eq!(kinds(&ended), kinds(&runs));
}
