//! Tests the objects that a new server contains.
//!
//! Also tests that objects can be created only in an existing namespace.

use serde_json::{Value, json};

use kube_informer_apiserver::Server;

use crate::ask::{Watch, builder, delete, get, pod, with};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/new/pods";

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns the object `default/kubernetes` of `plural` without its name, namespace, uid, creation time and
/// generation.
fn kubernetes(server: &Server, api_version: &str, plural: &str) -> Value {
    let mut object = server
        .get(api_version, plural, "default/kubernetes")
        .unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for set in [
        "uid",
        "creationTimestamp",
        "generation",
        "name",
        "namespace",
    ] {
        metadata.remove(set);
    }
    object
}

#[tokio::test(start_paused = true)]
async fn a_new_server_has_the_kubernetes_service_with_its_endpoints() {
    let server = builder().build();
    assert_eq!(server.revision(), 1);
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "labels": {"component": "apiserver", "provider": "kubernetes"},
            "resourceVersion": "1",
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    });
    assert_eq!(kubernetes(&server, "v1", "services"), service);
    let port = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "labels": {"kubernetes.io/service-name": "kubernetes"},
            "resourceVersion": "1",
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}],
        "ports": port,
    });
    let slices = "discovery.k8s.io/v1";
    assert_eq!(kubernetes(&server, slices, "endpointslices"), slice);
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            "resourceVersion": "1",
        },
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": port}],
    });
    assert_eq!(kubernetes(&server, "v1", "endpoints"), endpoints);
    for always in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert!(server.get("v1", "namespaces", always).is_some(), "{always}");
    }
}

