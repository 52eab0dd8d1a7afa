//! Tests JSON patches, patches that contain a `resourceVersion`, and rejected patches.

use http_body_util::Full;
use serde_json::{Value, json};

use super::A;
use crate::ask::{get, pods, request, send, with};

#[tokio::test(start_paused = true)]
async fn json_patches_are_applied_in_order_or_not_at_all() {
    let server = pods(&["a"]);
    let patch = json!([
        {"op": "test", "path": "/metadata/name", "value": "a"},
        {"op": "add", "path": "/metadata/labels", "value": {"x": "1"}},
        {"op": "replace", "path": "/metadata/labels/x", "value": "2"},
    ]);
    assert_eq!(
        with(&server, "PATCH", A, &patch).await.json["metadata"]["labels"],
        json!({"x": "2"})
    );
    let failing = json!([
        {"op": "add", "path": "/metadata/labels/y", "value": "3"},
        {"op": "test", "path": "/metadata/name", "value": "b"},
    ]);
    let refused = with(&server, "PATCH", A, &failing).await;
    assert_eq!(
        (refused.code, refused.json["reason"].as_str()),
        (422, Some("Invalid"))
    );
    assert_eq!(
        get(&server, A).await.json["metadata"]["labels"],
        json!({"x": "2"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_test_for_null_passes_for_a_missing_member() {
    let server = pods(&["a"]);
    let finalizers = "/metadata/finalizers";
    let first = json!([
        {"op": "test", "path": finalizers, "value": null},
        {"op": "add", "path": finalizers, "value": ["example.com/first"]},
    ]);
    assert_eq!(with(&server, "PATCH", A, &first).await.code, 200);
    assert_eq!(
        with(&server, "PATCH", A, &first).await.code,
        422,
        "now the member exists"
    );
    for (path, value) in [("/metadata/x/y", json!(null)), ("/metadata/x", json!("y"))] {
        let patch = json!([{"op": "test", "path": path, "value": value}]);
        assert_eq!(with(&server, "PATCH", A, &patch).await.code, 422, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_grows_beyond_the_limit_is_rejected() {
    let server = pods(&["a"]);
    let mut patch = vec![json!({"op": "add", "path": "/spec/x", "value": ["x".repeat(1000)]})];
    patch.extend((0..30).map(|_| json!({"op": "copy", "from": "/spec/x", "path": "/spec/x/-"})));
    assert_eq!(
        with(&server, "PATCH", A, &Value::Array(patch)).await.code,
        422,
        "as for any operation that fails"
    );
    let many = vec![json!({"op": "test", "path": "/metadata/name", "value": "a"}); 10_001];
    assert_eq!(
        with(&server, "PATCH", A, &Value::Array(many)).await.code,
        413
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_a_revision_is_conditional() {
    let server = pods(&["a"]);
    let patch = |revision: &str| json!({"metadata": {"resourceVersion": revision}, "spec": {"x": revision}});
    assert_eq!(with(&server, "PATCH", A, &patch("9")).await.code, 409);
    assert_eq!(with(&server, "PATCH", A, &patch("1")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn unsupported_patch_types_are_rejected() {
    let server = pods(&["a"]);
    for media_type in ["application/apply-patch+cbor", "application/json"] {
        let patch = request("PATCH", A).header("content-type", media_type);
        let reply = send(&server, patch.body(Full::from("{}")).unwrap()).await;
        assert_eq!(
            reply.refusal(),
            "415 UnsupportedMediaType: 415: Unsupported Media Type"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_made_invalid_by_a_patch_is_reported_at_the_patch() {
    let server = pods(&["a"]);
    let broken = with(
        &server,
        "PATCH",
        A,
        &json!({"metadata": {"labels": {"a": 1}}}),
    )
    .await;
    assert_eq!(broken.code, 422);
    assert_eq!(broken.json["details"]["causes"][0]["field"], "patch");
    assert!(broken.message().ends_with(
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
    ));
    let unknown = with(
        &server,
        "PUT",
        A,
        &json!({"metadata": {"name": "a", "resourceVersion": "x"}}),
    )
    .await;
    assert_eq!(
        unknown.refusal(),
        "500 -: strconv.ParseUint: parsing \"x\": invalid syntax"
    );
    let nowhere = with(&server, "POST", A, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(
        nowhere.refusal(),
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    );
}
