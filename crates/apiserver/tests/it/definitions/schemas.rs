//! Tests of the schemas of definitions that a case can't show: definitions of the builder, direct calls, several
//! versions with fields of their own for selectors, and a restart.

use kube_informer_apiserver::{Server, WatchCache};
use serde_json::{Value, json};

use super::{CRDS, WIDGETS, definition, widget};
use crate::ask::{Watch, builder, delete, get, get_as, with};

/// Returns the definition of `widgets` with a schema for `spec`.
fn with_spec(properties: &Value) -> Value {
    let mut definition = definition("widgets", "Widget");
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    });
    definition
}

fn widget_with(name: &str, spec: &Value) -> Value {
    let mut widget = widget(name);
    widget["spec"] = spec.clone();
    widget
}

const TWO_IN_YAML: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: yes
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
---
# An empty document.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: realms.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: realms, kind: Realm}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
";

#[tokio::test(start_paused = true)]
async fn a_builder_takes_definitions_in_yaml_and_objects_of_their_kinds() {
    let server = builder()
        .crd(TWO_IN_YAML)
        .watch_cache_for("widgets.example.com", WatchCache::Off)
        .seed([
            widget_with("a", &json!({"x": 1})),
            json!({"apiVersion": "example.com/v1", "kind": "Realm", "metadata": {"name": "r"}}),
        ])
        .build();
    assert_eq!(server.revision(), 2);
    let a = server
        .get("example.com/v1", "widgets", "default/a")
        .unwrap();
    assert_eq!(a["spec"], json!({"size": 1}));
    assert_eq!(a["metadata"]["resourceVersion"], "1");
    let r = server.get("example.com/v1", "realms", "r").unwrap();
    assert_eq!(r["metadata"]["resourceVersion"], "2");
    let definition = get(&server, &format!("{CRDS}/widgets.example.com")).await;
    assert_eq!(definition.json["metadata"]["resourceVersion"], "1");
}

#[test]
#[should_panic(expected = "its apiVersion is \"v1\", and its kind is \"Pod\"")]
fn a_builder_rejects_other_objects_than_definitions() {
    drop(builder().crd(json!({"apiVersion": "v1", "kind": "Pod"})));
}

#[test]
#[should_panic(expected = "no resource \"gadgets.example.com\" is served")]
fn a_watch_cache_needs_a_resource() {
    let builder = builder().crd(TWO_IN_YAML);
    drop(
        builder
            .watch_cache_for("gadgets.example.com", WatchCache::Off)
            .build(),
    );
}

#[tokio::test(start_paused = true)]
async fn direct_calls_set_defaults_and_prune_but_do_not_validate() {
    let properties = json!({"size": {"type": "integer", "default": 1, "maximum": 5}});
    let server = builder().crd(with_spec(&properties)).build();
    let made = server.create(widget_with("a", &json!({"x": 1}))).unwrap();
    assert_eq!(made["spec"], json!({"size": 1}));
    let large = widget_with("a", &json!({"size": 10, "x": 1}));
    assert_eq!(server.update(large).unwrap()["spec"], json!({"size": 10}));
    let patch = json!({"spec": {"size": null}});
    let patched = server.patch("example.com/v1", "widgets", "default/a", patch);
    assert_eq!(patched.unwrap()["spec"], json!({"size": 1}));
}

/// Returns a server with the kind `Widget` in the versions v1 and v2. It is stored in v2, with the fields
/// `spec.color` and `spec.shape`. v1 has only `spec.color`. Selectors can compare the color in v1, and the shape
/// in v2.
fn of_two_versions() -> Server {
    builder().crd(two_versions()).build()
}

fn two_versions() -> Value {
    let version = |name: &str, properties: Value, selectable: &str| {
        json!({
            "name": name,
            "served": true,
            "storage": name == "v2",
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }},
            "selectableFields": [{"jsonPath": format!(".spec.{selectable}")}],
        })
    };
    let color = json!({"type": "string"});
    let shape = json!({"type": "string", "default": "round"});
    let mut definition = definition("widgets", "Widget");
    definition["spec"]["versions"] = json!([
        version("v1", json!({"color": color}), "color"),
        version("v2", json!({"color": color, "shape": shape}), "shape"),
    ]);
    definition
}

