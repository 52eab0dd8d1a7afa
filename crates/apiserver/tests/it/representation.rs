//! Tables and metadata-only objects, as answers and in watches.

use serde_json::{Value, json};

use crate::ask::{builder, get_as, pod, pods, request};

const PODS: &str = "/api/v1/pods";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn columns(table: &Value) -> Vec<&str> {
    table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_can_be_a_table_with_the_columns_of_its_kind() {
    let mut running = pod("a");
    running["status"] = json!({
        "phase": "Running",
        "containerStatuses": [{"ready": true, "restartCount": 2}],
    });
    let server = builder()
        .seed([
            running,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}),
        ])
        .build();
    let table = get_as(&server, PODS, TABLE).await.json;
    assert_eq!(table["kind"], "Table");
    assert_eq!(
        columns(&table)[..5],
        ["Name", "Ready", "Status", "Restarts", "Age"]
    );
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["a", "1/1", "Running", 2, "0s", "<none>", "<none>", "<none>"])
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let none = get_as(&server, &format!("{PODS}?includeObject=None"), TABLE)
        .await
        .json;
    assert!(none["rows"][0].get("object").is_none());
    let whole = get_as(&server, &format!("{PODS}?includeObject=Object"), TABLE)
        .await
        .json;
    assert_eq!(whole["rows"][0]["object"]["status"]["phase"], "Running");
    let configs = get_as(&server, "/api/v1/configmaps", TABLE).await.json;
    assert_eq!(columns(&configs), ["Name", "Age"]);
    let one = get_as(&server, "/api/v1/namespaces/default/pods/a", TABLE)
        .await
        .json;
    assert_eq!(
        (&one["kind"], one["rows"].as_array().unwrap().len()),
        (&"Table".into(), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_had_of_one_and_of_many() {
    let server = pods(&["a"]);
    let list = get_as(&server, PODS, PARTIAL_LIST).await.json;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["apiVersion"], "meta.k8s.io/v1");
    let one = get_as(&server, "/api/v1/namespaces/default/pods/a", PARTIAL)
        .await
        .json;
    assert_eq!(list["items"], json!([one]));
    assert_eq!(
        one.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata"]
    );
    assert_eq!(one["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_had_is_406_unless_there_is_an_alternative() {
    let server = pods(&["a"]);
    let one = "/api/v1/namespaces/default/pods/a";
    for (path, accept) in [
        (PODS, PARTIAL),
        (one, PARTIAL_LIST),
        (PODS, "application/vnd.kubernetes.protobuf"),
        (PODS, "text/html"),
    ] {
        let reply = get_as(&server, path, accept).await;
        assert_eq!(
            reply.refusal(),
            "406 NotAcceptable: 406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch",
            "{accept}"
        );
        let either = get_as(&server, path, &format!("{accept}, application/json")).await;
        assert_eq!(either.code, 200);
    }
    for accept in ["*/*", "application/*", "application/json;charset=utf-8"] {
        assert_eq!(get_as(&server, PODS, accept).await.code, 200, "{accept}");
    }
}

/// The lines of a watch that ends after a second.
async fn watch_as(query: &str, accept: &str) -> Vec<Value> {
    let server = pods(&["a", "b"]);
    server.delete("v1", "pods", "default/a").unwrap();
    let uri = format!("{PODS}?watch=1&timeoutSeconds=1&{query}");
    let request = request("GET", &uri).header("accept", accept);
    let reply = crate::ask::send(
        &server,
        request.body(http_body_util::Full::default()).unwrap(),
    )
    .await;
    reply
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_tables_tells_its_columns_once() {
    let lines = watch_as("resourceVersion=1", TABLE).await;
    let types: Vec<_> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(types, ["ADDED", "DELETED"]);
    assert_eq!(columns(&lines[0]["object"])[0], "Name");
    assert_eq!(lines[1]["object"]["columnDefinitions"], Value::Null);
    assert_eq!(lines[1]["object"]["rows"][0]["cells"][0], "a");
    let closing = watch_as("allowWatchBookmarks=true&includeObject=None", TABLE)
        .await
        .remove(1);
    let annotations = &closing["object"]["rows"][0]["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_metadata_has_partial_objects_and_bookmarks_and_whole_errors() {
    let lines = watch_as("allowWatchBookmarks=true", PARTIAL).await;
    for line in &lines {
        assert_eq!(line["object"]["kind"], "PartialObjectMetadata", "{line}");
        assert!(line["object"].get("spec").is_none());
    }
    assert_eq!(lines[1]["type"], "BOOKMARK");
    let error = watch_as(
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99",
        PARTIAL,
    )
    .await;
    assert_eq!(error[0]["object"]["kind"], "Status");
}
