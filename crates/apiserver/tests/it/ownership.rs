//! Tests which writes record owners in `metadata.managedFields`, and the limits of what they record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use kube_informer_apiserver::{Kind, Rule, Scope, Server};
use serde_json::{Map, Value, json};

use crate::ask::{Reply, builder, fixed_time, get, pod, request, send, with};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = "/api/v1/namespaces/default/configmaps/a";
const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data})
}

/// A server with a custom kind that has no schema.
fn foos() -> Server {
    let kind = Kind::custom("example.com", "v1", "Foo", "foos", Scope::Namespaced);
    builder().kind(kind).build()
}

fn foo(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec})
}

async fn apply(server: &Server, uri: &str, manager: &str, object: &Value) -> Reply {
    let patch = request("PATCH", &format!("{uri}?fieldManager={manager}"));
    let patch = patch.header("content-type", "application/apply-patch+yaml");
    let body = Full::from(Bytes::from(object.to_string()));
    send(server, patch.body(body).unwrap()).await
}

/// Returns the managers of an object with their operations, such as `x Apply`.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entries = entries.into_iter().flatten();
    entries
        .map(|entry| format!("{} {}", text(entry, "manager"), text(entry, "operation")))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn direct_calls_record_no_owners_and_keep_those_of_their_object() {
    let server = builder().build();
    server.create(map(&json!({"k": "1"}))).unwrap();
    let changed = with(&server, "PATCH", MAP, &json!({"data": {"k": "2"}})).await;
    assert!(
        managers(&changed.json).is_empty(),
        "it was not tracked from its creation"
    );
    let applied = apply(&server, MAP, "x", &map(&json!({"l": "1"}))).await;
    assert_eq!(
        managers(&applied.json),
        ["x Apply", "before-first-apply Update"]
    );
    let mut sent = applied.json.clone();
    sent["data"]["k"] = json!("3");
    let updated = server.update(sent.clone()).unwrap();
    assert_eq!(
        updated["metadata"]["managedFields"],
        applied.json["metadata"]["managedFields"]
    );
    let replaced = server.update(map(&json!({"k": "4"}))).unwrap();
    assert_eq!(managers(&replaced), managers(&updated), "as for a client");
    sent["metadata"]["managedFields"] = json!([]);
    sent["metadata"]["resourceVersion"] = json!("");
    assert!(managers(&server.update(sent).unwrap()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_managed_fields_only_applies_record_owners() {
    let server = builder().managed_fields(false).build();
    let created = with(&server, "POST", MAPS, &map(&json!({"k": "1"}))).await;
    assert!(managers(&created.json).is_empty());
    let reset = json!({"metadata": {"managedFields": []}});
    let reset = with(&server, "PATCH", MAP, &reset).await;
    assert!(
        reset.json["metadata"].get("managedFields").is_none(),
        "{}",
        reset.text
    );
    let applied = apply(&server, MAP, "x", &map(&json!({"l": "1"}))).await;
    assert_eq!(
        managers(&applied.json),
        ["x Apply", "before-first-apply Update"]
    );
    let conflict = apply(&server, MAP, "y", &map(&json!({"l": "2"}))).await;
    assert_eq!(conflict.code, 409);
}

#[tokio::test(start_paused = true)]
async fn owners_are_those_of_the_stored_object_after_a_concurrent_write() {
    let server = builder().build();
    let applies = (0..20).map(|number| {
        let server = server.clone();
        async move {
            let data = json!({format!("k{number}"): "1"});
            let applied = apply(&server, MAP, &format!("m{number:02}"), &map(&data)).await;
            assert!(matches!(applied.code, 200 | 201), "{}", applied.text);
        }
    });
    futures_util::future::join_all(applies).await;
    let stored = get(&server, MAP).await.json;
    assert_eq!(stored["data"].as_object().unwrap().len(), 20);
    assert_eq!(managers(&stored).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_with_its_owners_is_stored_without_them() {
    let server = foos();
    let members = (0..25_000).map(|number| (format!("{number:060}"), json!("")));
    let spec = Value::Object(members.collect::<Map<_, _>>());
    let created = with(&server, "POST", FOOS, &foo(&spec)).await;
    assert_eq!((created.code, managers(&created.json).len()), (201, 0));
    let fewer = foo(&json!({"k": ""}));
    let uri = format!("{FOOS}/a");
    let mut small = get(&server, &uri).await.json;
    small["spec"] = fewer["spec"].clone();
    small["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(with(&server, "PUT", &uri, &small).await.code, 200);
    let patch = with(&server, "PATCH", &uri, &json!({ "spec": spec })).await;
    assert_eq!((patch.code, managers(&patch.json).len()), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn owners_do_not_make_an_object_too_deep() {
    let nested = |depth: usize| (0..depth).fold(json!("x"), |inner, _| json!({ "a": inner }));
    for (depth, owners) in [(100, 1), (125, 0)] {
        let server = foos();
        let created = with(&server, "POST", FOOS, &foo(&nested(depth))).await;
        assert_eq!(
            (created.code, managers(&created.json).len()),
            (201, owners),
            "{depth}"
        );
        assert_eq!(get(&server, &format!("{FOOS}/a")).await.code, 200);
        let server = foos();
        let applied = apply(&server, &format!("{FOOS}/a"), "x", &foo(&nested(depth))).await;
        let expected = if owners == 0 { 400 } else { 201 };
        assert_eq!(applied.code, expected, "{}", applied.text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_user_agent_names_the_manager_up_to_a_limit() {
    let server = builder().build();
    let post = |name: &str, agent: &str| {
        let mut object = map(&json!({"k": "1"}));
        object["metadata"]["name"] = json!(name);
        let request = request("POST", MAPS).header("user-agent", agent);
        request
            .header("content-type", "application/json")
            .body(Full::from(object.to_string()))
            .unwrap()
    };
    for (name, agent, manager) in [
        ("a", "tool/1.0 (linux)", "tool".to_owned()),
        ("b", "", "unknown".to_owned()),
        ("c", &"é".repeat(100), "é".repeat(64)),
    ] {
        let created = send(&server, post(name, agent)).await;
        assert_eq!(managers(&created.json), [format!("{manager} Update")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_and_its_objects_are_applied() {
    let server = builder().build();
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "size": {"type": "integer"},
            }},
        }},
    }}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "foos", "kind": "Foo"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com";
    let applied = apply(&server, uri, "x", &definition).await;
    assert_eq!(applied.code, 201, "{}", applied.text);
    let again = apply(&server, uri, "x", &definition).await;
    assert_eq!(
        (again.code, managers(&again.json)),
        (200, vec!["x Apply".to_owned()])
    );
    let foo_uri = format!("{FOOS}/a");
    let part = |name: &str, size: u32| foo(&json!({"parts": [{"name": name, "size": size}]}));
    assert_eq!(apply(&server, &foo_uri, "x", &part("p", 1)).await.code, 201);
    let both = apply(&server, &foo_uri, "y", &part("q", 2)).await;
    assert_eq!(both.json["spec"]["parts"].as_array().unwrap().len(), 2);
    let conflict = apply(&server, &foo_uri, "y", &part("p", 2)).await;
    assert_eq!(
        conflict.message(),
        "Apply failed with 1 conflict: conflict with \"x\": .spec.parts[name=\"p\"].size"
    );
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_creates_requires_permission_to_create() {
    let patches = Rule::allow(["patch"], ["configmaps"]);
    let server = builder().rules([patches]).build();
    let refused = apply(&server, MAP, "x", &map(&json!({"k": "1"}))).await;
    assert_eq!(
        refused.refusal(),
        "403 Forbidden: configmaps \"a\" is forbidden: User \"system:anonymous\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    server.create(map(&json!({"k": "1"}))).unwrap();
    assert_eq!(
        apply(&server, MAP, "x", &map(&json!({"k": "1"})))
            .await
            .code,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn an_apply_of_equal_values_in_another_form_changes_no_time() {
    static SECONDS: AtomicU64 = AtomicU64::new(0);
    let later = || fixed_time() + Duration::from_secs(SECONDS.fetch_add(60, Ordering::Relaxed));
    let server = builder().clock(later).build();
    let pod = |cpu: &str| {
        let mut pod = pod("a");
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
        pod
    };
    let uri = "/api/v1/namespaces/default/pods/a";
    let first = apply(&server, uri, "x", &pod("1")).await;
    let again = apply(&server, uri, "x", &pod("1000m")).await;
    assert_eq!(again.text, first.text);
}
