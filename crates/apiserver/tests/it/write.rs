//! Create, update, patch, status and binding.

use http_body_util::Full;
use serde_json::{Value, json};

use kube_informer_apiserver::{Kind, Rule, Scope, Server};

use crate::ask::{Watch, builder, get, pod, pods, request, send, with};

const PODS: &str = "/api/v1/namespaces/default/pods";
const A: &str = "/api/v1/namespaces/default/pods/a";

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1}})
}

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_what_the_server_sets() {
    let server = builder().build();
    let mut body = pod("a");
    body["metadata"]["uid"] = json!("mine");
    body["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
    body["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
    body["metadata"]["deletionGracePeriodSeconds"] = json!(5);
    body["status"] = json!({"phase": "Running"});
    let created = with(&server, "POST", PODS, &body).await;
    assert_eq!(created.code, 201);
    let metadata = &created.json["metadata"];
    assert_eq!(metadata["creationTimestamp"], "2027-01-15T08:00:00Z");
    assert!(metadata.get("deletionTimestamp").is_none());
    assert!(metadata.get("deletionGracePeriodSeconds").is_none());
    assert_eq!(
        (&metadata["generation"], &metadata["resourceVersion"]),
        (&json!(1), &json!("2"))
    );
    let uid = metadata["uid"].as_str().unwrap();
    assert_eq!((uid.len(), &uid[14..15]), (36, "4"), "{uid}");
    assert_eq!(
        created.json["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "status has its own door"
    );
    assert_eq!(get(&server, A).await.json, created.json);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_starts_with_the_status_of_its_kind() {
    let server = builder().build();
    let sent = json!({"phase": "Bound", "replicas": 7});
    for (path, expected) in [
        (
            "/api/v1/persistentvolumes",
            json!({"phase": "Pending", "lastPhaseTransitionTime": "2027-01-15T08:00:00Z"}),
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"phase": "Pending"}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"loadBalancer": {}}),
        ),
        ("/apis/apps/v1/namespaces/default/deployments", json!({})),
        (
            "/apis/apps/v1/namespaces/default/replicasets",
            json!({"replicas": 0}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}),
        ),
        ("/api/v1/nodes", json!({"phase": "Bound"})),
    ] {
        let body = json!({"metadata": {"name": "a"}, "status": sent});
        let made = with(&server, "POST", path, &body).await;
        assert_eq!(
            (made.code, &made.json["status"]),
            (201, &expected),
            "{path}"
        );
    }
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(kind).build();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let body = json!({"metadata": {"name": "a"}, "status": sent});
    let made = with(&server, "POST", widgets, &body).await;
    assert_eq!((made.code, made.json.get("status")), (201, None));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_told_its_quality_of_service() {
    let server = builder().build();
    let all = json!({"cpu": "1", "memory": "1Gi"});
    for (name, containers, expected) in [
        ("none", json!([{}]), "BestEffort"),
        ("limits", json!([{"limits": all}]), "Guaranteed"),
        (
            "both",
            json!([{"limits": all, "requests": all}]),
            "Guaranteed",
        ),
        ("half", json!([{"limits": {"cpu": "1"}}]), "Burstable"),
        ("one", json!([{"limits": all}, {}]), "Burstable"),
        (
            "less",
            json!([{"limits": all, "requests": {"cpu": "100m"}}]),
            "Burstable",
        ),
        (
            "disk",
            json!([{"requests": {"ephemeral-storage": "1Gi"}}]),
            "BestEffort",
        ),
    ] {
        let mut body = pod(name);
        let containers = containers.as_array().unwrap().iter();
        body["spec"]["containers"] = containers
            .map(|resources| json!({"name": "c", "resources": resources}))
            .collect();
        let made = with(&server, "POST", PODS, &body).await;
        assert_eq!(made.json["status"]["qosClass"], expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_texts_of_a_secret_are_stored_as_data() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let server = builder().build();
    let body = json!({"metadata": {"name": "s"}, "data": {"a": "eA==", "b": "eA=="}, "stringData": {"b": "y"}});
    let made = with(&server, "POST", SECRETS, &body).await.json;
    assert_eq!(made["data"], json!({"a": "eA==", "b": "eQ=="}));
    assert_eq!(
        (made.get("stringData"), &made["type"]),
        (None, &json!("Opaque"))
    );
    let patch = json!({"stringData": {"c": "z"}});
    let patched = with(&server, "PATCH", &format!("{SECRETS}/s"), &patch)
        .await
        .json;
    assert_eq!(
        patched["data"],
        json!({"a": "eA==", "b": "eQ==", "c": "eg=="})
    );
    assert_eq!(patched.get("stringData"), None);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_calls_give_the_same_bytes() {
    let list = async |seed: u64| {
        let server = builder().rng_seed(seed).seed([pod("a")]).build();
        with(
            &server,
            "POST",
            PODS,
            &json!({"metadata": {"generateName": "g-"}}),
        )
        .await;
        get(&server, PODS).await.text
    };
    assert_eq!(list(7).await, list(7).await);
    assert_ne!(list(7).await, list(8).await);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_generated_from_58_characters_and_5_random_ones() {
    let server = builder().build();
    let body = json!({"metadata": {"generateName": "x".repeat(70)}});
    let created = with(&server, "POST", PODS, &body).await;
    let name = created.json["metadata"]["name"].as_str().unwrap();
    let (base, suffix) = name.split_at(58);
    assert_eq!(base, "x".repeat(58));
    assert_eq!(suffix.len(), 5);
    assert!(
        suffix
            .chars()
            .all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)),
        "{suffix}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_created_is_refused_with_kubernetes_words() {
    let server = pods(&["a"]);
    let named = |name: &str| json!({"metadata": {"name": name}});
    for (body, expected) in [
        (named("a"), "409 AlreadyExists: pods \"a\" already exists"),
        (
            json!({"metadata": {"name": "b", "resourceVersion": "3"}}),
            "500 -: resourceVersion should not be set on objects to be created",
        ),
        (
            json!({"metadata": {"name": "b", "namespace": "other"}}),
            "400 BadRequest: the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            json!({"metadata": {}}),
            "422 Invalid: Pod \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            json!({"apiVersion": "v2", "metadata": {"name": "b"}}),
            "400 BadRequest: Pod in version \"v2\" cannot be handled as a Pod: no kind \"Pod\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!([]),
            "400 BadRequest: the object provided is unrecognized (must be of type Pod)",
        ),
    ] {
        assert_eq!(with(&server, "POST", PODS, &body).await.refusal(), expected);
    }
    for body in [
        named("A"),
        named("a/b"),
        named("-a"),
        named(".."),
        json!({"metadata": {"name": "b", "labels": {"x": 1}}}),
    ] {
        let code = with(&server, "POST", PODS, &body).await.code;
        assert!(code == 422 || code == 400, "{body}: {code}");
    }
    assert_eq!(
        with(&server, "POST", "/api/v1/pods", &named("b"))
            .await
            .code,
        405
    );
    assert_eq!(server.revision(), 1, "nothing was stored");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_too_large_or_not_json_are_refused() {
    let server = builder().build();
    let post = async |content_type: &str, body: Vec<u8>| {
        let request = request("POST", PODS).header("content-type", content_type);
        send(&server, request.body(Full::from(body)).unwrap()).await
    };
    let large = post("application/json", vec![b' '; 3 * 1024 * 1024 + 1]).await;
    assert_eq!(
        (large.code, large.json["reason"].as_str()),
        (413, Some("RequestEntityTooLarge"))
    );
    let yaml = post("application/yaml", b"kind: Pod".to_vec()).await;
    assert_eq!(
        yaml.refusal(),
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf"
    );
    assert_eq!(post("application/json", b"{".to_vec()).await.code, 400);
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
    for path in [
        "example.com/v1/namespaces/default/widgets",
        "coordination.k8s.io/v1/namespaces/default/leases",
    ] {
        let reply = with(
            &server,
            "PUT",
            &format!("/apis/{path}/w"),
            &json!({"metadata": {"name": "w"}}),
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
async fn an_update_of_nothing_is_no_revision_and_no_event() {
    let server = pods(&["a"]);
    let mut watch = Watch::open(&server, "/api/v1/pods?watch=1&resourceVersion=1").await;
    let same = get(&server, A).await.json;
    let updated = with(&server, "PUT", A, &same).await;
    assert_eq!((updated.code, updated.json), (200, same));
    assert_eq!(with(&server, "PATCH", A, &json!({})).await.revision(), "1");
    assert_eq!((watch.trace().await.as_str(), server.revision()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_may_change_stays() {
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
        "in a PUT it is a precondition"
    );
    let mut renamed = after;
    renamed["metadata"]["name"] = json!("b");
    assert_eq!(
        with(&server, "PUT", A, &renamed).await.refusal(),
        "400 BadRequest: the name of the object (b) does not match the name on the URL (a)"
    );
}

#[tokio::test(start_paused = true)]
async fn the_generation_counts_changes_of_what_is_desired() {
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
async fn status_and_the_rest_are_written_through_different_doors() {
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
async fn replicas_can_be_written_through_a_scale() {
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
        "it is stale"
    );
    let negative = json!({"spec": {"replicas": -1}});
    assert_eq!(
        with(&server, "PATCH", &format!("{path}/scale"), &negative)
            .await
            .code,
        422
    );
}

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
async fn a_json_patch_may_test_for_null_what_is_not_there() {
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
        "now there is one"
    );
    for (path, value) in [("/metadata/x/y", json!(null)), ("/metadata/x", json!("y"))] {
        let patch = json!([{"op": "test", "path": path, "value": value}]);
        assert_eq!(with(&server, "PATCH", A, &patch).await.code, 422, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_would_grow_without_bound_is_refused() {
    let server = pods(&["a"]);
    let mut patch = vec![json!({"op": "add", "path": "/spec/x", "value": ["x".repeat(1000)]})];
    patch.extend((0..30).map(|_| json!({"op": "copy", "from": "/spec/x", "path": "/spec/x/-"})));
    assert_eq!(
        with(&server, "PATCH", A, &Value::Array(patch)).await.code,
        413
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
async fn patches_of_other_types_say_which_there_are() {
    let server = pods(&["a"]);
    let patch = request("PATCH", A).header("content-type", "application/apply-patch+yaml");
    let reply = send(&server, patch.body(Full::from("{}")).unwrap()).await;
    assert_eq!(reply.code, 415);
    assert!(
        reply
            .message()
            .ends_with("application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json")
    );
    let patch = request("PATCH", A).header("content-type", "application/json");
    let reply = send(&server, patch.body(Full::from("{}")).unwrap()).await;
    assert_eq!(
        reply.refusal(),
        "415 UnsupportedMediaType: 415: Unsupported Media Type"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_patch_breaks_is_the_patchs_fault() {
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
        "cannot unmarshal into Go struct field ObjectMeta.metadata.labels of type map[string]string"
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

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once_and_never_moved() {
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
    let nowhere = with(&server, "POST", &path, &json!({"target": {}})).await;
    assert_eq!(nowhere.code, 422);
    let missing = with(&server, "POST", &format!("{PODS}/b/binding"), &bind).await;
    assert_eq!(missing.refusal(), "404 NotFound: pods \"b\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_stores_nothing() {
    let server = pods(&["a"]);
    let created = with(&server, "POST", &format!("{PODS}?dryRun=All"), &pod("b")).await;
    assert_eq!((created.code, created.revision()), (201, ""));
    let patched = with(
        &server,
        "PATCH",
        &format!("{A}?dryRun=All"),
        &json!({"spec": {"priority": 1}}),
    )
    .await;
    assert_eq!(patched.json["spec"]["priority"], 1);
    let deleted = crate::ask::delete(&server, &format!("{A}?dryRun=All")).await;
    assert_eq!(deleted.code, 200);
    assert_eq!((server.revision(), server.list("v1", "pods").len()), (1, 1));
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
        "now it is an update"
    );
    let unconditional = json!({"metadata": {"name": "l"}});
    assert_eq!(
        with(&server, "PUT", LEASE, &unconditional).await.refusal(),
        "422 Invalid: leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    assert_eq!(with(&server, "PUT", A, &pod("a")).await.code, 404);
    let elsewhere = with(&server, "PUT", A, &pod("b")).await;
    assert_eq!(elsewhere.code, 400, "the name is looked at first");
}

#[tokio::test(start_paused = true)]
async fn who_may_only_update_creates_nothing_by_it() {
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let updates = Rule::allow(["update"], ["leases.coordination.k8s.io"]);
    let server = builder().rules([updates]).build();
    let body = json!({"metadata": {"name": "l"}});
    assert_eq!(
        with(&server, "PUT", LEASE, &body).await.refusal(),
        "403 Forbidden: leases.coordination.k8s.io \"l\" is forbidden: User \"system:anonymous\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
}

/// A patch of config map `m` and a new `n` with this metadata are refused.
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
async fn owners_and_finalizers_that_cannot_be_are_refused_by_every_write() {
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
async fn metadata_that_is_not_well_formed_is_refused_by_every_write() {
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
        "case does not matter here"
    );
    // A dash at the end is looked past until the name is whole.
    let generated = json!({"metadata": {"generateName": "A-"}});
    let refusal = with(&server, "POST", MAPS, &generated).await.refusal();
    let name = "is invalid: metadata.name: Invalid value: \"A-";
    assert!(refusal.contains(name), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_custom_kinds_need_no_domain() {
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(kind).build();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["hold"]}});
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(with(&server, "POST", path, &widget).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn options_of_writes_are_judged_together() {
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
async fn a_subresource_that_is_not_served_says_first_whether_the_object_exists() {
    let server = pods(&["a"]);
    assert_eq!(get(&server, &format!("{A}/log")).await.code, 501);
    assert_eq!(
        get(&server, &format!("{PODS}/b/log")).await.refusal(),
        "404 NotFound: pods \"b\" not found"
    );
}
