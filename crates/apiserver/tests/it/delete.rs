//! Deletion: at once, in two phases, by collection, under conditions.

use serde_json::json;

use crate::ask::{Watch, builder, delete, get, labelled, pod, pods, with};

const PODS: &str = "/api/v1/namespaces/default/pods";
const A: &str = "/api/v1/namespaces/default/pods/a";
const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1";

#[tokio::test(start_paused = true)]
async fn a_deletion_says_what_was_deleted() {
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
async fn finalizers_make_it_two_phases() {
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
        "a second delete moves nothing"
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
async fn preconditions_are_compared_with_what_is_stored() {
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
async fn propagation_policies_put_their_finalizers() {
    for (policy, finalizers) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let server = pods(&["a"]);
        let options = json!({"propagationPolicy": policy});
        let marked = with(&server, "DELETE", A, &options).await;
        assert_eq!(marked.json["metadata"]["finalizers"], json!([finalizers]));
        let background = delete(&server, &format!("{A}?propagationPolicy=Background")).await;
        assert_eq!(background.json["kind"], "Pod");
        assert!(
            server.get("v1", "pods", "default/a").is_none(),
            "takes the finalizer away again"
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
async fn an_object_that_stays_is_202_for_the_old_name_of_background() {
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

#[tokio::test(start_paused = true)]
async fn only_a_pod_on_a_node_whose_deletion_asks_for_grace_gets_it() {
    let mut bound = pod("a");
    bound["spec"]["nodeName"] = json!("n1");
    bound["spec"]["terminationGracePeriodSeconds"] = json!(30);
    let server = builder().seed([bound.clone(), pod("b")]).build();
    let grace = |seconds: i64| json!({"gracePeriodSeconds": seconds});

    assert_eq!(
        with(&server, "DELETE", &format!("{PODS}/b"), &grace(30))
            .await
            .code,
        200
    );
    assert!(server.get("v1", "pods", "default/b").is_none());
    let marked = with(&server, "DELETE", A, &grace(30)).await.json;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        marked["metadata"]["deletionTimestamp"],
        "2027-01-15T08:00:30Z"
    );
    let longer = with(&server, "DELETE", A, &grace(60)).await.json;
    assert_eq!(
        longer["metadata"], marked["metadata"],
        "grace is never prolonged"
    );
    let shorter = with(&server, "DELETE", A, &grace(-1)).await.json;
    assert_eq!(
        shorter["metadata"]["deletionGracePeriodSeconds"], 1,
        "negative is the shortest"
    );
    assert_eq!(with(&server, "DELETE", A, &grace(0)).await.code, 200);
    assert!(server.get("v1", "pods", "default/a").is_none());

    server.create(bound).unwrap();
    assert_eq!(delete(&server, A).await.code, 200);
    assert!(
        server.get("v1", "pods", "default/a").is_none(),
        "nobody asked for grace"
    );
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let server = builder()
        .seed([
            labelled("a", "app", "web"),
            labelled("b", "app", "db"),
            labelled("c", "app", "web"),
        ])
        .build();
    let reply = delete(&server, &format!("{PODS}?labelSelector=app%3Dweb")).await;
    assert_eq!((reply.code, reply.names()), (200, vec!["a", "c"]));
    assert_eq!(get(&server, PODS).await.names(), ["b"]);
    assert_eq!(server.revision(), 5, "one revision per object");
}

#[tokio::test(start_paused = true)]
async fn some_namespaces_are_immortal() {
    let server = builder().build();
    let reply = delete(&server, "/api/v1/namespaces/default").await;
    assert_eq!(
        reply.refusal(),
        "403 Forbidden: namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
}
