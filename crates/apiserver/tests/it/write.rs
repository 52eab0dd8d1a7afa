//! Tests bindings, dry runs and the options of write requests.
//!
//! The submodules test creations, updates, patches and the validation of metadata.

mod create;
mod metadata;
mod patch;
mod update;

use serde_json::json;

use crate::ask::{get, pod, pods, with};

const PODS: &str = "/api/v1/namespaces/default/pods";
const A: &str = "/api/v1/namespaces/default/pods/a";

#[tokio::test(start_paused = true)]
async fn a_bound_pod_cannot_be_bound_again_or_moved() {
    let server = pods(&["a"]);
    let bind = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let path = format!("{A}/binding");
    let bound = with(&server, "POST", &path, &bind).await;
    assert_eq!(
        (bound.code, bound.json["status"].as_str()),
        (201, Some("Success"))
    );
    let pod = server.get("v1", "pods", "default/a").unwrap();
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(
        with(&server, "POST", &path, &bind).await.refusal(),
        "409 Conflict: Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
    );
    let moved = with(&server, "PATCH", A, &json!({"spec": {"nodeName": "n2"}})).await;
    assert_eq!(
        (moved.code, moved.json["reason"].as_str()),
        (422, Some("Invalid"))
    );
    let nowhere = json!({"metadata": {"name": "a"}, "target": {}});
    assert_eq!(
        with(&server, "POST", &path, &nowhere).await.refusal(),
        "500 -: target.name: Required value"
    );
    let other = format!("{PODS}/b/binding");
    assert_eq!(
        with(&server, "POST", &other, &bind).await.refusal(),
        "400 BadRequest: name in URL does not match name in Binding object"
    );
    let mut bind = bind;
    bind["metadata"]["name"] = json!("b");
    let missing = with(&server, "POST", &other, &bind).await;
    assert_eq!(missing.refusal(), "404 NotFound: pods \"b\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_returns_the_result_and_stores_nothing() {
    let server = pods(&["a"]);
    let created = with(&server, "POST", &format!("{PODS}?dryRun=All"), &pod("b")).await;
    assert_eq!((created.code, created.revision()), (201, ""));
    let patched = with(
        &server,
        "PATCH",
        &format!("{A}?dryRun=All"),
        &json!({"spec": {"activeDeadlineSeconds": 1}}),
    )
    .await;
    assert_eq!(patched.json["spec"]["activeDeadlineSeconds"], 1);
    let deleted = crate::ask::delete(&server, &format!("{A}?dryRun=All")).await;
    assert_eq!(deleted.code, 200);
    assert_eq!((server.revision(), server.list("v1", "pods").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn all_invalid_write_options_are_reported_together() {
    let server = pods(&["a"]);
    for (query, expected) in [
        (
            "force=true",
            "force: Forbidden: may not be specified for non-apply patch",
        ),
        (
            "fieldValidation=X",
            "fieldValidation: Unsupported value: \"X\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        ),
        (
            "dryRun=X&force=false",
            "[force: Forbidden: may not be specified for non-apply patch, dryRun: Unsupported value: [\"X\"]: supported values: \"All\"]",
        ),
    ] {
        let reply = with(&server, "PATCH", &format!("{A}?{query}"), &json!({})).await;
        assert_eq!(
            reply.refusal(),
            format!("422 Invalid: PatchOptions.meta.k8s.io \"\" is invalid: {expected}")
        );
    }
    let long = format!("{A}?fieldManager={}", "m".repeat(129));
    assert_eq!(
        with(&server, "PUT", &long, &pod("a")).await.refusal(),
        "422 Invalid: UpdateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unserved_subresource_of_a_missing_object_receives_404() {
    let server = pods(&["a"]);
    assert_eq!(get(&server, &format!("{A}/proxy")).await.code, 501);
    assert_eq!(
        get(&server, &format!("{PODS}/b/proxy")).await.refusal(),
        "404 NotFound: pods \"b\" not found"
    );
}