#[tokio::test(start_paused = true)]
async fn watches_end_with_the_first_object_that_needs_a_conversion_webhook() {
    let server = builder().crd(with_webhook(two_versions())).build();
    let v2 = WIDGETS.replace("/v1/", "/v2/");
    let mut of_v1 = Watch::open(&server, &format!("{WIDGETS}?watch=1")).await;
    let mut of_v2 = Watch::open(&server, &format!("{v2}?watch=1")).await;
    let mut a = widget("a");
    a["apiVersion"] = json!("example.com/v2");
    let created = with(&server, "POST", &v2, &a).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(of_v2.trace().await, "ADDED a 2\n");
    let error = "ERROR 500 : conversion webhook for example.com/v2, Kind=Widget failed: the embedded server calls no webhook to convert the object to example.com/v1\nend\n";
    assert_eq!(of_v1.trace().await, error);
    let mut of_v1 = Watch::open(&server, &format!("{WIDGETS}?watch=1")).await;
    assert_eq!(of_v1.trace().await, error, "an initial event");
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for uri in [WIDGETS, &format!("{WIDGETS}?resourceVersion=0")] {
        assert_eq!(get_as(&server, uri, metadata).await.code, 500, "{uri}");
    }
}

/// Gives a definition a conversion webhook.
fn with_webhook(mut definition: Value) -> Value {
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1"}}});
    definition
}

