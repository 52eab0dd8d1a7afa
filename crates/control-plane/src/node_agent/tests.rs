//! Tests the node agent, mostly with the embedded server and paused time.

use kube_client::Api;
use kube_informer_apiserver::Server;

use super::*;

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
    let (mut plane, _) = ControlPlane::of_default();
    let mut process = plane.process("agent", server.client());
    open(
        &mut plane,
        &mut process,
        node,
        (&Fates::new(doomed), &Logs::default()),
    )
    .unwrap();
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
    let now = Timestamp::from_second(1_000).unwrap();
    let mut life = Life::new(Plan::of(&pod).unwrap(), now);
    life.plan.end = Some((LIFETIME, 1));
    life.plan.restart = Restart::Never;
    life.advance(now);
    let runs = with(View::Life(&life, now).status(&pod));
    assert!(is_ready(&runs) && !has_ended(&runs));
    assert_eq!(ready_since(&runs).unwrap().0, now);
    let kinds = |pod: &Pod| -> Vec<String> {
        let status = pod.status.clone().unwrap();
        status
            .conditions
            .unwrap()
            .into_iter()
            .map(|c| c.type_)
            .collect()
    };
    let own = [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
    ];
    assert_eq!(kinds(&runs), [&["PodScheduled"], &own[..]].concat());
    assert_eq!(
        pod_status::shown_by(&runs),
        Some(View::Life(&life, now).shown())
    );
    let later = now + Duration::from_secs(1);
    life.advance(later);
    let ended = with(View::Life(&life, later).status(&runs));
    assert!(has_ended(&ended) && !is_ready(&ended));
    assert_eq!(kinds(&ended), kinds(&runs));
    assert_eq!(
        pod_status::shown_by(&ended),
        Some(View::Life(&life, later).shown())
    );
}

/// Returns a pod on the node `a` with annotations for the simulation.
fn simulated(restart: &str, annotations: &Value) -> Value {
    let mut pod = pod("mine", Some("a"));
    pod["spec"]["restartPolicy"] = restart.into();
    pod["metadata"]["annotations"] = annotations.clone();
    pod
}

fn status_of(server: &Server) -> Value {
    server.get("v1", "pods", "default/mine").unwrap()["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn annotations_delay_the_start_and_the_readiness() {
    let annotations =
        json!({"kubectl-informer/start-delay": "10s", "kubectl-informer/ready-delay": "20s"});
    let server = Server::builder()
        .seed([simulated("Always", &annotations)])
        .build();
    let plane = at_work(&server, "a", 0).await;
    let container = |server: &Server| status_of(server)["containerStatuses"][0].clone();
    assert_eq!(phase_of(&server, "mine"), "Pending");
    assert_eq!(
        container(&server)["state"]["waiting"]["reason"],
        "ContainerCreating"
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(phase_of(&server, "mine"), "Running");
    assert_eq!(container(&server)["ready"], false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(container(&server)["ready"], true);
    let unready = json!({"metadata": {"annotations": {"kubectl-informer/ready-delay": "never"}}});
    server.patch("v1", "pods", "default/mine", unready).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        container(&server)["ready"],
        false,
        "a changed annotation has effect at once"
    );
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn containers_that_end_are_restarted_or_end_the_pod() {
    let annotations = json!({"kubectl-informer/run-time": "1m", "kubectl-informer/exit-code": "3"});
    for (restart, phase, restarts) in [("Always", "Running", 1), ("Never", "Failed", 0)] {
        let server = Server::builder()
            .seed([simulated(restart, &annotations)])
            .build();
        let plane = at_work(&server, "a", 0).await;
        tokio::time::sleep(Duration::from_secs(90)).await;
        let status = status_of(&server);
        let container = &status["containerStatuses"][0];
        assert_eq!(status["phase"], phase);
        assert_eq!(container["restartCount"], restarts);
        let ended = if restarts > 0 {
            &container["lastState"]
        } else {
            &container["state"]
        };
        assert_eq!(ended["terminated"]["exitCode"], 3, "{status}");
        plane.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_annotation_is_reported_in_the_status_until_it_is_corrected() {
    let annotations = json!({"kubectl-informer/run-time": "soon"});
    let server = Server::builder()
        .seed([simulated("Always", &annotations)])
        .build();
    let plane = at_work(&server, "a", 0).await;
    let waiting = &status_of(&server)["containerStatuses"][0]["state"]["waiting"];
    let text =
        "annotation kubectl-informer/run-time: \"soon\" is not a duration such as 1m30s or 500ms";
    assert_eq!(waiting["message"], text);
    let corrected = json!({"metadata": {"annotations": {"kubectl-informer/run-time": "1h"}}});
    server
        .patch("v1", "pods", "default/mine", corrected)
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(phase_of(&server, "mine"), "Running");
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn containers_may_take_time_to_stop() {
    let annotations = json!({"kubectl-informer/stop-delay": "20s"});
    let server = Server::builder()
        .seed([simulated("Always", &annotations)])
        .build();
    let plane = at_work(&server, "a", 0).await;
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    pods.delete("mine", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert!(server.get("v1", "pods", "default/mine").is_some());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server.get("v1", "pods", "default/mine"), None);
    plane.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_agent_continues_the_containers_of_the_last_one() {
    let annotations =
        json!({"kubectl-informer/start-delay": "5s", "kubectl-informer/run-time": "1m"});
    let server = Server::builder()
        .seed([simulated("Always", &annotations)])
        .build();
    let plane = at_work(&server, "a", 0).await;
    tokio::time::sleep(Duration::from_secs(70)).await;
    let before = status_of(&server);
    assert_eq!(before["containerStatuses"][0]["restartCount"], 1);
    plane.shutdown().await;
    let plane = at_work(&server, "a", 0).await;
    assert_eq!(status_of(&server), before);
    plane.shutdown().await;
}
