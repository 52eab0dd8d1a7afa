//! Tests disruption budgets and evictions.

use http::Request;

use super::*;

pub(super) fn budget(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    })
}

/// Returns healthy, desired and expected pods, and allowed disruptions.
fn counts(server: &Server) -> [i64; 4] {
    let budget = server
        .get("policy/v1", "poddisruptionbudgets", "default/web")
        .unwrap();
    let counts = [
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
        "disruptionsAllowed",
    ];
    counts.map(|count| budget["status"][count].as_i64().unwrap())
}

async fn evict(server: &Server, pod: &str) -> Result<Value, kube_client::Error> {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": "default"},
    });
    let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
    let request = Request::post(path).header("content-type", "application/json");
    let body = serde_json::to_vec(&eviction).unwrap();
    server.client().request(request.body(body).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn budgets_count_the_pods_of_controllers() {
    for (spec, expected) in [
        (json!({"minAvailable": 3}), [4, 3, 4, 1]),
        (json!({"minAvailable": "50%"}), [4, 2, 4, 2]),
        (json!({"maxUnavailable": 1}), [4, 3, 4, 1]),
        (json!({"maxUnavailable": "30%"}), [4, 2, 4, 2]),
        (json!({"minAvailable": 5}), [4, 5, 4, 0]),
    ] {
        let server = Server::builder().build();
        let plane = open(&server).await;
        server.create(budget(&spec)).unwrap();
        server.create(deployment("default", 4)).unwrap();
        sleep(LONG).await;
        assert_eq!(counts(&server), expected, "{spec}");
        plane.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_wait_for_replacements() {
    let server = Server::builder().build();
    let plane = open(&server).await;
    server.create(budget(&json!({"minAvailable": 2}))).unwrap();
    server.create(slowly_ready("a:1", 3)).unwrap();
    sleep(LONG).await;
    let names: Vec<String> = server
        .list("v1", "pods")
        .iter()
        .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    for name in &names {
        evict(&server, name).await.unwrap();
        let other = names.iter().rfind(|other| *other != name);
        let refused = evict(&server, other.unwrap()).await.unwrap_err();
        assert!(
            matches!(refused, kube_client::Error::Api(status) if status.code == 429 || status.code == 404)
        );
        // The replacement is ready 5 s after its start.
        sleep(Duration::from_secs(10)).await;
        assert_eq!(counts(&server), [3, 2, 3, 1]);
    }
    assert!(
        server
            .list("v1", "pods")
            .iter()
            .all(|pod| { !names.contains(&pod["metadata"]["name"].as_str().unwrap().to_owned()) })
    );
    plane.shutdown().await;
}
