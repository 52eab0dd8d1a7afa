//! Tests updates with PUT: conflicts, immutable fields, `metadata.generation`, and subresources.
//!
//! Also tests the kinds for which PUT creates a missing object.

use kube_informer_apiserver::{Kind, Rule, Scope};
use serde_json::{Value, json};

use super::A;
use crate::ask::{Watch, builder, get, pod, pods, with};

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1}})
}

#[tokio::test(start_paused = true)]
async fn an_update_with_a_stale_revision_is_a_conflict() {
    let server = pods(&["a"]);
    let stale = get(&server, A).await.json;
    server
        .patch("v1", "pods", "default/a", json!({"spec": {"x": 1}}))
        .unwrap();
    assert_eq!(
        with(&server, "PUT", A, &stale).await.refusal(),
        "409 Conflict: Operation cannot be fulfilled on pods \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let mut unconditional = stale;
    unconditional["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    assert_eq!(
        with(&server, "PUT", A, &unconditional).await.revision(),
        "3"
    );
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_and_leases_cannot_be_updated_without_a_revision() {
    let server = builder()
        .kind(Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced))
        .seed([
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "w"}}),
        ])
        .build();
    for (version, kind, plural) in [
        ("example.com/v1", "Widget", "widgets"),
        ("coordination.k8s.io/v1", "Lease", "leases"),
    ] {
        let reply = with(
            &server,
            "PUT",
            &format!("/apis/{version}/namespaces/default/{plural}/w"),
            &json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w"}}),
        )
        .await;
        assert_eq!(reply.code, 422);
        assert!(
            reply.message().ends_with(
                "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            ),
            "{}",
            reply.message()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_without_a_change_has_no_revision_and_no_event() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, "/api/v1/pods?watch=1&resourceVersion=1").await;
    let same = get(&server, A).await.json;
    let updated = with(&server, "PUT", A, &same).await;
    assert_eq!((updated.code, updated.json), (200, same));
    assert_eq!(with(&server, "PATCH", A, &json!({})).await.revision(), "1");
    assert_eq!((watch.trace().await.as_str(), server.revision()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn immutable_metadata_is_kept_or_its_change_rejected() {
    let server = pods(&["a"]);
    let before = get(&server, A).await.json;
    let protected = json!({"metadata": {
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "generation": 99,
        "annotations": {"a": "b"},
    }});
    let after = with(&server, "PATCH", A, &protected).await.json;
    for member in [
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "uid",
    ] {
        assert_eq!(
            after["metadata"][member], before["metadata"][member],
            "{member}"
        );
    }
    for (member, value) in [
        ("uid", json!("other")),
        ("deletionTimestamp", json!("2000-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(3)),
    ] {
        let mut patch = json!({"metadata": {}});
        patch["metadata"][member] = value.clone();
        assert_eq!(
            with(&server, "PATCH", A, &patch).await.refusal(),
            format!(
                "422 Invalid: Pod \"a\" is invalid: metadata.{member}: Invalid value: {value}: field is immutable"
            )
        );
    }
    let mut other = after.clone();
    other["metadata"]["uid"] = json!("other");
    assert_eq!(
        with(&server, "PUT", A, &other).await.json["reason"],
        "Conflict",
        "the uid of a PUT is a precondition"
    );
    let mut renamed = after;
    renamed["metadata"]["name"] = json!("b");
    assert_eq!(
        with(&server, "PUT", A, &renamed).await.refusal(),
        "400 BadRequest: the name of the object (b) does not match the name on the URL (a)"
    );
}

#[tokio::test(start_paused = true)]
async fn the_generation_counts_changes_of_spec_and_annotations() {
    let server = builder().seed([deployment()]).build();
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let mut generations = Vec::new();
    for (path, patch) in [
        (path.to_owned(), json!({"metadata": {"labels": {"a": "b"}}})),
        (path.to_owned(), json!({"spec": {"replicas": 2}})),
        (format!("{path}/status"), json!({"status": {"replicas": 2}})),
        (
            path.to_owned(),
            json!({"metadata": {"annotations": {"a": "b"}}}),
        ),
    ] {
        generations.push(
            with(&server, "PATCH", &path, &patch).await.json["metadata"]["generation"].clone(),
        );
    }
    assert_eq!(generations, [1, 2, 2, 3]);
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    assert!(
        server.create(config).unwrap()["metadata"]
            .get("generation")
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn status_is_written_only_through_its_subresource() {
    let server = builder().seed([deployment()]).build();
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let mut both = get(&server, path).await.json;
    both["spec"]["replicas"] = json!(5);
    both["status"] = json!({"replicas": 5});
    let status = with(&server, "PUT", &format!("{path}/status"), &both)
        .await
        .json;
    assert_eq!(
        (&status["spec"]["replicas"], &status["status"]["replicas"]),
        (&json!(1), &json!(5))
    );
    both["metadata"]["resourceVersion"] = status["metadata"]["resourceVersion"].clone();
    both["status"]["replicas"] = json!(9);
    let main = with(&server, "PUT", path, &both).await.json;
    assert_eq!(
        (&main["spec"]["replicas"], &main["status"]["replicas"]),
        (&json!(5), &json!(5))
    );
    assert_eq!(get(&server, &format!("{path}/status")).await.json, main);
    assert_eq!(
        with(&server, "PUT", &format!("{path}/nothing"), &both)
            .await
            .code,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn replicas_are_written_through_the_scale_subresource() {
    let mut seed = deployment();
    seed["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    let server = builder().seed([seed]).build();
    let path = "/apis/apps/v1/namespaces/default/deployments/d";
    let scale = get(&server, &format!("{path}/scale")).await.json;
    assert_eq!(scale["spec"], json!({"replicas": 1}));
    assert_eq!(
        scale["status"],
        json!({"replicas": 0, "selector": "app=web"})
    );
    let three = json!({"spec": {"replicas": 3}});
    let patched = with(&server, "PATCH", &format!("{path}/scale"), &three).await;
    assert_eq!(
        (patched.revision(), &patched.json["kind"]),
        ("2", &json!("Scale"))
    );
    let stored = get(&server, path).await.json;
    assert_eq!(
        (
            &stored["spec"]["replicas"],
            &stored["metadata"]["generation"]
        ),
        (&json!(3), &json!(2))
    );
    assert_eq!(
        with(&server, "PUT", &format!("{path}/scale"), &scale)
            .await
            .code,
        409,
        "its revision is stale"
    );
    let negative = json!({"spec": {"replicas": -1}});
    assert_eq!(
        with(&server, "PATCH", &format!("{path}/scale"), &negative)
            .await
            .code,
        422
    );
    let many = json!({"spec": {"replicas": 3_000_000_000_u32}});
    let rejected = with(&server, "PATCH", &format!("{path}/scale"), &many).await;
    assert_eq!(rejected.code, 422);
    let message = rejected.json["message"].as_str().unwrap();
    assert!(
        message.ends_with("into Go struct field ScaleSpec.spec.replicas of type int32"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_put_creates_leases_and_other_kinds_that_allow_it() {
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let server = builder().build();
    let body = json!({"metadata": {"name": "l", "resourceVersion": "77"}, "spec": {"holderIdentity": "me"}});
    let dry = with(&server, "PUT", &format!("{LEASE}?dryRun=All"), &body).await;
    assert_eq!((dry.code, server.revision()), (201, 1));
    let mut precondition = body.clone();
    precondition["metadata"]["uid"] = json!("x");
    assert_eq!(
        with(&server, "PUT", LEASE, &precondition).await.refusal(),
        "409 Conflict: Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": StorageError: invalid object, Code: 4, Key: /registry/leases/default/l, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: "
    );
    let unreadable = json!({"metadata": {"name": "l", "resourceVersion": "x"}});
    assert_eq!(
        with(&server, "PUT", LEASE, &unreadable).await.message(),
        "strconv.ParseUint: parsing \"x\": invalid syntax"
    );
    let nameless = json!({"metadata": {"generateName": "l"}});
    assert_eq!(
        with(&server, "PUT", LEASE, &nameless).await.refusal(),
        "400 BadRequest: the name of the object (l based on URL) was undeterminable: name must be provided"
    );
    let made = with(&server, "PUT", LEASE, &body).await;
    assert_eq!((made.code, made.revision()), (201, "2"));
    assert!(made.json["metadata"]["uid"].is_string());
    assert_eq!(
        with(&server, "PUT", LEASE, &body).await.json["reason"],
        "Conflict",
        "the second PUT is an update"
    );
    let unconditional = json!({"metadata": {"name": "l"}});
    assert_eq!(
        with(&server, "PUT", LEASE, &unconditional).await.refusal(),
        "422 Invalid: leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    assert_eq!(with(&server, "PUT", A, &pod("a")).await.code, 404);
    let elsewhere = with(&server, "PUT", A, &pod("b")).await;
    assert_eq!(elsewhere.code, 400, "the name is checked first");
}

#[tokio::test(start_paused = true)]
async fn a_put_that_creates_requires_permission_to_create() {
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let updates = Rule::allow(["update"], ["leases.coordination.k8s.io"]);
    let server = builder().rules([updates]).build();
    let body = json!({"metadata": {"name": "l"}});
    assert_eq!(
        with(&server, "PUT", LEASE, &body).await.refusal(),
        "403 Forbidden: leases.coordination.k8s.io \"l\" is forbidden: User \"system:anonymous\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_object_of_a_direct_call_can_be_changed() {
    let container = json!({"name": "c", "unknown": 1});
    let template = json!({"spec": {"containers": [container], "restartPolicy": "Never"}});
    let metadata = json!({"namespace": "default", "name": "a"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"template": template}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {"selector": selector, "manualSelector": true, "template": template}});
    let server = builder().seed([deployment, job]).build();
    let path = "/apis/apps/v1/namespaces/default/deployments/a";
    let sidecar = json!({"name": "s", "image": "i"});
    let added = json!({"metadata": {"labels": {"x": "y"}},
        "spec": {"template": {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [sidecar, {"name": "c"}]}}}});
    let changed = with(&server, "PATCH", path, &added).await;
    assert_eq!(changed.code, 200, "{}", changed.json);
    let negative = with(&server, "PATCH", path, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(
        negative.json["message"],
        "Deployment.apps \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    let path = "/apis/batch/v1/namespaces/default/jobs/a";
    let labels = json!({"metadata": {"labels": {"x": "y"}}});
    let changed = with(&server, "PATCH", path, &labels).await;
    assert_eq!(changed.code, 200, "{}", changed.json);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_has_no_field_of_a_disabled_feature() {
    let server = builder().build();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("p")["spec"]});
    let claim = json!({"metadata": {"name": "d"}});
    let set = json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template, "volumeClaimTemplates": [claim, claim],
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}},
    }});
    let path = "/apis/apps/v1/namespaces/default/statefulsets";
    let made = with(&server, "POST", path, &set).await;
    assert_eq!(made.code, 201, "{}", made.json);
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    assert_eq!(made.json["spec"]["updateStrategy"], strategy);
}
