//! Tests garbage collection: deletions of owners with each policy, and objects whose owners are missing.

use std::collections::BTreeSet;

use expect_test::expect;
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::ask::{Watch, builder, delete, get, pod, with};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn collecting() -> Server {
    builder().garbage_collection(true).build()
}

/// Returns an owner reference to a stored `ConfigMap`, which blocks the deletion of its owner.
fn owned_by(server: &Server, name: &str) -> Value {
    let owner = server.get("v1", "configmaps", &format!("default/{name}"));
    let uid = owner.unwrap()["metadata"]["uid"].clone();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
}

fn map(name: &str, owners: &[Value]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
    })
}

/// Creates `ConfigMaps`, each of which is owned by the one before it.
async fn chain(server: &Server, names: &[&str]) {
    let mut owners = Vec::new();
    for name in names {
        let reply = with(server, "POST", MAPS, &map(name, &owners)).await;
        assert_eq!(reply.code, 201, "{}", reply.message());
        owners = vec![owned_by(server, name)];
    }
}

/// Returns the names of the `ConfigMaps`, with the names of their owners and a mark if they are being deleted.
fn maps(server: &Server) -> String {
    let found = server.list("v1", "configmaps");
    let shown = found.iter().map(|map| {
        let metadata = &map["metadata"];
        let mark = if metadata["deletionTimestamp"].is_null() {
            ""
        } else {
            "†"
        };
        let owners = metadata["ownerReferences"].as_array();
        let owners = owners.into_iter().flatten();
        let owners: Vec<_> = owners.filter_map(|it| it["name"].as_str()).collect();
        let name = metadata["name"].as_str().unwrap();
        format!("{name}{mark}({})", owners.join(","))
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_background_deletion_removes_the_owner_first() {
    let server = collecting();
    chain(&server, &["a", "b", "c"]).await;
    let watch = format!("{MAPS}?watch=1&resourceVersion={}", server.revision());
    let mut watch = Watch::open(&server, &watch).await;
    let reply = delete(&server, &format!("{MAPS}/a?propagationPolicy=Background")).await;
    assert_eq!(reply.code, 200);
    assert_eq!(maps(&server), "");
    expect![[r"
        DELETED a 5
        DELETED b 6
        DELETED c 7
    "]]
    .assert_eq(&watch.trace().await);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_removes_the_owner_last() {
    let server = collecting();
    chain(&server, &["a", "b", "c"]).await;
    let watch = format!("{MAPS}?watch=1&resourceVersion={}", server.revision());
    let mut watch = Watch::open(&server, &watch).await;
    let reply = delete(&server, &format!("{MAPS}/a?propagationPolicy=Foreground")).await;
    assert_eq!(
        reply.json["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    assert_eq!(maps(&server), "");
    expect![[r"
        MODIFIED a 5
        MODIFIED b 6
        DELETED c 7
        DELETED b 8
        DELETED a 9
    "]]
    .assert_eq(&watch.trace().await);
}

#[tokio::test(start_paused = true)]
async fn an_orphaning_deletion_keeps_the_dependents() {
    let server = collecting();
    chain(&server, &["a", "b", "c"]).await;
    delete(&server, &format!("{MAPS}/a?propagationPolicy=Orphan")).await;
    assert_eq!(maps(&server), "b() c(b)");
}

#[tokio::test(start_paused = true)]
async fn without_garbage_collection_dependents_stay() {
    let server = builder().build();
    chain(&server, &["a", "b"]).await;
    delete(&server, &format!("{MAPS}/a?propagationPolicy=Background")).await;
    assert_eq!(maps(&server), "b(a)");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_delays_a_foreground_deletion_until_it_is_removed() {
    let server = collecting();
    chain(&server, &["a", "b", "c"]).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/x"]}});
    with(&server, "PATCH", &format!("{MAPS}/c"), &hold).await;
    delete(&server, &format!("{MAPS}/a?propagationPolicy=Foreground")).await;
    assert_eq!(maps(&server), "a†() b†(a) c†(b)");
    let release = json!({"metadata": {"finalizers": null}});
    with(&server, "PATCH", &format!("{MAPS}/c"), &release).await;
    assert_eq!(maps(&server), "");
}

#[tokio::test(start_paused = true)]
async fn pods_on_nodes_have_their_grace_period() {
    let server = collecting();
    chain(&server, &["a"]).await;
    let mut on_node = pod("p");
    on_node["spec"]["nodeName"] = json!("n");
    on_node["metadata"]["ownerReferences"] = json!([owned_by(&server, "a")]);
    server.create(on_node).unwrap();
    delete(&server, &format!("{MAPS}/a?propagationPolicy=Foreground")).await;
    assert_eq!(maps(&server), "a†()");
    let path = "/api/v1/namespaces/default/pods/p";
    assert_eq!(
        get(&server, path).await.json["metadata"]["deletionGracePeriodSeconds"],
        30
    );
    delete(&server, &format!("{path}?gracePeriodSeconds=0")).await;
    assert_eq!(maps(&server), "");
}

#[test]
fn direct_calls_collect_garbage_without_a_runtime() {
    let server = collecting();
    server.create(map("a", &[])).unwrap();
    server.create(map("b", &[owned_by(&server, "a")])).unwrap();
    let mut late = owned_by(&server, "a");
    late["uid"] = json!("another");
    server.create(map("late", &[late])).unwrap();
    assert_eq!(
        maps(&server),
        "a() b(a)",
        "the owner of late has another uid"
    );
    server.delete("v1", "configmaps", "default/a").unwrap();
    assert_eq!(maps(&server), "");
}

#[test]
fn seeds_with_missing_owners_are_collected() {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"});
    let garbage = map("owned", &[owner]);
    let server = builder().seed([garbage.clone(), map("kept", &[])]);
    let server = server.garbage_collection(true).build();
    assert_eq!((maps(&server).as_str(), server.revision()), ("kept()", 3));
    let server = builder().seed([garbage]).build();
    assert_eq!(maps(&server), "owned(x)");
}

#[tokio::test(start_paused = true)]
async fn a_job_orphans_its_pods_by_default() {
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    let path = "/apis/batch/v1/namespaces/default/jobs/j";
    for (collects, policy, jobs, pods) in [
        (true, "", 0, 1),
        (true, "?propagationPolicy=Background", 0, 0),
        (false, "", 0, 1),
    ] {
        let server = builder().garbage_collection(collects).build();
        let job = server.create(job.clone()).unwrap();
        let mut owned = pod("p");
        owned["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]},
        ]);
        server.create(owned).unwrap();
        let reply = delete(&server, &format!("{path}{policy}")).await;
        let left = [("batch/v1", "jobs"), ("v1", "pods")];
        let left = left.map(|(version, plural)| server.list(version, plural).len());
        assert_eq!(left, [jobs, pods], "{collects} {policy}");
        let warns = reply.headers.contains_key("warning");
        assert_eq!(warns, collects && policy.is_empty(), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_have_no_propagation_policy() {
    let server = collecting();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"namespace": "default"},
    });
    server.create(event).unwrap();
    let path = "/api/v1/namespaces/default/events/e";
    delete(&server, &format!("{path}?propagationPolicy=Orphan")).await;
    assert_eq!(get(&server, path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_is_reported() {
    let server = collecting();
    chain(&server, &["owner"]).await;
    let mut owned = map("owned", &[owned_by(&server, "owner")]);
    owned["metadata"]["namespace"] = json!("kube-public");
    let uid = owned["metadata"]["ownerReferences"][0]["uid"].clone();
    server.create(owned).unwrap();
    assert_eq!(maps(&server), "owner()");
    let events = server.list("v1", "events");
    let [event] = events.as_slice() else {
        panic!("one event: {events:?}");
    };
    let uid = uid.as_str().unwrap();
    assert_eq!(event["reason"], "OwnerRefInvalidNamespace");
    assert_eq!(event["metadata"]["namespace"], "kube-public");
    assert_eq!(
        event["message"],
        format!(
            "ownerRef [v1/ConfigMap, namespace: kube-public, name: owner, uid: {uid}] does not exist in namespace \"kube-public\""
        )
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_created_after_its_dependent_is_known() {
    let server = collecting();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "owned", "ownerReferences": [reference]},
    });
    server.create(role).unwrap();
    assert!(server.list("v1", "events").is_empty());
    let mut owner = map("owner", &[]);
    owner["metadata"]["uid"] = json!("u");
    server.create(owner).unwrap();
    let events = server.list("v1", "events");
    let reasons: Vec<&Value> = events.iter().map(|event| &event["reason"]).collect();
    assert_eq!(reasons, ["OwnerRefInvalidNamespace"]);
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_a_deleted_definition_leave_no_dependents() {
    let server = collecting();
    server.create(definition("example.com")).unwrap();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}});
    let widget = server.create(widget).unwrap();
    let reference = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": widget["metadata"]["uid"]});
    server.create(map("owned", &[reference])).unwrap();
    assert_eq!(maps(&server), "owned(w)");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    delete(&server, path).await;
    assert_eq!(maps(&server), "");
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_an_unknown_kind_is_looked_up_when_the_kind_is_served() {
    let server = collecting();
    let reference =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "w"});
    server.create(map("owned", &[reference])).unwrap();
    assert_eq!(maps(&server), "owned(w)");
    server.create(definition("example.com")).unwrap();
    assert_eq!(maps(&server), "");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_emptied_when_the_last_finalizer_is_removed() {
    let server = collecting();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    server.create(namespace).unwrap();
    let mut a = map("a", &[]);
    a["metadata"]["namespace"] = json!("n");
    a["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    let a = server.create(a).unwrap();
    let mut b = map("b", &[]);
    b["metadata"]["namespace"] = json!("n");
    b["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": a["metadata"]["uid"], "blockOwnerDeletion": true},
    ]);
    server.create(b).unwrap();
    delete(&server, "/api/v1/namespaces/n").await;
    assert_eq!(server.get("v1", "namespaces", "n"), None);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_still_leaves_no_garbage() {
    let server = collecting();
    chain(&server, &["a"]).await;
    let owner = owned_by(&server, "a");
    let maps_of_a = (0..1_000).map(|nth| map(&format!("m{nth}"), std::slice::from_ref(&owner)));
    server.create_all(maps_of_a).await.unwrap();
    let uri = format!("{MAPS}/a");
    let request = delete(&server, &uri);
    // The first step of the collection deletes 250 objects.
    let dropped = tokio::time::timeout(std::time::Duration::ZERO, request).await;
    assert!(dropped.is_err(), "the request is dropped before its end");
    assert_eq!(maps(&server), "");
}

#[tokio::test(start_paused = true)]
async fn watchers_with_small_buffers_see_every_deletion() {
    let server = builder().garbage_collection(true).watcher_buffer(20);
    let server = server.build();
    chain(&server, &["a"]).await;
    let owner = owned_by(&server, "a");
    let maps_of_a = (0..500).map(|nth| map(&format!("m{nth}"), std::slice::from_ref(&owner)));
    server.create_all(maps_of_a).await.unwrap();
    let watch = format!("{MAPS}?watch=1&resourceVersion={}", server.revision());
    let mut watch = Watch::open(&server, &watch).await;
    let uri = format!("{MAPS}/a");
    let (_, trace) = tokio::join!(delete(&server, &uri), watch.trace());
    let names: BTreeSet<&str> = trace
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(names.len(), 501, "{trace}");
}

#[test]
fn a_restored_store_is_collected_from_its_own_objects() {
    let server = collecting();
    server.create(map("a", &[])).unwrap();
    server.create(map("b", &[owned_by(&server, "a")])).unwrap();
    let revision = server.revision();
    server.delete("v1", "configmaps", "default/a").unwrap();
    assert_eq!(maps(&server), "");
    server.faults().restart_at(revision).unwrap();
    assert_eq!(maps(&server), "a() b(a)");
    server.delete("v1", "configmaps", "default/a").unwrap();
    assert_eq!(maps(&server), "");
}

#[cfg(feature = "persistence")]
mod persistent {
    use super::*;
    use crate::persistence::scratch;

    #[tokio::test]
    async fn a_foreground_deletion_continues_after_a_restart() {
        let directory = scratch("garbage-foreground");
        let open = || builder().garbage_collection(true).open(&directory).unwrap();
        let server = open();
        chain(&server, &["a", "b", "c"]).await;
        let hold = json!({"metadata": {"finalizers": ["example.com/x"]}});
        with(&server, "PATCH", &format!("{MAPS}/c"), &hold).await;
        delete(&server, &format!("{MAPS}/a?propagationPolicy=Foreground")).await;
        drop(server);
        let server = open();
        assert_eq!(maps(&server), "a†() b†(a) c†(b)");
        let release = json!({"metadata": {"finalizers": null}});
        with(&server, "PATCH", &format!("{MAPS}/c"), &release).await;
        assert_eq!(maps(&server), "");
    }

    #[tokio::test]
    async fn a_start_collects_what_a_server_without_garbage_collection_left() {
        let directory = scratch("garbage-left");
        let server = builder().open(&directory).unwrap();
        chain(&server, &["a", "b", "c", "d", "e"]).await;
        delete(&server, &format!("{MAPS}/d?propagationPolicy=Orphan")).await;
        delete(&server, &format!("{MAPS}/a?propagationPolicy=Foreground")).await;
        assert_eq!(maps(&server), "a†() b(a) c(b) d†(c) e(d)");
        drop(server);
        let server = builder().garbage_collection(true).open(&directory).unwrap();
        assert_eq!(maps(&server), "e()");
    }
}
