//! Tests namespaces: the fields that the server sets, finalizers, and the deletion of a namespace together
//! with its objects.

use expect_test::expect;
use serde_json::{Value, json};

use crate::ask::{Watch, builder, delete, get, pod, request, send, with};

const ALL: &str = "/api/v1/namespaces";
const N: &str = "/api/v1/namespaces/n";

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}})
}

/// Returns a pod in namespace `n` with a node and a grace period of `seconds`.
fn bound(name: &str, seconds: i64) -> Value {
    let mut pod = pod(&format!("n/{name}"));
    pod["spec"]["nodeName"] = json!("node");
    pod["spec"]["terminationGracePeriodSeconds"] = json!(seconds);
    pod
}

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

#[tokio::test(start_paused = true)]
async fn a_new_namespace_is_active_with_a_finalizer_and_a_name_label() {
    let server = builder().build();
    let mut body = namespace("n");
    body["status"] = json!({"phase": "Terminating"});
    let made = with(&server, "POST", ALL, &body).await.json;
    assert_eq!(made["status"], json!({"phase": "Active"}));
    assert_eq!(made["spec"], json!({"finalizers": ["kubernetes"]}));
    let labels = json!({"kubernetes.io/metadata.name": "n"});
    assert_eq!(made["metadata"]["labels"], labels);

    let generated = json!({"metadata": {"generateName": "g-"}, "spec": {"finalizers": ["a.b/c"]}});
    let made = with(&server, "POST", ALL, &generated).await.json;
    assert_eq!(made["spec"]["finalizers"], json!(["a.b/c", "kubernetes"]));
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        made["metadata"]["name"]
    );

    let mut unknown = namespace("u");
    unknown["spec"] = json!({"finalizers": ["foo"]});
    assert_eq!(
        with(&server, "POST", ALL, &unknown).await.refusal(),
        "422 Invalid: Namespace \"u\" is invalid: spec.finalizers: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully qualified"
    );

    let change = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": null, "x": "y"}}, "spec": {"finalizers": []}});
    let changed = with(&server, "PATCH", N, &change).await.json;
    let labels = json!({"kubernetes.io/metadata.name": "n", "x": "y"});
    assert_eq!(changed["metadata"]["labels"], labels);
    assert_eq!(changed["spec"], json!({"finalizers": ["kubernetes"]}));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_removed_with_its_content() {
    let mut other = pod("other/a");
    other["metadata"]["name"] = json!("b");
    let seeds = [
        namespace("n"),
        map("m"),
        pod("n/a"),
        bound("ended", 0),
        other,
    ];
    let server = builder().seed(seeds).build();
    let mut namespaces = Watch::open(&server, &format!("{ALL}?watch=1&resourceVersion=5")).await;
    let mut pods = Watch::open(&server, "/api/v1/pods?watch=1&resourceVersion=5").await;
    let mut maps = Watch::open(&server, "/api/v1/configmaps?watch=1&resourceVersion=5").await;
    let gone = delete(&server, N).await;
    assert_eq!(gone.code, 200);
    assert_eq!(gone.json["status"]["phase"], "Terminating");
    assert_eq!(
        gone.json["metadata"]["deletionTimestamp"],
        "2027-01-15T08:00:00Z"
    );
    assert_eq!(
        gone.json["metadata"].get("deletionGracePeriodSeconds"),
        None
    );
    let traces = [
        namespaces.trace().await,
        pods.trace().await,
        maps.trace().await,
    ];
    expect![[r"
        MODIFIED n 6
        DELETED n 12
        --
        MODIFIED a 7
        DELETED a 8
        MODIFIED ended 9
        DELETED ended 10
        --
        DELETED m 11
    "]]
    .assert_eq(&traces.join("--\n"));
    assert_eq!(get(&server, N).await.code, 404);
    assert!(server.get("v1", "pods", "other/b").is_some());
}

#[tokio::test(start_paused = true)]
async fn content_is_deleted_after_the_pods_and_the_namespace_last() {
    let seeds = [
        namespace("n"),
        bound("a", 30),
        bound("b", 30),
        held(map("m")),
        map("k"),
    ];
    let server = builder().seed(seeds).build();
    let mut namespaces = Watch::open(&server, &format!("{ALL}?watch=1&resourceVersion=5")).await;
    let mut maps = Watch::open(&server, "/api/v1/configmaps?watch=1&resourceVersion=5").await;
    delete(&server, N).await;
    assert_eq!(namespaces.trace().await, "MODIFIED n 6\n");
    let marked = server.get("v1", "pods", "n/a").unwrap();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);

    let at_once = json!({"gracePeriodSeconds": 0});
    with(&server, "DELETE", &format!("{N}/pods/a"), &at_once).await;
    assert_eq!(maps.trace().await, "", "a pod still exists");
    with(&server, "DELETE", &format!("{N}/pods/b"), &at_once).await;
    assert_eq!(maps.trace().await, "DELETED k 13\nMODIFIED m 14\n");
    assert_eq!(namespaces.trace().await, "", "a finalizer keeps a map");

    let release = json!({"metadata": {"finalizers": null}});
    let map = format!("{N}/configmaps/m");
    assert_eq!(with(&server, "PATCH", &map, &release).await.code, 200);
    assert_eq!(maps.trace().await, "DELETED m 15\n");
    assert_eq!(namespaces.trace().await, "DELETED n 16\n");
}

#[tokio::test(start_paused = true)]
async fn a_terminating_namespace_rejects_only_creations() {
    let server = builder().seed([namespace("n"), held(map("m"))]).build();
    delete(&server, N).await;
    for (body, name) in [
        (json!({"metadata": {"name": "new"}}), "new"),
        (json!({"metadata": {"generateName": "new-"}}), "new-"),
    ] {
        let refused = with(&server, "POST", &format!("{N}/configmaps"), &body).await;
        assert_eq!(
            refused.refusal(),
            format!(
                "403 Forbidden: configmaps {name:?} is forbidden: unable to create new content in namespace n because it is being terminated"
            )
        );
        assert_eq!(
            refused.json["details"],
            json!({"name": name, "kind": "configmaps", "causes": [{
                "reason": "NamespaceTerminating",
                "message": "namespace n is being terminated",
                "field": "metadata.namespace",
            }]})
        );
    }
    let late = json!({"data": {"late": "yes"}});
    let m = format!("{N}/configmaps/m");
    assert_eq!(with(&server, "PATCH", &m, &late).await.code, 200);
    let again = delete(&server, N).await;
    assert_eq!(
        (again.code, again.revision()),
        (200, "3"),
        "nothing changes"
    );
    assert_eq!(
        with(&server, "POST", ALL, &namespace("n")).await.refusal(),
        "409 AlreadyExists: object is being deleted: namespaces \"n\" already exists"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_stays_until_its_other_finalizers_are_removed() {
    let mut seed = held(namespace("n"));
    seed["spec"] = json!({"finalizers": ["example.com/spec", "kubernetes"]});
    let server = builder().seed([seed]).build();
    delete(&server, N).await;
    let left = get(&server, N).await.json;
    assert_eq!(left["spec"]["finalizers"], json!(["example.com/spec"]));

    let mut body = namespace("n");
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    body["spec"] = json!({"finalizers": []});
    let finalized = with(&server, "PUT", &format!("{N}/finalize"), &body).await;
    assert_eq!((finalized.code, &finalized.json["spec"]), (200, &json!({})));
    let release = json!({"metadata": {"finalizers": null}});
    assert_eq!(with(&server, "PATCH", N, &release).await.code, 200);
    assert_eq!(get(&server, N).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn only_the_finalize_subresource_writes_spec_finalizers() {
    let server = builder().seed([namespace("n")]).build();
    let finalize = format!("{N}/finalize");
    let mut body = namespace("n");
    body["spec"] = json!({"finalizers": ["kubernetes", "example.com/x"]});
    body["status"] = json!({"phase": "Terminating"});
    let changed = with(&server, "PUT", &finalize, &body).await.json;
    assert_eq!(changed["spec"], body["spec"]);
    assert_eq!(changed["status"], json!({"phase": "Active"}));

    body["spec"] = json!({"finalizers": ["kubernetes", "bad"]});
    assert_eq!(
        with(&server, "PUT", &finalize, &body).await.refusal(),
        "422 Invalid: Namespace \"n\" is invalid: spec.finalizers[1]: Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified"
    );
    for method in ["GET", "DELETE"] {
        let request = request(method, &finalize).body(http_body_util::Full::default());
        let refused = send(&server, request.unwrap()).await;
        assert_eq!(
            (refused.code, &refused.json["reason"]),
            (405, &json!("MethodNotAllowed"))
        );
    }
    body["spec"] = json!({});
    with(&server, "PUT", &finalize, &body).await;
    assert_eq!(get(&server, N).await.code, 200, "it was not deleted");
    assert_eq!(delete(&server, N).await.code, 200);
    let left = get(&server, N).await.json;
    assert_eq!(
        left["status"]["phase"], "Terminating",
        "the first deletion removes nothing"
    );
    assert_eq!(delete(&server, N).await.code, 200);
    assert_eq!(get(&server, N).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_phase_of_a_namespace_follows_its_deletion() {
    let server = builder().seed([namespace("n"), held(map("m"))]).build();
    let status = format!("{N}/status");
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    assert_eq!(
        with(&server, "PATCH", &status, &phase("Terminating"))
            .await
            .refusal(),
        "422 Invalid: Namespace \"n\" is invalid: status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    );
    delete(&server, N).await;
    assert_eq!(
        with(&server, "PATCH", &status, &phase("Active"))
            .await
            .refusal(),
        "422 Invalid: Namespace \"n\" is invalid: status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_returns_the_terminating_namespace_and_changes_nothing() {
    let server = builder().seed([namespace("n"), map("m")]).build();
    let shown = delete(&server, &format!("{N}?dryRun=All")).await.json;
    assert_eq!(shown["status"]["phase"], "Terminating");
    assert_eq!(server.revision(), 2);
    assert_eq!(get(&server, N).await.json["status"]["phase"], "Active");
}

#[tokio::test(start_paused = true)]
async fn preconditions_of_a_namespace_have_their_own_messages() {
    let server = builder().seed([namespace("n")]).build();
    let uid = server.get("v1", "namespaces", "n").unwrap()["metadata"]["uid"].clone();
    let uid = uid.as_str().unwrap();
    for (precondition, why) in [
        (
            json!({"uid": "x"}),
            format!("UID in precondition: x, UID in object meta: {uid}"),
        ),
        (
            json!({"resourceVersion": "7"}),
            "ResourceVersion in precondition: 7, ResourceVersion in object meta: 1".to_owned(),
        ),
    ] {
        let options = json!({"preconditions": precondition});
        assert_eq!(
            with(&server, "DELETE", N, &options).await.refusal(),
            format!(
                "409 Conflict: Operation cannot be fulfilled on namespaces \"n\": Precondition failed: {why}"
            )
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_direct_deletion_empties_a_namespace_without_grace() {
    let server = builder().seed([namespace("n"), bound("a", 30)]).build();
    server.delete("v1", "namespaces", "n").unwrap();
    assert!(server.get("v1", "namespaces", "n").is_none());
    assert!(server.get("v1", "pods", "n/a").is_none());
}

#[tokio::test(start_paused = true)]
async fn some_system_namespaces_cannot_be_deleted() {
    let server = builder().build();
    for name in ["default", "kube-system", "kube-public"] {
        let reply = delete(&server, &format!("{ALL}/{name}")).await;
        assert_eq!(
            reply.refusal(),
            format!(
                "403 Forbidden: namespaces {name:?} is forbidden: this namespace may not be deleted"
            )
        );
    }
    assert_eq!(
        delete(&server, &format!("{ALL}/kube-node-lease"))
            .await
            .code,
        200
    );
}
