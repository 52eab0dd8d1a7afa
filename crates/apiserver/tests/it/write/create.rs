//! Tests how objects are created: the fields that the server sets, generated names, and rejected request
//! bodies.

use http_body_util::Full;
use kube_informer_apiserver::{Kind, Scope};
use serde_json::json;

use super::{A, PODS};
use crate::ask::{builder, get, pod, pods, request, send, with};

#[tokio::test(start_paused = true)]
async fn a_new_object_has_the_fields_that_the_server_sets() {
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
        "status is written through its subresource"
    );
    assert_eq!(get(&server, A).await.json, created.json);
}

#[tokio::test(start_paused = true)]
async fn a_new_object_starts_with_the_status_of_its_kind() {
    let server = builder().build();
    let volume =
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "direct"}});
    assert_eq!(
        server.create(volume).unwrap()["status"],
        json!({"phase": "Pending", "lastPhaseTransitionTime": "2027-01-15T08:00:00Z"})
    );
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
    ] {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("a")["spec"]});
        let spec = match path.rsplit('/').next().unwrap() {
            "services" => json!({"ports": [{"port": 80}]}),
            "persistentvolumes" => json!({
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/a"},
            }),
            "persistentvolumeclaims" => json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }),
            "deployments" | "replicasets" => {
                json!({"selector": {"matchLabels": {"a": "b"}}, "template": template})
            }
            _ => json!({}),
        };
        let body = json!({"metadata": {"name": "a"}, "spec": spec, "status": sent});
        let made = with(&server, "POST", path, &body).await;
        assert_eq!(
            (made.code, &made.json["status"]),
            (201, &expected),
            "{path}"
        );
    }
    let body = json!({"metadata": {"name": "a"}, "status": sent});
    let node = with(&server, "POST", "/api/v1/nodes", &body).await;
    assert_eq!(
        node.json["status"]["phase"], "Bound",
        "a kubelet creates its node with a status"
    );
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(kind).build();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let body = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "status": sent});
    let made = with(&server, "POST", widgets, &body).await;
    assert_eq!((made.code, made.json.get("status")), (201, None));
}

#[tokio::test(start_paused = true)]
async fn the_qos_class_of_a_pod_is_set() {
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
            .enumerate()
            .map(|(at, resources)| json!({"name": format!("c{at}"), "image": "i", "resources": resources}))
            .collect();
        let made = with(&server, "POST", PODS, &body).await;
        assert_eq!(made.json["status"]["qosClass"], expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn string_data_of_a_secret_is_stored_as_data() {
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
async fn equal_seeds_and_calls_produce_equal_bytes() {
    let list = async |seed: u64| {
        let server = builder().rng_seed(seed).seed([pod("a")]).build();
        with(
            &server,
            "POST",
            PODS,
            &json!({"metadata": {"generateName": "g-"}, "spec": pod("a")["spec"]}),
        )
        .await;
        get(&server, PODS).await.text
    };
    assert_eq!(list(7).await, list(7).await);
    assert_ne!(list(7).await, list(8).await);
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_has_58_characters_and_5_random_ones() {
    let server = builder().build();
    let body = json!({"metadata": {"generateName": "x".repeat(70)}, "spec": pod("a")["spec"]});
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
async fn invalid_creations_are_rejected_with_kubernetes_message() {
    let server = pods(&["a"]);
    let spec = pod("a")["spec"].clone();
    let named = |name: &str| json!({"metadata": {"name": name}, "spec": spec});
    for (body, expected) in [
        (named("a"), "409 AlreadyExists: pods \"a\" already exists"),
        (
            json!({"metadata": {"name": "b", "resourceVersion": "3"}, "spec": spec}),
            "500 -: resourceVersion should not be set on objects to be created",
        ),
        (
            json!({"metadata": {"name": "b", "namespace": "other"}}),
            "400 BadRequest: the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            json!({"metadata": {}, "spec": spec}),
            "422 Invalid: Pod \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            json!({"apiVersion": "v2", "metadata": {"name": "b"}}),
            "400 BadRequest: Pod in version \"v2\" cannot be handled as a Pod: no kind \"Pod\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!([]),
            r#"400 BadRequest: the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#,
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
async fn bodies_that_are_too_large_or_not_json_are_rejected() {
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
    let text = post("text/plain", b"kind: Pod".to_vec()).await;
    assert_eq!(
        text.refusal(),
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    assert_eq!(post("application/json", b"{".to_vec()).await.code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_custom_kind_in_place_of_a_built_in_one_is_not_admitted() {
    let kind = Kind::custom("", "v1", "Pod", "pods", Scope::Namespaced);
    let server = builder().kind(kind).build();
    let body =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}});
    let made = with(&server, "POST", PODS, &body).await;
    assert_eq!((made.code, &made.json["spec"]), (201, &json!({"x": 1})));
}
