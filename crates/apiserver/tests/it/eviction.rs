//! Tests evictions: which pods a disruption budget protects, and what an eviction changes.

use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::ask::{Reply, builder, delete, get, with};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod with the label of the budgets. Its status is that of a running pod.
fn pod(name: &str, is_ready: bool) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    })
}

fn budget(name: &str, status: &Value) -> Value {
    let mut status = status.clone();
    status["observedGeneration"] = json!(1);
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        "status": status,
    })
}

/// A budget that allows a number of disruptions.
fn allowing(number: i64) -> Value {
    budget(
        "b",
        &json!({"disruptionsAllowed": number, "currentHealthy": 3, "desiredHealthy": 1}),
    )
}

async fn evict(server: &Server, name: &str, options: &Value) -> Reply {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    });
    with(
        server,
        "POST",
        &format!("{PODS}/{name}/eviction"),
        &eviction,
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn concurrent_evictions_never_exceed_a_budget() {
    let names: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    let pods = names.iter().map(|name| pod(name, true));
    let server = builder().seed(pods.chain([allowing(3)])).build();
    let evictions = names.iter().map(|name| evict(&server, name, &Value::Null));
    let replies = futures_util::future::join_all(evictions).await;
    let evicted = replies.iter().filter(|reply| reply.code == 201).count();
    assert_eq!(evicted, 3);
    assert!(replies.iter().all(|reply| matches!(reply.code, 201 | 429)));
    assert_eq!(get(&server, PODS).await.names().len(), 7);
    let status = &get(&server, &format!("{BUDGETS}/b")).await.json["status"];
    assert_eq!(status["disruptionsAllowed"], 0);
    assert_eq!(status["disruptedPods"].as_object().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_on_a_node_stays_with_its_condition() {
    let mut on_a_node = pod("a", true);
    on_a_node["spec"]["nodeName"] = json!("n");
    let server = builder().seed([on_a_node]).build();
    assert_eq!(evict(&server, "a", &Value::Null).await.code, 201);
    let pod = get(&server, &format!("{PODS}/a")).await.json;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let condition = &pod["status"]["conditions"][1];
    assert_eq!(condition["type"], "DisruptionTarget");
    assert_eq!(condition["reason"], "EvictionByEvictionAPI");
    assert_eq!(
        evict(&server, "a", &json!({"gracePeriodSeconds": 0}))
            .await
            .code,
        201
    );
    assert_eq!(get(&server, &format!("{PODS}/a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_neither_the_pod_nor_its_budget() {
    let server = builder().seed([pod("a", true), allowing(1)]).build();
    let before = server.revision();
    assert_eq!(
        evict(&server, "a", &json!({"dryRun": ["All"]})).await.code,
        201
    );
    assert_eq!(server.revision(), before);
    assert_eq!(evict(&server, "a", &Value::Null).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_pod_needs_no_disruption_if_enough_others_are_healthy() {
    let server = builder().seed([pod("a", false), allowing(0)]).build();
    assert_eq!(evict(&server, "a", &Value::Null).await.code, 201);
    let too_few = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1});
    let server = builder()
        .seed([pod("a", false), budget("b", &too_few)])
        .build();
    let refused = evict(&server, "a", &Value::Null).await;
    assert_eq!(refused.code, 429);
    let cause = &refused.json["details"]["causes"][0]["message"];
    assert_eq!(
        *cause,
        "The disruption budget b needs 1 healthy pods and has 0 currently"
    );
    let mut always = budget("b", &too_few);
    always["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
    let server = builder().seed([pod("a", false), always]).build();
    assert_eq!(evict(&server, "a", &Value::Null).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn preconditions_and_several_budgets_are_errors() {
    let server = builder().seed([pod("a", true)]).build();
    let stale = evict(
        &server,
        "a",
        &json!({"preconditions": {"resourceVersion": "9"}}),
    )
    .await;
    assert_eq!(stale.code, 409);
    let other = evict(&server, "a", &json!({"preconditions": {"uid": "x"}})).await;
    assert_eq!(other.code, 409);
    let mut pending = pod("a", false);
    pending["status"]["phase"] = json!("Pending");
    let waiting = builder().seed([pending]).build();
    let other = evict(&waiting, "a", &json!({"preconditions": {"uid": "x"}})).await;
    assert_eq!(other.code, 409, "and it is not tried again for ever");
    let budgets = ["b", "c"].map(|name| budget(name, &json!({"disruptionsAllowed": 1})));
    let server = builder().seed([pod("a", true)]).seed(budgets).build();
    assert_eq!(
        evict(&server, "a", &Value::Null).await.refusal(),
        "500 -: This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    );
}

#[tokio::test(start_paused = true)]
async fn the_eviction_of_the_last_pod_ends_a_terminating_namespace() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let mut last = pod("a", true);
    last["metadata"]["namespace"] = json!("n");
    last["spec"]["nodeName"] = json!("x");
    let server = builder().seed([namespace, last]).build();
    delete(&server, "/api/v1/namespaces/n").await;
    assert!(
        server
            .get("v1", "namespaces", "n")
            .is_some_and(|it| it["status"]["phase"] == "Terminating")
    );
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a"},
        "deleteOptions": {"gracePeriodSeconds": 0},
    });
    let evicted = with(
        &server,
        "POST",
        "/api/v1/namespaces/n/pods/a/eviction",
        &eviction,
    )
    .await;
    assert_eq!(evicted.code, 201, "{}", evicted.text);
    assert!(server.get("v1", "namespaces", "n").is_none());
}
