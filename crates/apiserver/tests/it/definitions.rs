//! Tests of kinds that `CustomResourceDefinition`s add while the server runs.
//!
//! The cases in `verify/cases/custom` show what Kubernetes does. These tests also cover what a case can't
//! show: a restart of the server, a restart from a backup at an older revision, and a
//! `CustomResourceDefinition` among the initial objects of the server.

mod restarts;
mod schemas;

use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::{Value, json};

use crate::ask::{Watch, builder, delete, get, with};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// Returns a `CustomResourceDefinition` of a namespaced kind in the group `example.com`.
fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}})
}

/// Returns a widget with a finalizer. A deleted widget remains until the finalizer is removed.
fn held(name: &str) -> Value {
    let mut widget = widget(name);
    widget["metadata"]["finalizers"] = json!(["example.com/x"]);
    widget
}

/// Returns the conditions of a `CustomResourceDefinition`, such as `NamesAccepted=True NoConflicts`.
async fn conditions(server: &Server, name: &str) -> Vec<String> {
    let found = get(server, &format!("{CRDS}/{name}")).await.json;
    let conditions = found["status"]["conditions"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shown = conditions.iter().map(|one| {
        let [kind, status, reason] = ["type", "status", "reason"].map(|member| text(&one[member]));
        format!("{kind}={status} {reason}")
    });
    shown.collect()
}

#[tokio::test(start_paused = true)]
async fn a_name_in_use_is_accepted_when_its_owner_is_deleted() {
    let server = builder().build();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    let made = with(&server, "POST", CRDS, &definition("gadgets", "Widget")).await;
    assert_eq!(made.code, 201);
    let refused = [
        "NamesAccepted=False ListKindConflict",
        "Established=False NotAccepted",
    ];
    assert_eq!(conditions(&server, "gadgets.example.com").await, refused);
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    assert_eq!(get(&server, gadgets).await.code, 404);
    assert_eq!(
        delete(&server, &format!("{CRDS}/widgets.example.com"))
            .await
            .code,
        200
    );
    let accepted = [
        "NamesAccepted=True NoConflicts",
        "Established=True InitialNamesAccepted",
    ];
    assert_eq!(conditions(&server, "gadgets.example.com").await, accepted);
    assert_eq!(get(&server, gadgets).await.code, 200);
    assert_eq!(get(&server, WIDGETS).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_stays_until_its_last_object_is_removed() {
    let server = builder().build();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    with(&server, "POST", WIDGETS, &widget("a")).await;
    with(&server, "POST", WIDGETS, &held("b")).await;
    let name = format!("{CRDS}/widgets.example.com");
    assert_eq!(delete(&server, &name).await.code, 200);
    assert_eq!(
        get(&server, WIDGETS).await.json["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        conditions(&server, "widgets.example.com").await[2],
        "Terminating=True InstanceDeletionInProgress"
    );
    assert_eq!(
        with(&server, "POST", WIDGETS, &widget("c")).await.refusal(),
        "403 Forbidden: widgets.example.com \"c\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    let release = json!({"metadata": {"finalizers": null}});
    with(&server, "PATCH", &format!("{WIDGETS}/b"), &release).await;
    assert_eq!(get(&server, &name).await.code, 404);
    assert_eq!(get(&server, WIDGETS).await.code, 404);

    // A new definition of the same name starts without objects and without history.
    let before = server.revision();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    assert_eq!(get(&server, WIDGETS).await.json["items"], json!([]));
    let old = format!("{WIDGETS}?watch=1&resourceVersion={before}");
    let mut watch = Watch::open(&server, &old).await;
    let trace = watch.trace().await;
    assert!(trace.starts_with("ERROR 410 Expired: "), "{trace}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_waits_while_its_kind_is_deleted_is_not_opened() {
    let server = builder().build();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    // The deletion makes three writes, and the watch waits for the last one.
    let last = server.revision() + 3;
    let initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let watch = format!("{WIDGETS}?watch=1&{initial}&resourceVersion={last}");
    let name = format!("{CRDS}/widgets.example.com");
    let (watch, deleted) = tokio::join!(get(&server, &watch), delete(&server, &name));
    assert_eq!((watch.code, deleted.code), (404, 200));
    assert_eq!(server.revision(), last);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_spec_ends_watches_and_a_label_does_not() {
    let server = builder().build();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    let mut watch = Watch::open(&server, &format!("{WIDGETS}?watch=1")).await;
    let name = format!("{CRDS}/widgets.example.com");
    with(
        &server,
        "PATCH",
        &name,
        &json!({"metadata": {"labels": {"x": "y"}}}),
    )
    .await;
    with(&server, "POST", WIDGETS, &widget("a")).await;
    assert_eq!(watch.trace().await, "ADDED a 6\n");
    let short = json!({"spec": {"names": {"shortNames": ["wd"]}}});
    assert_eq!(with(&server, "PATCH", &name, &short).await.code, 200);
    assert_eq!(watch.trace().await, "end\n");
    let resources = get(&server, "/apis/example.com/v1").await.json;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(get(&server, &format!("{WIDGETS}/a")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_the_builder_is_served_whether_or_not_it_is_defined() {
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(kind).build();
    with(&server, "POST", WIDGETS, &widget("a")).await;
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    assert_eq!(conditions(&server, "widgets.example.com").await.len(), 2);
    assert_eq!(
        delete(&server, &format!("{CRDS}/widgets.example.com"))
            .await
            .code,
        200
    );
    assert_eq!(get(&server, CRDS).await.json["items"], json!([]));
    assert_eq!(get(&server, &format!("{WIDGETS}/a")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_definition_among_the_seeds_is_established_with_one_revision() {
    let mut seed = widget("a");
    seed["metadata"]["namespace"] = json!("team-a");
    let server = builder()
        .seed([definition("widgets", "Widget"), seed])
        .build();
    assert_eq!(server.revision(), 2);
    let seeded = WIDGETS.replace("default", "team-a");
    assert_eq!(get(&server, &format!("{seeded}/a")).await.revision(), "2");
    assert_eq!(get(&server, "/api/v1/namespaces/team-a").await.code, 200);
    let accepted = [
        "NamesAccepted=True NoConflicts",
        "Established=True InitialNamesAccepted",
    ];
    assert_eq!(conditions(&server, "widgets.example.com").await, accepted);
    let found = get(&server, &format!("{CRDS}/widgets.example.com"))
        .await
        .json;
    assert_eq!(found["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(found["status"]["acceptedNames"]["singular"], "widget");
}

#[tokio::test(start_paused = true)]
async fn the_discovery_of_a_group_prefers_its_most_stable_version() {
    let server = builder().build();
    let versions = |names: &[&str]| -> Vec<Value> {
        let versions = names.iter().enumerate();
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let version = |(at, name): (usize, &&str)| json!({"name": name, "served": true, "storage": at == 0, "schema": schema});
        versions.map(version).collect()
    };
    let mut widgets = definition("widgets", "Widget");
    widgets["spec"]["versions"] = json!(versions(&["v1alpha1", "v1beta1"]));
    let mut gadgets = definition("gadgets", "Gadget");
    gadgets["spec"]["versions"] = json!(versions(&["v1", "v2"]));
    for one in [&widgets, &gadgets] {
        assert_eq!(with(&server, "POST", CRDS, one).await.code, 201);
    }
    let group = get(&server, "/apis/example.com").await.json;
    let named: Vec<_> = group["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["version"].clone())
        .collect();
    assert_eq!(named, ["v2", "v1", "v1beta1", "v1alpha1"]);
    assert_eq!(group["preferredVersion"]["version"], "v2");
}

#[tokio::test(start_paused = true)]
async fn a_table_has_the_columns_of_the_definition() {
    let server = builder().build();
    let mut widgets = definition("widgets", "Widget");
    widgets["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How large", "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".status.since"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
    ]);
    with(&server, "POST", CRDS, &widgets).await;
    let mut full = widget("full");
    full["spec"] = json!({"size": 2.5, "on": true, "tags": ["a", 1]});
    full["status"] = json!({"since": "2020-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]});
    let mut odd = widget("odd");
    odd["spec"] = json!({"size": "x", "on": 1, "tags": null});
    odd["status"] = json!({"since": "x"});
    for one in [&full, &odd, &widget("empty")] {
        assert_eq!(with(&server, "POST", WIDGETS, one).await.code, 201);
    }
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = crate::ask::get_as(&server, WIDGETS, accept).await.json;
    let columns = table["columnDefinitions"].as_array().unwrap();
    let named: Vec<_> = columns
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["Name", "Ready", "Size", "Since", "On", "Tags"]);
    assert_eq!(columns[2]["description"], "How large");
    assert_eq!(columns[2]["priority"], 1);
    let rows = table["rows"].as_array().unwrap();
    let cells: Vec<_> = rows.iter().map(|row| row["cells"].clone()).collect();
    let age = cells[1][3].clone();
    assert!(
        age.as_str()
            .is_some_and(|age| age.ends_with('d') || age.ends_with('y')),
        "{age}"
    );
    assert_eq!(
        cells,
        [
            json!(["empty", null, null, null, null, null]),
            json!(["full", "True", 2, age, true, "[\"a\",1]"]),
            json!(["odd", null, null, "<invalid>", null, "<no value>"]),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_scale_shows_the_fields_that_the_definition_names() {
    let server = builder().build();
    let mut widgets = definition("widgets", "Widget");
    widgets["spec"]["versions"][0]["subresources"] = json!({"scale": {
        "specReplicasPath": ".spec.size.wanted",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.labels",
    }});
    with(&server, "POST", CRDS, &widgets).await;
    let mut a = widget("a");
    with(&server, "POST", WIDGETS, &a).await;
    let scale = format!("{WIDGETS}/a/scale");
    assert_eq!(
        get(&server, &scale).await.refusal(),
        "500 InternalError: Internal error occurred: the spec replicas field \".spec.size.wanted\" does not exist"
    );
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    assert_eq!(
        with(&server, "PATCH", &scale, &label).await.refusal(),
        "400 BadRequest: the spec replicas field \".spec.size.wanted\" cannot be empty"
    );
    let three = json!({"spec": {"replicas": 3}});
    assert_eq!(
        with(&server, "PATCH", &scale, &three).await.json["spec"]["replicas"],
        3
    );
    a = get(&server, &format!("{WIDGETS}/a")).await.json;
    assert_eq!(a["spec"], json!({"size": {"wanted": 3}}));
    a["status"] = json!({"size": 2, "labels": "app=a"});
    with(&server, "PUT", &format!("{WIDGETS}/a"), &a).await;
    let shown = get(&server, &scale).await.json;
    assert_eq!(shown["status"], json!({"replicas": 2, "selector": "app=a"}));

    // A path that would nest the object too deeply adds no scale.
    let mut deep = definition("gadgets", "Gadget");
    deep["spec"]["versions"][0]["subresources"] = json!({"scale": {
        "specReplicasPath": format!(".spec{}", ".a".repeat(150)),
        "statusReplicasPath": ".status.size",
    }});
    with(&server, "POST", CRDS, &deep).await;
    let resources = get(&server, "/apis/example.com/v1").await.json;
    let named = resources["resources"].as_array().unwrap().iter();
    let named: Vec<_> = named.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["gadgets", "widgets", "widgets/scale"]);
}

#[tokio::test(start_paused = true)]
async fn objects_of_versions_that_are_not_served_are_deleted_with_the_definition() {
    let server = builder().build();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    with(&server, "POST", WIDGETS, &widget("a")).await;
    let name = format!("{CRDS}/widgets.example.com");
    let hidden = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
    let request =
        crate::ask::request("PATCH", &name).header("content-type", "application/json-patch+json");
    let body = hidden.to_string().into();
    let patched = crate::ask::send(&server, request.body(body).unwrap()).await;
    assert_eq!(patched.code, 200);
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    delete(&server, &name).await;
    assert_eq!(get(&server, &name).await.code, 404);
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    assert_eq!(get(&server, WIDGETS).await.json["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_status_of_another_type_is_rejected_and_an_empty_one_is_repaired() {
    let server = builder().build();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    let status = format!("{CRDS}/widgets.example.com/status");
    for (wrong, code) in [
        (json!("x"), 422),
        (json!(["x"]), 422),
        (json!({"plural": 1, "shortNames": "x"}), 422),
        (json!({"plural": null, "shortNames": null}), 200),
        (json!(null), 200),
    ] {
        let patch = json!({"status": {"acceptedNames": wrong, "conditions": null}});
        let patched = with(&server, "PATCH", &status, &patch).await;
        assert_eq!(patched.code, code, "{}", patched.text);
        let found = get(&server, &format!("{CRDS}/widgets.example.com"))
            .await
            .json;
        assert_eq!(found["status"]["acceptedNames"]["plural"], "widgets");
        assert_eq!(get(&server, WIDGETS).await.code, 200);
    }
    let patch = json!({"status": {"conditions": null}});
    with(&server, "PATCH", &status, &patch).await;
    assert_eq!(
        conditions(&server, "widgets.example.com").await,
        [
            "NamesAccepted=True NoConflicts",
            "Established=True InitialNamesAccepted"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn names_are_free_after_a_finalizer_was_removed_by_hand() {
    let server = builder().build();
    let mut widgets = definition("widgets", "Widget");
    widgets["metadata"]["finalizers"] = json!(["example.com/x"]);
    with(&server, "POST", CRDS, &widgets).await;
    with(&server, "POST", CRDS, &definition("gadgets", "Widget")).await;
    let name = format!("{CRDS}/widgets.example.com");
    delete(&server, &name).await;
    assert_eq!(
        get(&server, &name).await.code,
        200,
        "the other finalizer holds it"
    );
    with(
        &server,
        "PATCH",
        &name,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    assert_eq!(get(&server, &name).await.code, 404);
    let accepted = [
        "NamesAccepted=True NoConflicts",
        "Established=True InitialNamesAccepted",
    ];
    assert_eq!(conditions(&server, "gadgets.example.com").await, accepted);
}

#[tokio::test(start_paused = true)]
async fn a_definition_can_not_replace_a_built_in_kind() {
    let server = builder().build();
    let mut fake = definition("roles", "Role");
    let group = "rbac.authorization.k8s.io";
    fake["spec"]["group"] = json!(group);
    fake["metadata"]["name"] = json!(format!("roles.{group}"));
    fake["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a test"});
    server.create(fake.clone()).unwrap();
    let found = get(&server, &format!("/apis/{group}/v1")).await.json;
    let resources = found["resources"].as_array().unwrap();
    let roles: Vec<_> = resources
        .iter()
        .filter(|one| one["name"] == "roles")
        .collect();
    assert_eq!(roles.len(), 1);
    assert_eq!(
        roles[0]["storageVersionHash"], "7FuwZcIIItM=",
        "the built-in kind"
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_definitions_are_rejected_with_the_messages_of_kubernetes() {
    let server = builder().build();
    let refused = async |change: &dyn Fn(&mut Value)| {
        let mut changed = definition("widgets", "Widget");
        change(&mut changed);
        let refusal = with(&server, "POST", CRDS, &changed).await.refusal();
        let lead = "422 Invalid: CustomResourceDefinition.apiextensions.k8s.io \"widgets.example.com\" is invalid: ";
        refusal.strip_prefix(lead).unwrap_or(&refusal).to_owned()
    };
    let scale = json!({"scale": {"specReplicasPath": ".metadata", "statusReplicasPath": ""}});
    assert_eq!(
        refused(&|it| it["spec"]["versions"][0]["subresources"] = scale.clone()).await,
        "[spec.subresources.scale.specReplicasPath: Invalid value: \".metadata\": should be a json path under .spec, spec.subresources.scale.statusReplicasPath: Required value]"
    );
    assert_eq!(
        refused(&|it| it["spec"]["scope"] = json!("Galaxy")).await,
        "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\""
    );
    assert_eq!(
        refused(&|it| it["spec"]["versions"][0]["schema"] = json!(null)).await,
        "spec.versions[0].schema.openAPIV3Schema: Required value"
    );
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    let name = format!("{CRDS}/widgets.example.com");
    let immutable = json!({"spec": {"scope": "Cluster", "group": "other.com"}});
    assert!(
        with(&server, "PATCH", &name, &immutable).await.refusal().ends_with(
            "[spec.scope: Invalid value: \"Cluster\": field is immutable, spec.group: Invalid value: \"other.com\": field is immutable]"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn two_hundred_definitions_of_one_group_are_served() {
    let server = builder().build();
    for nth in 0..200 {
        let made = with(
            &server,
            "POST",
            CRDS,
            &definition(&format!("w{nth}s"), &format!("W{nth}")),
        )
        .await;
        assert_eq!(made.code, 201);
    }
    let resources = get(&server, "/apis/example.com/v1").await.json;
    assert_eq!(resources["resources"].as_array().unwrap().len(), 200);
}
