//! Tests that the server rejects creations and patches that result in invalid metadata.

use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::{Value, json};

use crate::ask::{builder, with};

/// Asserts that a patch and a creation with `metadata` fail with the message `expected`.
async fn refused(server: &Server, metadata: &Value, expected: &str) {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let mut new = json!({"metadata": metadata});
    let path = format!("{MAPS}/m");
    let patched = with(server, "PATCH", &path, &new).await.refusal();
    assert_eq!(
        patched,
        format!("422 Invalid: ConfigMap \"m\" is invalid: {expected}")
    );
    new["metadata"]["name"] = json!("n");
    let posted = with(server, "POST", MAPS, &new).await.refusal();
    assert_eq!(
        posted,
        format!("422 Invalid: ConfigMap \"n\" is invalid: {expected}")
    );
}

#[tokio::test(start_paused = true)]
async fn every_write_rejects_invalid_owners_and_finalizers() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let server = builder().seed([map]).build();
    for (metadata, expected) in [
        (
            json!({"ownerReferences": [{"apiVersion": "a/b/c", "kind": "Pod", "name": "a", "uid": "1"}]}),
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
        ),
        (
            json!({"ownerReferences": [{"uid": "1", "apiVersion": "v1", "kind": "Event", "name": "a"}]}),
            "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"1\"}: /v1, Kind=Event is disallowed from being an owner",
        ),
        (
            json!({"ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": true},
                {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": true},
            ]}),
            "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"1\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"b\",\"uid\":\"2\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for Pod/a and Pod/b",
        ),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}]}),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
    ] {
        refused(&server, &metadata, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_rejects_malformed_metadata() {
    const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let server = builder().build();
    let sound = json!({"metadata": {"name": "m"}});
    assert_eq!(with(&server, "POST", MAPS, &sound).await.code, 201);
    let long = "x".repeat(64);
    for (metadata, expected) in [
        (
            json!({"labels": {"a b": "c"}}),
            format!("metadata.labels: Invalid value: \"a b\": name part {KEY}"),
        ),
        (
            json!({"labels": {"a": long}}),
            format!("metadata.labels: Invalid value: \"{long}\": must be no more than 63 bytes"),
        ),
        (
            json!({"labels": {"/a": "b"}}),
            "metadata.labels: Invalid value: \"/a\": prefix part must be non-empty".to_owned(),
        ),
        (
            json!({"labels": {"a/b/c": "d"}}),
            format!("metadata.labels: Invalid value: \"a/b/c\": a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"),
        ),
        (
            json!({"annotations": {"a": "x".repeat(256 * 1024)}}),
            "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned(),
        ),
        (
            json!({"finalizers": ["foo"]}),
            "metadata.finalizers[0]: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully qualified".to_owned(),
        ),
    ] {
        refused(&server, &metadata, &expected).await;
    }
    let upper = json!({"metadata": {"name": "n", "annotations": {"Example.com/A": "b"}}});
    assert_eq!(
        with(&server, "POST", MAPS, &upper).await.code,
        201,
        "annotation keys may have upper case"
    );
    // A prefix may end with a dash, because the generated name continues after it. Only the letter `A` is
    // invalid.
    let generated = json!({"metadata": {"generateName": "A-"}});
    let refusal = with(&server, "POST", MAPS, &generated).await.refusal();
    let name = "is invalid: metadata.name: Invalid value: \"A-";
    assert!(refusal.contains(name), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_custom_kinds_require_no_domain() {
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(kind).build();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["hold"]}});
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(with(&server, "POST", path, &widget).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn the_response_to_many_controllers_is_bounded() {
    let server = builder().build();
    let owner = |nth: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": nth.to_string(), "controller": true});
    let owners: Vec<_> = (0..500).map(owner).collect();
    let body = json!({"metadata": {"name": "a", "ownerReferences": owners}});
    let reply = with(
        &server,
        "POST",
        "/api/v1/namespaces/default/configmaps",
        &body,
    )
    .await;
    assert_eq!(reply.code, 422);
    // Each error contains all 500 owners.
    assert_eq!(
        reply.json["details"]["causes"].as_array().unwrap().len(),
        10
    );
}
