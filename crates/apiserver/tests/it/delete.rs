//! Tests deletions of single objects and of collections, with finalizers, grace periods and preconditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::ask::{Watch, builder, delete, fixed_time, get, labelled, pod, pods, with};

const PODS: &str = "/api/v1/namespaces/default/pods";
const A: &str = "/api/v1/namespaces/default/pods/a";
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1";

#[tokio::test(start_paused = true)]
async fn a_deletion_returns_the_details_of_the_object_or_the_pod_itself() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}});
    let server = builder().seed([pod("a"), map]).build();
    let uid = server.get("v1", "configmaps", "default/m").unwrap()["metadata"]["uid"].clone();
    let reply = delete(&server, "/api/v1/namespaces/default/configmaps/m").await;
    assert_eq!(
        (reply.code, &reply.json["status"], reply.json.get("code")),
        (200, &json!("Success"), None)
    );
    assert_eq!(
        reply.json["details"],
        json!({"name": "m", "kind": "configmaps", "uid": uid})
    );
    let reply = delete(&server, A).await;
    assert_eq!((reply.code, &reply.json["kind"]), (200, &json!("Pod")));
    assert_eq!(
        delete(&server, A).await.refusal(),
        "404 NotFound: pods \"a\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_is_deleted_in_two_phases() {
    let mut seed = pod("a");
    seed["metadata"]["finalizers"] = json!(["example.com/hold", "example.com/wait"]);
    let server = builder().seed([seed]).build();
    let mut watch = Watch::open(&server, WATCH).await;

    let marked = delete(&server, A).await;
    assert_eq!(marked.code, 200);
    assert_eq!(
        marked.json["metadata"]["deletionTimestamp"],
        "2027-01-15T08:00:00Z"
    );
    assert_eq!(marked.json["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(marked.json["metadata"]["generation"], 2);
    assert_eq!(
        delete(&server, A).await.json,
        marked.json,
        "a second deletion changes nothing"
    );

    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}});
    let refused = with(&server, "PATCH", A, &more).await;
    assert!(
        refused
            .message()
            .contains("no new finalizers can be added if the object is being deleted"),
        "{}",
        refused.message()
    );

    let one = json!({"metadata": {"finalizers": ["example.com/wait"]}});
    assert_eq!(with(&server, "PATCH", A, &one).await.code, 200);
    let none = json!({"metadata": {"finalizers": null, "labels": {"late": "change"}}});
    assert_eq!(with(&server, "PATCH", A, &none).await.code, 200);
    assert_eq!(get(&server, A).await.code, 404);
    assert_eq!(
        watch.trace().await,
        "MODIFIED a 2\nMODIFIED a 3\nDELETED a 4\n"
    );
}

