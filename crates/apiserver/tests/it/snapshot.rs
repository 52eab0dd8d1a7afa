//! Tests copies of a server's state, and servers that start from them.

use kube_informer_apiserver::{Server, User};
use serde_json::{Value, json};

use crate::ask::{Watch, builder, get, pod, pods};

fn names(objects: &[Value]) -> Vec<&str> {
    let names = objects.iter().map(|object| &object["metadata"]["name"]);
    names.filter_map(Value::as_str).collect()
}

fn widgets(version: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

fn widget(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"),
        "kind": "Widget",
        "metadata": {"namespace": "default", "name": name},
        "size": 3,
    })
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_the_objects_and_changes_independently() {
    let server = pods(&["a", "b"]);
    let snapshot = server.snapshot();
    let fork = snapshot.fork();
    assert_eq!(fork.revision(), server.revision());
    assert_eq!(fork.list("v1", "pods"), server.list("v1", "pods"));
    fork.delete("v1", "pods", "default/a").unwrap();
    server.create(pod("c")).unwrap();
    assert_eq!(names(&fork.list("v1", "pods")), ["b"]);
    assert_eq!(names(&server.list("v1", "pods")), ["a", "b", "c"]);
    assert_eq!(names(&snapshot.list("v1", "pods")), ["a", "b"]);
    let second = snapshot.fork();
    assert_eq!(names(&second.list("v1", "pods")), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn forks_of_one_snapshot_assign_the_same_uids() {
    let snapshot = pods(&["a"]).snapshot();
    let created = |server: Server| server.create(pod("b")).unwrap();
    assert_eq!(created(snapshot.fork()), created(snapshot.fork()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_fork_starts_at_the_revision_of_the_snapshot() {
    let server = pods(&["a", "b"]);
    let fork = server.fork();
    let revision = fork.revision();
    let path = |revision: u64| format!("/api/v1/pods?watch=1&resourceVersion={revision}");
    let mut watch = Watch::open(&fork, &path(revision)).await;
    fork.create(pod("c")).unwrap();
    assert_eq!(watch.trace().await, "ADDED c 3\n");
    let mut early = Watch::open(&fork, &path(revision - 1)).await;
    let expected = "ERROR 410 Expired: too old resource version: 1 (2)\nend\n";
    assert_eq!(early.trace().await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_the_tokens_and_settings_of_the_first_server() {
    let token = "secret";
    let server = builder()
        .token(token, User::new("jane").in_group("system:masters"))
        .enforce_namespaces(false)
        .build();
    let fork = server.fork();
    assert!(server.access().revoke_token(token));
    assert_eq!(get(&fork, "/api/v1/pods").await.code, 401);
    assert_eq!(get(&fork.with_token(token), "/api/v1/pods").await.code, 200);
    assert_eq!(
        get(&server.with_token(token), "/api/v1/pods").await.code,
        401
    );
    fork.create(pod("elsewhere/a")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fork_serves_the_kinds_of_its_definitions() {
    let server = builder().crd(widgets("v1")).build();
    server.create(widget("v1", "a")).unwrap();
    let fork = server.fork();
    server
        .delete(
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "widgets.example.com",
        )
        .unwrap();
    let path = "/apis/example.com/v1/widgets";
    assert_eq!(get(&server, path).await.code, 404);
    assert_eq!(get(&fork, path).await.json["items"][0]["size"], 3);
    fork.create(widget("v1", "b")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_state_at_an_older_revision_has_its_objects_and_kinds() {
    let server = builder().crd(widgets("v1")).seed([pod("a")]).build();
    server.create(widget("v1", "w")).unwrap();
    let early = server.revision();
    server.delete("v1", "pods", "default/a").unwrap();
    server
        .delete(
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "widgets.example.com",
        )
        .unwrap();
    let snapshot = server.snapshot_at(early).unwrap();
    assert_eq!(snapshot.revision(), early);
    assert_eq!(names(&snapshot.list("v1", "pods")), ["a"]);
    let widget = snapshot.get("example.com/v1", "widgets", "default/w");
    assert_eq!(widget.unwrap()["size"], 3);
    assert!(snapshot.get("v1", "pods", "default/none").is_none());
    let fork = snapshot.fork();
    assert_eq!(names(&fork.list("example.com/v1", "widgets")), ["w"]);
    assert_eq!(
        fork.create(pod("b")).unwrap()["metadata"]["resourceVersion"],
        (early + 1).to_string()
    );
    assert!(server.list("v1", "pods").is_empty());
    let future = server.snapshot_at(server.revision() + 1).unwrap_err();
    assert_eq!(future.code(), 504);
    let fork_before = fork.snapshot_at(early - 1).unwrap_err();
    assert_eq!(fork_before.code(), 410);
}

#[tokio::test(start_paused = true)]
async fn the_state_as_yaml_can_be_read_again() {
    let server = builder()
        .kubernetes_service(false)
        .seed([pod("a"), pod("b")])
        .build();
    let text = server.snapshot().yaml();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let pods = documents.iter().filter(|object| object["kind"] == "Pod");
    assert_eq!(pods.cloned().collect::<Vec<_>>(), server.list("v1", "pods"));
    let namespaces = documents
        .iter()
        .filter(|object| object["kind"] == "Namespace");
    assert_eq!(namespaces.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_namespace_continues_in_a_fork() {
    let server = builder().build();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    server.create(namespace).unwrap();
    let mut held = pod("n/a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.create(held).unwrap();
    server.delete("v1", "namespaces", "n").unwrap();
    let fork = server.fork();
    let released = json!({"metadata": {"finalizers": null}});
    fork.patch("v1", "pods", "n/a", released).unwrap();
    assert!(fork.get("v1", "namespaces", "n").is_none());
    assert!(server.get("v1", "namespaces", "n").is_some());
}

#[test]
fn bytes_of_a_fork_count_towards_the_quota() {
    let server = builder().storage_quota(300_000).build();
    let mut large = pod("a");
    large["metadata"]["annotations"] = json!({"padding": "x".repeat(200_000)});
    server.create(large.clone()).unwrap();
    let fork = server.fork();
    large["metadata"]["name"] = json!("b");
    assert_eq!(fork.create(large).unwrap_err().code(), 500);
    fork.delete("v1", "pods", "default/a").unwrap();
}
