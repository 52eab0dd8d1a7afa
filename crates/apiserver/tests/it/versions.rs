//! Tests built-in kinds with several versions: all versions are one object.

use serde_json::{Value, json};

use crate::ask::{Watch, builder, get, with};

const CORE: &str = "/api/v1/namespaces/default/events";
const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

fn event(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "message": "m",
    })
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_one_group_shows_and_selects_writes_of_the_other() {
    let server = builder().build();
    let selected = format!("{NEW}?watch=1&fieldSelector=regarding.name=p");
    let mut watch = Watch::open(&server, &selected).await;
    let made = with(&server, "POST", CORE, &event("a")).await;
    assert_eq!(made.code, 201);
    let changed = json!({"metadata": {"labels": {"k": "v"}}});
    let changed = with(&server, "PATCH", &format!("{NEW}/a"), &changed).await;
    assert_eq!((changed.code, &changed.json["note"]), (200, &json!("m")));
    assert_eq!(watch.trace().await, "ADDED a 2\nMODIFIED a 3\n");
    let list = get(
        &server,
        &format!("{CORE}?fieldSelector=involvedObject.name=p"),
    )
    .await;
    assert_eq!(list.json["items"][0]["message"], "m");
    assert_eq!(list.json["items"][0].get("note"), None);
}

#[tokio::test(start_paused = true)]
async fn an_update_without_a_change_is_stored_if_the_conversion_changes_the_object() {
    let server = builder().build();
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    let new = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 1, "scaleTargetRef": target, "metrics": [cpu, pods]}});
    assert_eq!(with(&server, "POST", V2, &new).await.revision(), "2");
    let path = format!("{V1}/a");
    let v1 = get(&server, &path).await.json;
    // Version 1 has the other metrics in an annotation, which come before that of the CPU.
    assert_eq!(with(&server, "PUT", &path, &v1).await.revision(), "3");
    let metrics = get(&server, &format!("{V2}/a")).await.json;
    assert_eq!(metrics["spec"]["metrics"], json!([pods, cpu]));
    let v1 = get(&server, &path).await.json;
    assert_eq!(with(&server, "PUT", &path, &v1).await.revision(), "3");
}
