//! Tests the methods of `Server` that read and write objects directly, without a request.
//!
//! Also tests the initial objects that `Builder::seed` adds.

use serde_json::{Value, json};

use crate::ask::{builder, pod, with};

#[tokio::test(start_paused = true)]
async fn direct_calls_return_the_stored_object_or_the_status() {
    let server = builder().build();
    let created = server.create(pod("a")).unwrap();
    assert_eq!(created, server.get("v1", "pods", "default/a").unwrap());
    let error = server.create(pod("a")).unwrap_err();
    assert_eq!(error.to_string(), "pods \"a\" already exists");
    assert_eq!((error.code(), error.reason()), (409, "AlreadyExists"));
    let mut running = created.clone();
    running["status"] = json!({"phase": "Running"});
    assert_eq!(
        server.update(running).unwrap()["status"]["phase"],
        "Running"
    );
    assert_eq!(server.update(created).unwrap_err().reason(), "Conflict");
    assert_eq!(
        server.delete("v1", "pods", "default/b").unwrap_err().code(),
        404
    );
    let mut deep = json!(0);
    // Decoding it would overflow the stack.
    for _ in 0..3_000 {
        deep = Value::Array(vec![deep]);
    }
    let mut too_deep = pod("c");
    too_deep["spec"]["x"] = deep;
    assert!(server.create(too_deep).is_err());
    let unknown = server
        .create(json!({"apiVersion": "v9", "kind": "Thing"}))
        .unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "no kind \"Thing\" of apiVersion \"v9\" is served"
    );
}

#[tokio::test]
async fn objects_before_the_first_rejected_one_are_stored() {
    let server = builder().build();
    assert_eq!(server.create_all([pod("a"), pod("b")]).await, Ok(2));
    let refused = server.create_all([pod("c"), pod("a"), pod("d")]).await;
    assert_eq!(refused.unwrap_err().reason(), "AlreadyExists");
    assert_eq!((server.list("v1", "pods").len(), server.revision()), (3, 4));
}

#[test]
#[should_panic(expected = "seed 1 can't be stored: pods \"a\" already exists")]
fn the_error_names_a_seed_that_cannot_be_stored() {
    builder().seed([pod("a"), pod("a")]).build();
}

#[test]
fn the_first_seed_has_revision_1() {
    let server = builder().seed([pod("b"), pod("a")]).build();
    let revisions: Vec<_> = server
        .list("v1", "pods")
        .iter()
        .map(|pod| pod["metadata"]["resourceVersion"].clone())
        .collect();
    assert_eq!(revisions, ["2", "1"]);
    assert_eq!((server.revision(), builder().build().revision()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn values_of_wrong_types_from_direct_calls_can_be_replaced_by_clients() {
    let server = builder().build();
    let job = |spec: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec});
    let stored = json!({"suspend": true, "manualSelector": true, "template": {"spec": "text"}});
    server.create(job(stored)).unwrap();
    let pod = json!({
        "affinity": {"nodeAffinity": {}},
        "containers": [{"name": "a", "image": "a"}],
        "restartPolicy": "Never"
    });
    let sent = job(json!({"template": {"spec": pod}}));
    let uri = "/apis/batch/v1/namespaces/default/jobs/a";
    assert_eq!(with(&server, "PUT", uri, &sent).await.code, 422);
}