#[tokio::test(start_paused = true)]
async fn deletions_of_all_objects_need_no_conversion_webhook() {
    // The stored version is the first one, the last one, or one that is not served any more.
    for stored in [0, 2, 1] {
        let mut definition = with_webhook(two_versions());
        let versions = definition["spec"]["versions"].as_array_mut().unwrap();
        let mut third = versions[0].clone();
        third["name"] = json!("v3");
        versions.push(third);
        for (at, version) in versions.iter_mut().enumerate() {
            version["storage"] = json!(at == stored);
        }
        let api_version = format!("example.com/v{}", stored + 1);
        let server = builder().crd(definition).build();
        server
            .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}))
            .unwrap();
        for namespace in ["a", "default"] {
            let metadata = json!({"name": "x", "namespace": namespace});
            let widget = json!({"apiVersion": api_version, "kind": "Widget", "metadata": metadata});
            server.create(widget).unwrap();
        }
        let path = format!("{CRDS}/widgets.example.com");
        if stored == 1 {
            let at = "/spec/versions/1/served";
            let change = json!([{"op": "replace", "path": at, "value": false}]);
            assert_eq!(with(&server, "PATCH", &path, &change).await.code, 200);
        }
        delete(&server, "/api/v1/namespaces/a").await;
        let namespace = get(&server, "/api/v1/namespaces/a").await;
        assert_eq!(namespace.code, 404, "stored {stored}: {}", namespace.text);
        delete(&server, &path).await;
        let left = get(&server, &path).await;
        assert_eq!(left.code, 404, "stored {stored}: {}", left.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_all_objects_keeps_the_fields_of_those_that_stay() {
    for stored in ["v1", "v2"] {
        let mut definition = two_versions();
        let other = if stored == "v1" { "v2" } else { "v1" };
        definition["spec"]["versions"][0]["name"] = json!(other);
        definition["spec"]["versions"][1]["name"] = json!(stored);
        let server = builder().crd(definition).build();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
        server.create(namespace).unwrap();
        let mut widget = widget_with("x", &json!({"shape": "flat"}));
        widget["apiVersion"] = json!(format!("example.com/{stored}"));
        widget["metadata"]["namespace"] = json!("a");
        widget["metadata"]["finalizers"] = json!(["example.com/stay"]);
        server.create(widget).unwrap();
        let path = format!("/apis/example.com/{stored}/namespaces/a/widgets/x");
        for deleted in [
            "/api/v1/namespaces/a".to_owned(),
            format!("{CRDS}/widgets.example.com"),
        ] {
            delete(&server, &deleted).await;
            let found = get(&server, &path).await.json;
            assert!(found["metadata"]["deletionTimestamp"].is_string());
            assert_eq!(
                found["spec"],
                json!({"shape": "flat"}),
                "{stored} {deleted}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_version_selects_by_its_own_fields() {
    let server = of_two_versions();
    let v2 = WIDGETS.replace("/v1/", "/v2/");
    let mut reds = Watch::open(
        &server,
        &format!("{WIDGETS}?watch=1&fieldSelector=spec.color=red"),
    )
    .await;
    let mut rounds = Watch::open(
        &server,
        &format!("{v2}?watch=1&fieldSelector=spec.shape=round"),
    )
    .await;
    with(
        &server,
        "POST",
        WIDGETS,
        &widget_with("a", &json!({"color": "red", "shape": "flat"})),
    )
    .await;
    let mut b = widget_with("b", &json!({"color": "red", "shape": "flat"}));
    b["apiVersion"] = json!("example.com/v2");
    with(&server, "POST", &v2, &b).await;
    let names = async |uri: String| get(&server, &uri).await.names().join(" ");
    assert_eq!(
        names(format!("{WIDGETS}?fieldSelector=spec.color=red")).await,
        "a b"
    );
    assert_eq!(
        names(format!("{v2}?fieldSelector=spec.shape=round")).await,
        "a"
    );
    assert_eq!(
        names(format!("{v2}?fieldSelector=spec.shape=flat")).await,
        "b"
    );
    let other = get(&server, &format!("{v2}?fieldSelector=spec.color=red")).await;
    assert_eq!(other.message(), "field label not supported: spec.color");
    let list = get(&server, WIDGETS).await.json;
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["spec"], json!({"color": "red"}), "the form of v1");
    }
    let [a, b] = ["ADDED a", "ADDED b"];
    let events = reds.trace().await;
    assert!(events.contains(a) && events.contains(b), "{events}");
    let events = rounds.trace().await;
    assert!(events.contains(a) && !events.contains(b), "{events}");
}

#[cfg(feature = "persistence")]
#[tokio::test(start_paused = true)]
async fn a_restarted_server_applies_schemas_to_its_objects() {
    let directory = crate::persistence::scratch("schemas");
    let server = builder().open(&directory).unwrap();
    let properties = json!({"size": {"type": "integer", "default": 1}});
    with(&server, "POST", CRDS, &with_spec(&properties)).await;
    with(&server, "POST", WIDGETS, &widget_with("a", &json!({}))).await;
    // The schema changes after the object is stored.
    let properties =
        json!({"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}});
    let changed = json!({"spec": {"versions": with_spec(&properties)["spec"]["versions"]}});
    let name = format!("{CRDS}/widgets.example.com");
    assert_eq!(with(&server, "PATCH", &name, &changed).await.code, 200);
    drop(server);

    let server = builder().open(&directory).unwrap();
    let a = get(&server, &format!("{WIDGETS}/a")).await.json;
    assert_eq!(a["spec"], json!({"color": "red", "size": 1}));
    let list = get(&server, WIDGETS).await.json;
    assert_eq!(list["items"][0], a);
    let bad = widget_with("b", &json!({"size": "x"}));
    assert_eq!(with(&server, "POST", WIDGETS, &bad).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn openapi_describes_a_defined_kind() {
    let size = json!({"type": "integer", "description": "Number of parts."});
    let server = builder().crd(with_spec(&json!({"size": size}))).build();
    let document = get(&server, "/openapi/v3/apis/example.com/v1").await.json;
    let schemas = &document["components"]["schemas"];
    let widget = &schemas["com.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["size"], size);
    let metadata = widget["properties"]["metadata"]["allOf"][0]["$ref"].as_str();
    let name = metadata.unwrap().rsplit('/').next().unwrap();
    assert_eq!(schemas[name]["properties"]["name"]["type"], "string");
    let kinds = json!([{"group": "example.com", "version": "v1", "kind": "Widget"}]);
    assert_eq!(widget["x-kubernetes-group-version-kind"], kinds);
}