#[tokio::test(start_paused = true)]
async fn the_deletion_event_carries_the_last_stored_state() {
    let mut seed = pod("a");
    seed["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let server = builder().seed([seed]).build();
    server.delete("v1", "pods", "default/a").unwrap();
    let late = json!({"metadata": {"finalizers": null, "labels": {"late": "change"}}});
    server.patch("v1", "pods", "default/a", late).unwrap();
    let event = get(
        &server,
        "/api/v1/pods?watch=1&resourceVersion=2&timeoutSeconds=1",
    )
    .await
    .json;
    assert_eq!(event["type"], "DELETED");
    assert_eq!(
        event["object"]["metadata"]["finalizers"],
        json!(["example.com/hold"])
    );
    assert_eq!(event["object"]["metadata"]["resourceVersion"], "3");
}

#[tokio::test(start_paused = true)]
async fn preconditions_are_compared_with_the_stored_object() {
    let server = pods(&["a"]);
    let with_precondition = async |precondition| {
        with(
            &server,
            "DELETE",
            A,
            &json!({"kind": "DeleteOptions", "preconditions": precondition}),
        )
        .await
    };
    let uid = server.get("v1", "pods", "default/a").unwrap()["metadata"]["uid"].clone();
    assert_eq!(
        with_precondition(json!({"uid": "other"})).await.refusal(),
        format!(
            "409 Conflict: Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (other) does not match the UID in record ({}). The object might have been deleted and then recreated",
            uid.as_str().unwrap()
        )
    );
    assert_eq!(
        with_precondition(json!({"resourceVersion": "7"}))
            .await
            .refusal(),
        "409 Conflict: Operation cannot be fulfilled on Pod \"a\": the ResourceVersion in the precondition (7) does not match the ResourceVersion in record (1). The object might have been modified"
    );
    assert_eq!(
        with_precondition(json!({"uid": uid, "resourceVersion": "1"}))
            .await
            .code,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn propagation_policies_add_their_finalizers() {
    for (policy, finalizers) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let server = pods(&["a"]);
        let options = json!({"propagationPolicy": policy});
        let marked = with(&server, "DELETE", A, &options).await;
        assert_eq!(marked.json["metadata"]["finalizers"], json!([finalizers]));
        let background = delete(&server, &format!("{A}?propagationPolicy=Background")).await;
        assert_eq!(background.json["kind"], "Pod");
        assert!(
            server.get("v1", "pods", "default/a").is_none(),
            "the finalizer is removed again"
        );
    }
    let server = pods(&["a"]);
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    assert_eq!(with(&server, "DELETE", A, &both).await.code, 422);
    assert_eq!(
        delete(&server, &format!("{A}?propagationPolicy=No"))
            .await
            .code,
        422
    );
}

#[tokio::test(start_paused = true)]
async fn orphan_dependents_false_receives_202_if_a_finalizer_keeps_the_object() {
    let mut seed = pod("a");
    seed["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let server = builder().seed([seed]).build();
    assert_eq!(
        with(&server, "DELETE", A, &json!({"orphanDependents": false}))
            .await
            .code,
        202
    );
}

/// Returns a pod on a node. The deletion of such a pod has a default grace period of 30 s.
fn bound(name: &str) -> Value {
    let mut bound = pod(name);
    bound["spec"]["nodeName"] = json!("n1");
    bound
}

fn grace(seconds: i64) -> Value {
    json!({"gracePeriodSeconds": seconds})
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_node_is_marked_and_removed_by_one_request() {
    for requested in [None, Some(0), Some(30)] {
        let server = pods(&["a"]);
        let mut watch = Watch::open(&server, WATCH).await;
        let reply = match requested {
            None => delete(&server, A).await,
            Some(seconds) => with(&server, "DELETE", A, &grace(seconds)).await,
        };
        assert_eq!((reply.code, &reply.json["kind"]), (200, &json!("Pod")));
        let metadata = &reply.json["metadata"];
        assert_eq!(metadata["deletionTimestamp"], "2027-01-15T08:00:00Z");
        assert_eq!(metadata["deletionGracePeriodSeconds"], 0);
        assert_eq!(metadata["generation"], 2);
        assert_eq!(reply.revision(), "3", "the revision of the deletion");
        assert_eq!(watch.trace().await, "MODIFIED a 2\nDELETED a 3\n");
        assert!(server.get("v1", "pods", "default/a").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_stays_until_it_is_deleted_without_grace_period() {
    let server = builder().seed([bound("a")]).build();
    let mut watch = Watch::open(&server, WATCH).await;
    let marked = delete(&server, A).await.json;
    let metadata = &marked["metadata"];
    assert_eq!(metadata["deletionGracePeriodSeconds"], 30, "the default");
    assert_eq!(metadata["deletionTimestamp"], "2027-01-15T08:00:30Z");
    assert_eq!(metadata["generation"], 2);

    assert_eq!(
        delete(&server, A).await.json,
        marked,
        "a second deletion changes nothing"
    );
    let longer = with(&server, "DELETE", A, &grace(60)).await.json;
    assert_eq!(longer, marked, "a grace period is never extended");
    let foreground = json!({"propagationPolicy": "Foreground"});
    let meanwhile = with(&server, "DELETE", A, &foreground).await.json;
    assert_eq!(meanwhile, marked, "no finalizer is added");
    let shorter = with(&server, "DELETE", A, &grace(5)).await.json;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert_eq!(
        shorter["metadata"]["deletionTimestamp"], "2027-01-15T08:00:05Z",
        "the time counts from the first deletion"
    );
    assert_eq!(shorter["metadata"]["generation"], 2);
    let negative = with(&server, "DELETE", A, &grace(-7)).await.json;
    assert_eq!(negative["metadata"]["deletionGracePeriodSeconds"], 1);

    let gone = with(&server, "DELETE", A, &grace(0)).await;
    assert_eq!(gone.json["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(get(&server, A).await.code, 404);
    assert_eq!(
        watch.trace().await,
        "MODIFIED a 2\nMODIFIED a 3\nMODIFIED a 4\nMODIFIED a 5\nDELETED a 6\n"
    );
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_of_a_pod_is_that_of_the_request_or_of_its_spec() {
    let mut own = bound("a");
    own["spec"]["terminationGracePeriodSeconds"] = json!(7);
    for (mut pod, phase, requested, expected) in [
        (own.clone(), "Running", None, Some(7)),
        (own.clone(), "Running", Some(9), Some(9)),
        (own.clone(), "Running", Some(-1), Some(1)),
        (own.clone(), "Running", Some(0), None),
        (own.clone(), "Succeeded", Some(9), None),
        (own, "Failed", None, None),
        (bound("a"), "Running", None, Some(30)),
    ] {
        pod["status"] = json!({"phase": phase});
        let server = builder().seed([pod]).build();
        let options = requested.map_or(json!({}), grace);
        assert_eq!(with(&server, "DELETE", A, &options).await.code, 200);
        let left = server.get("v1", "pods", "default/a");
        let given = left.map(|pod| pod["metadata"]["deletionGracePeriodSeconds"].clone());
        assert_eq!(
            given,
            expected.map(|seconds| json!(seconds)),
            "{phase} {requested:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_shortened_grace_period_does_not_end_before_now() {
    let (elapsed, clock) = (Arc::new(AtomicU64::new(0)), fixed_time());
    let seconds = Arc::clone(&elapsed);
    let now = move || clock + Duration::from_secs(seconds.load(Ordering::Relaxed));
    let server = builder().clock(now).seed([bound("a")]).build();
    delete(&server, A).await;
    elapsed.store(20, Ordering::Relaxed);
    let late = with(&server, "DELETE", A, &grace(10)).await.json;
    assert_eq!(
        late["metadata"]["deletionTimestamp"],
        "2027-01-15T08:00:20Z"
    );
    assert_eq!(
        late["metadata"]["deletionGracePeriodSeconds"], 1,
        "at least one second remains"
    );
    elapsed.store(40, Ordering::Relaxed);
    with(&server, "DELETE", A, &grace(0)).await;
    assert_eq!(get(&server, A).await.code, 404, "after the deadline too");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_removed_after_its_finalizers_and_its_grace_period() {
    let mut held = bound("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let release = json!({"metadata": {"finalizers": null}});

    let server = builder().seed([held.clone()]).build();
    delete(&server, A).await;
    assert_eq!(with(&server, "PATCH", A, &release).await.code, 200);
    assert_eq!(
        get(&server, A).await.code,
        200,
        "its grace period has not ended"
    );
    with(&server, "DELETE", A, &grace(0)).await;
    assert_eq!(get(&server, A).await.code, 404);

    let server = builder().seed([held]).build();
    let mut watch = Watch::open(&server, WATCH).await;
    with(&server, "DELETE", A, &grace(0)).await;
    assert_eq!(get(&server, A).await.code, 200, "a finalizer keeps it");
    with(&server, "PATCH", A, &release).await;
    assert_eq!(watch.trace().await, "MODIFIED a 2\nDELETED a 3\n");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_deletion_returns_the_marked_object_and_stores_nothing() {
    let server = builder().seed([bound("a"), pod("b")]).build();
    for (name, seconds) in [("a", 30), ("b", 0)] {
        let reply = delete(&server, &format!("{PODS}/{name}?dryRun=All")).await;
        let metadata = &reply.json["metadata"];
        assert_eq!(metadata["deletionGracePeriodSeconds"], seconds);
        assert!(metadata["deletionTimestamp"].is_string());
    }
    let all = delete(&server, &format!("{PODS}?dryRun=All")).await;
    assert_eq!((all.code, all.names()), (200, vec!["a", "b"]));
    assert_eq!(server.revision(), 2);
    let stored = server.get("v1", "pods", "default/a").unwrap();
    assert!(stored["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_direct_deletion_takes_one_revision_and_waits_for_finalizers_only() {
    let mut held = bound("b");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let server = builder().seed([bound("a"), held]).build();
    let mut watch = Watch::open(&server, "/api/v1/pods?watch=1&resourceVersion=2").await;
    server.delete("v1", "pods", "default/a").unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    assert_eq!(watch.trace().await, "DELETED a 3\nMODIFIED b 4\n");
}

#[tokio::test(start_paused = true)]
async fn a_direct_deletion_ends_a_running_grace_period() {
    let mut held = bound("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let server = builder().seed([held]).build();
    let due = "/metadata/deletionTimestamp";
    let graceful = delete(&server, A).await.json;
    assert_eq!(graceful.pointer(due).unwrap(), "2027-01-15T08:00:30Z");
    let ended = server.delete("v1", "pods", "default/a").unwrap();
    assert_eq!(ended.pointer(due).unwrap(), "2027-01-15T08:00:00Z");
    assert_eq!(ended["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let mut web = bound("c");
    web["metadata"]["labels"] = json!({"app": "web"});
    let seeds = [labelled("a", "app", "web"), labelled("b", "app", "db"), web];
    let server = builder().seed(seeds).build();
    let mut watch = Watch::open(&server, "/api/v1/pods?watch=1&resourceVersion=3").await;
    let found = get(&server, &format!("{PODS}?labelSelector=app%3Dweb")).await;
    let reply = delete(&server, &format!("{PODS}?labelSelector=app%3Dweb")).await;
    assert_eq!(reply.code, 200);
    assert_eq!(
        reply.json["items"], found.json["items"],
        "the response contains the objects before their deletion"
    );
    assert_eq!(
        watch.trace().await,
        "MODIFIED a 4\nDELETED a 5\nMODIFIED c 6\n",
        "each is deleted as by a request of its own"
    );
    let options = json!({"gracePeriodSeconds": 0});
    with(&server, "DELETE", PODS, &options).await;
    assert!(get(&server, PODS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn malformed_delete_options_are_rejected() {
    let server = pods(&["a"]);
    for (options, expected) in [
        (
            json!({"dryRun": ["Some"]}),
            "422 Invalid: DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
        ),
        (
            json!({"dryRun": ["Some", "All"]}),
            "422 Invalid: DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\",\"All\"]: supported values: \"All\"",
        ),
        (
            json!({"propagationPolicy": "No"}),
            "422 Invalid: DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"No\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        ),
        (
            json!({"kind": "Pod", "apiVersion": "v1"}),
            "400 BadRequest: no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!({"gracePeriodSeconds": "x"}),
            "400 BadRequest: json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
    ] {
        let reply = with(&server, "DELETE", A, &options).await;
        assert_eq!(reply.refusal(), expected);
    }
    assert_eq!(server.revision(), 1);
}
