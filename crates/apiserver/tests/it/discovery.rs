//! Tests the endpoints for discovery, version, health and access reviews.
//!
//! Also tests the error responses for paths and verbs that the server does not support.

use serde_json::Value;

use kube_informer_apiserver::{Kind, Scope};

use crate::ask::{builder, get, get_as};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn named<'a>(list: &'a Value, member: &str, name: &str) -> &'a Value {
    let found = list
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item[member] == name);
    found.unwrap_or_else(|| panic!("{name} among {list}"))
}

#[tokio::test(start_paused = true)]
async fn plain_discovery_lists_groups_versions_and_resources() {
    let server = builder()
        .kind(Kind::custom(
            "example.com",
            "v1",
            "Widget",
            "widgets",
            Scope::Namespaced,
        ))
        .build();
    assert_eq!(
        get(&server, "/api").await.json["versions"],
        serde_json::json!(["v1"])
    );
    let core = get(&server, "/api/v1").await.json;
    let pods = named(&core["resources"], "name", "pods");
    assert_eq!(
        (&pods["kind"], &pods["namespaced"]),
        (&"Pod".into(), &true.into())
    );
    assert_eq!(
        named(&core["resources"], "name", "pods/binding")["kind"],
        "Binding"
    );
    let groups = get(&server, "/apis").await.json;
    let apps = named(&groups["groups"], "name", "apps");
    assert_eq!(apps["preferredVersion"]["groupVersion"], "apps/v1");
    let widgets = get(&server, "/apis/example.com/v1").await.json;
    assert_eq!(
        named(&widgets["resources"], "name", "widgets")["kind"],
        "Widget"
    );
    assert_eq!(
        get(&server, "/apis/example.com").await.json["kind"],
        "APIGroup"
    );
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_is_returned_if_it_is_accepted_first() {
    let server = builder().build();
    let core = get_as(&server, "/api", AGGREGATED).await;
    assert_eq!(
        core.headers["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!(core.json["kind"], "APIGroupDiscoveryList");
    let pods = named(
        &core.json["items"][0]["versions"][0]["resources"],
        "resource",
        "pods",
    );
    assert_eq!(pods["scope"], "Namespaced");
    assert_eq!(
        named(&pods["subresources"], "subresource", "status")["responseKind"]["kind"],
        "Pod"
    );
    let rest = get_as(&server, "/apis", AGGREGATED).await.json;
    let names: Vec<_> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["metadata"]["name"].clone())
        .collect();
    assert!(
        names.contains(&"apps".into()) && !names.contains(&"".into()),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn version_and_health_are_served_and_other_paths_are_not() {
    let server = builder().build();
    assert_eq!(get(&server, "/version").await.json["gitVersion"], "v1.36.3");
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(get(&server, path).await.text, "ok", "{path}");
    }
    for path in [
        "/api/v2/pods",
        "/apis/apps/v9/none",
        "/apis/apps/v1/none",
        "/api/v1/pods/a",
    ] {
        let reply = get(&server, path).await;
        assert_eq!(
            (reply.code, &reply.json["kind"], &reply.json["details"]),
            (404, &"Status".into(), &serde_json::json!({})),
            "{path}"
        );
    }
    for path in ["/none", "/apis/none", "/apis/none/v1/x"] {
        let reply = get(&server, path).await;
        assert_eq!(
            (reply.code, reply.text.as_str()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
    let root = get(&server, "/").await.json;
    let paths = root["paths"].as_array().unwrap();
    assert!(
        ["/api/v1", "/apis/apps/v1"]
            .iter()
            .all(|path| paths.contains(&(*path).into()))
    );
}

#[tokio::test(start_paused = true)]
async fn an_unserved_verb_receives_405() {
    let server = builder().build();
    let reply = crate::ask::with(
        &server,
        "PUT",
        "/api/v1/componentstatuses/x",
        &serde_json::json!({}),
    )
    .await;
    assert_eq!(
        reply.refusal(),
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    );
}

#[tokio::test(start_paused = true)]
async fn reviews_are_answered_and_not_stored() {
    let server = builder().build();
    let review =
        serde_json::json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let reply = crate::ask::with(&server, "POST", path, &review).await;
    assert_eq!(
        (reply.code, &reply.json["status"]["allowed"]),
        (201, &true.into())
    );
    assert_eq!(server.revision(), 1);
}

#[tokio::test(start_paused = true)]
async fn groups_have_the_order_of_their_priorities() {
    let custom = |group: &str, version: &str| {
        Kind::custom(group, version, "Widget", "widgets", Scope::Namespaced)
    };
    let server = builder()
        .kind(custom("a.example.com", "v2"))
        .kind(custom("b.example.com", "v1"))
        .build();
    let names = |list: &Value, pointer: &str| -> Vec<String> {
        let names = list.as_array().unwrap().iter();
        names
            .map(|group| group.pointer(pointer).unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    let plain = get(&server, "/apis").await.json;
    let plain = names(&plain["groups"], "/name");
    assert_eq!(
        plain[..3],
        ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    );
    // The names of the `APIService`s, such as `v1.b.example.com`, decide between custom groups.
    assert_eq!(plain[plain.len() - 2..], ["b.example.com", "a.example.com"]);
    let aggregated = get_as(&server, "/apis", AGGREGATED).await.json;
    let aggregated = names(&aggregated["items"], "/metadata/name");
    let last = aggregated.len() - 2;
    assert_eq!(aggregated[last..], ["a.example.com", "b.example.com"]);
    assert_eq!(aggregated[..last], plain[..last]);
}

#[tokio::test(start_paused = true)]
async fn metrics_have_the_number_of_objects() {
    let server = builder().build();
    let text = get(&server, "/metrics").await.text;
    for line in [
        "# TYPE apiserver_resource_objects gauge",
        r#"apiserver_resource_objects{group="",resource="namespaces"} 4"#,
        r#"apiserver_resource_objects{group="apps",resource="deployments"} 0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}