#[tokio::test(start_paused = true)]
async fn system_objects_are_listed_watched_and_deleted_like_others() {
    let server = builder().build();
    assert_eq!(get(&server, SERVICES).await.names(), ["kubernetes"]);
    let mut watch = Watch::open(&server, &format!("{SERVICES}?watch=1")).await;
    assert_eq!(watch.trace().await, "ADDED kubernetes 1\n");
    let gone = delete(&server, &format!("{SERVICES}/kubernetes")).await;
    assert_eq!(gone.code, 200);
    assert_eq!(watch.trace().await, "DELETED kubernetes 2\n");
    assert!(get(&server, SERVICES).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_built_without_the_kubernetes_service_has_only_namespaces() {
    let server = builder().kubernetes_service(false).build();
    assert_eq!(server.revision(), 1);
    for (api_version, plural) in [
        ("v1", "services"),
        ("v1", "endpoints"),
        ("discovery.k8s.io/v1", "endpointslices"),
    ] {
        assert!(server.list(api_version, plural).is_empty(), "{plural}");
    }
    assert_eq!(server.list("v1", "namespaces").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_seed_replaces_the_system_object_with_its_name() {
    let mut system = namespace("kube-system");
    system["metadata"]["labels"] = json!({"mine": "yes"});
    let metadata = json!({"name": "kubernetes"});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata});
    let server = builder().seed([system, service]).build();
    assert_eq!(server.revision(), 2);
    let namespace = server.get("v1", "namespaces", "kube-system").unwrap();
    assert_eq!(namespace["metadata"]["labels"]["mine"], "yes");
    let service = server.get("v1", "services", "default/kubernetes").unwrap();
    assert_eq!(service["metadata"]["resourceVersion"], "2");
    assert_eq!(service["spec"].get("ports"), None);
}

#[tokio::test(start_paused = true)]
async fn an_object_in_a_missing_namespace_is_rejected_unless_the_builder_allows_it() {
    let server = builder().build();
    let spec = pod("a")["spec"].clone();
    let body = json!({"metadata": {"name": "a"}, "spec": spec});
    let missing = "404 NotFound: namespaces \"new\" not found";
    assert_eq!(with(&server, "POST", PODS, &body).await.refusal(), missing);
    let direct = server.create(pod("new/a")).unwrap_err();
    assert_eq!(direct.status().code, 404);
    assert_eq!(server.revision(), 1);
    let created = with(&server, "POST", "/api/v1/namespaces", &namespace("new")).await;
    assert_eq!(created.json["status"]["phase"], "Active");
    assert_eq!(with(&server, "POST", PODS, &body).await.code, 201);

    let lenient = builder().enforce_namespaces(false).build();
    assert_eq!(with(&lenient, "POST", PODS, &body).await.code, 201);
    assert!(lenient.get("v1", "namespaces", "new").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_seeds_exist_from_the_start() {
    let server = builder()
        .seed([pod("one/a"), pod("two/a"), pod("one/b")])
        .build();
    assert_eq!(server.revision(), 3);
    for name in ["one", "two"] {
        let namespace = server.get("v1", "namespaces", name).unwrap();
        assert_eq!(namespace["metadata"]["resourceVersion"], "1");
        assert_eq!(namespace["status"]["phase"], "Active");
    }
    server.create(pod("two/b")).unwrap();
    let gone = delete(&server, "/api/v1/namespaces/one").await;
    assert_eq!(gone.code, 200);
    assert!(server.get("v1", "pods", "one/a").is_none());

    let lenient = builder()
        .enforce_namespaces(false)
        .seed([pod("one/a")])
        .build();
    assert!(lenient.get("v1", "namespaces", "one").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_may_be_seeded_after_the_objects_in_it() {
    let server = builder().seed([pod("late/a"), namespace("late")]).build();
    let late = server.get("v1", "namespaces", "late").unwrap();
    assert_eq!(late["metadata"]["resourceVersion"], "2");
    assert_eq!(server.revision(), 2);
}

/// Returns the keys and revisions of the service accounts and the maps of all namespaces.
fn content(server: &Server) -> Vec<String> {
    let kinds = ["serviceaccounts", "configmaps"].into_iter();
    let objects = kinds.flat_map(|plural| server.list("v1", plural));
    let shown = objects.map(|object| {
        let text = |member: &str| object["metadata"][member].as_str().unwrap().to_owned();
        let [namespace, name, revision] = ["namespace", "name", "resourceVersion"].map(text);
        format!("{namespace}/{name} {revision}")
    });
    shown.collect()
}

#[tokio::test(start_paused = true)]
async fn each_namespace_can_have_a_default_service_account_and_the_root_certificate() {
    let plain = builder().seed([namespace("a")]).build();
    assert!(content(&plain).is_empty());

    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "a"}});
    let server = builder()
        .default_service_accounts(true)
        .seed([namespace("a"), account])
        .build();
    let mut expected = Vec::new();
    for (name, of_a) in [("default", 2), ("kube-root-ca.crt", 1)] {
        expected.push(format!("a/{name} {of_a}"));
        for of in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            expected.push(format!("{of}/{name} 1"));
        }
    }
    assert_eq!(content(&server), expected);
    assert_eq!(server.revision(), 2);

    let mut watch = Watch::open(&server, "/api/v1/serviceaccounts?watch=1&resourceVersion=2").await;
    with(&server, "POST", "/api/v1/namespaces", &namespace("b")).await;
    assert_eq!(watch.trace().await, "ADDED default 4\n");
    let map = server
        .get("v1", "configmaps", "b/kube-root-ca.crt")
        .unwrap();
    assert_eq!(map["metadata"]["resourceVersion"], "5");
    let certificate = map["data"]["ca.crt"].as_str().unwrap();
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"));
    server.create(namespace("c")).unwrap();
    assert!(server.get("v1", "serviceaccounts", "c/default").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_default_service_account_is_created_again_unless_its_namespace_is_deleted() {
    let server = builder().default_service_accounts(true).build();
    server.create(namespace("a")).unwrap();
    let uid = |server: &Server, plural: &str, name: &str| {
        server.get("v1", plural, name).unwrap()["metadata"]["uid"].clone()
    };
    for (plural, name) in [
        ("serviceaccounts", "default"),
        ("configmaps", "kube-root-ca.crt"),
    ] {
        let (key, path) = (
            format!("a/{name}"),
            format!("/api/v1/namespaces/a/{plural}"),
        );
        let mut before = uid(&server, plural, &key);
        for path in [format!("{path}/{name}"), path] {
            assert_eq!(delete(&server, &path).await.code, 200);
            let after = uid(&server, plural, &key);
            assert_ne!(after, before, "{path}");
            before = after;
        }
        // One with a finalizer is removed by the update that removes the finalizer.
        let mut held = server.get("v1", plural, &key).unwrap();
        held["metadata"]["finalizers"] = json!(["example.com/a"]);
        server.update(held).unwrap();
        server.delete("v1", plural, &key).unwrap();
        assert_eq!(uid(&server, plural, &key), before);
        let free = json!({"metadata": {"finalizers": null}});
        server.patch("v1", plural, &key, free).unwrap();
        assert_ne!(uid(&server, plural, &key), before);
    }
    assert_eq!(delete(&server, "/api/v1/namespaces/a").await.code, 200);
    assert!(server.get("v1", "namespaces", "a").is_none());
    assert!(server.get("v1", "serviceaccounts", "a/default").is_none());
    assert!(
        server
            .get("v1", "configmaps", "a/kube-root-ca.crt")
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_server_has_the_system_classes_and_the_mandatory_flow_control() {
    let server = builder().build();
    for (api_version, plural, names) in [
        (
            "scheduling.k8s.io/v1",
            "priorityclasses",
            ["system-cluster-critical", "system-node-critical"],
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "prioritylevelconfigurations",
            ["catch-all", "exempt"],
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "flowschemas",
            ["catch-all", "exempt"],
        ),
    ] {
        let found = server.list(api_version, plural);
        let found: Vec<&str> = found
            .iter()
            .map(|object| object["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{plural}");
    }
    // A client that writes them as they are is not rejected.
    for plural in ["prioritylevelconfigurations", "flowschemas"] {
        let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/{plural}/catch-all");
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        let stored = get(&server, &path).await.json;
        assert_eq!(with(&server, "PUT", &path, &stored).await.code, 200);
        let mut changed = stored;
        changed["metadata"]["labels"] = label["metadata"]["labels"].clone();
        changed["spec"]["rules"] = json!([]);
        changed["spec"]["limited"]["nominalConcurrencyShares"] = json!(7);
        let refused = with(&server, "PUT", &path, &changed).await.refusal();
        assert!(
            refused.contains("spec of 'catch-all' must equal the fixed value"),
            "{refused}"
        );
    }
}
