//! Tests strategic merge patches: merged lists, the order of list items, and rejected patches.

use bytes::Bytes;
use http_body_util::Full;
use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::{Value, json};

use crate::ask::{Reply, builder, request, send};

const POD: &str = "/api/v1/namespaces/default/pods/a";
const TEMPLATE: &str = "/api/v1/namespaces/default/podtemplates/a";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/a";

async fn strategic(server: &Server, uri: &str, patch: &Value) -> Reply {
    let request =
        request("PATCH", uri).header("content-type", "application/strategic-merge-patch+json");
    let body: Full<Bytes> = Full::from(patch.to_string());
    send(server, request.body(body).unwrap()).await
}

fn serving(api_version: &str, kind: &str, spec: &Value) -> Server {
    let object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"namespace": "default", "name": "a"}, "spec": spec,
    });
    builder().seed([object]).build()
}

/// The members of the spec of a pod and of a container that the server adds.
const ADDED: [&str; 11] = [
    "dnsPolicy",
    "enableServiceLinks",
    "imagePullPolicy",
    "preemptionPolicy",
    "priority",
    "resources",
    "restartPolicy",
    "schedulerName",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "terminationMessagePolicy",
];

/// Removes the members that the server adds to the spec of a pod.
fn without_added(mut spec: Value) -> Value {
    let members = spec.as_object_mut().unwrap();
    let is_empty = |name: &str, value: &Value| match name {
        "containers" => value.is_null(),
        "securityContext" => *value == json!({}),
        _ => false,
    };
    members.retain(|name, value| !ADDED.contains(&&**name) && !is_empty(name, value));
    let containers = members.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let container = container.as_object_mut().unwrap();
        container.retain(|name, _| !ADDED.contains(&&**name));
        let ports = container.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            assert_eq!(
                port.as_object_mut().unwrap().remove("protocol"),
                Some(json!("TCP"))
            );
        }
    }
    spec
}

/// Creates a template of a pod with `spec`, applies the strategic merge patch `patch` to the spec, and returns the result.
async fn patched(spec: &Value, patch: &Value) -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "PodTemplate",
        "metadata": {"namespace": "default", "name": "a"}, "template": {"spec": spec},
    });
    let server = builder().seed([object]).build();
    let patch = json!({"template": {"spec": patch}});
    let reply = strategic(&server, TEMPLATE, &patch).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    without_added(reply.json["template"]["spec"].clone())
}

/// Asserts that the invalid `patch` does not change a pod with `spec`, and returns the error.
async fn refused(spec: &Value, patch: &Value) -> String {
    let server = serving("v1", "Pod", spec);
    let reply = strategic(&server, POD, &json!({ "spec": patch })).await;
    let stored = server.get("v1", "pods", "default/a").unwrap();
    let stored = without_added(stored["spec"].clone());
    assert_eq!(stored, *spec, "a rejected patch changes nothing");
    reply.refusal()
}

#[tokio::test(start_paused = true)]
async fn containers_and_their_lists_are_merged_by_key() {
    let spec = json!({"containers": [
        {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
         "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 443}]},
        {"name": "b", "image": "b:1"},
    ]});
    let patch = json!({"containers": [
        {"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "3"}], "ports": [{"containerPort": 80, "name": "http"}]},
    ]});
    let expected = json!({"containers": [
        {"name": "a", "image": "a:2", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}],
         "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 443}]},
        {"name": "b", "image": "b:1"},
    ]});
    assert_eq!(patched(&spec, &patch).await, expected);
}

#[tokio::test(start_paused = true)]
async fn items_of_the_patch_precede_those_that_only_the_object_has() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    let patch = json!({"containers": [{"name": "new", "image": null, "env": [{"name": "E"}]}, {"name": "b", "image": "i"}]});
    assert_eq!(
        patched(&spec, &patch).await,
        json!({"containers": [{"name": "new", "env": [{"name": "E"}]}, {"name": "a"}, {"name": "b", "image": "i"}]})
    );
}

#[tokio::test(start_paused = true)]
async fn lists_of_primitives_with_a_strategy_are_unions() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": "a", "finalizers": ["x/a", "x/b"]}});
    let server = builder().seed([pod]).build();
    let patch = json!({"metadata": {"finalizers": ["x/b", "x/c"], "labels": {"app": "web"}}});
    let added = strategic(&server, POD, &patch).await;
    assert_eq!(
        added.json["metadata"]["finalizers"],
        json!(["x/a", "x/b", "x/c"])
    );
    assert_eq!(added.json["metadata"]["labels"], json!({"app": "web"}));
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["x/a", "x/none"], "finalizers": ["x/d"],
        "$setElementOrder/finalizers": ["x/c", "x/d", "x/b"], "labels": {"app": null},
    }});
    let gone = strategic(&server, POD, &patch).await;
    assert_eq!(
        gone.json["metadata"]["finalizers"],
        json!(["x/c", "x/d", "x/b"])
    );
    assert_eq!(gone.json["metadata"].get("labels"), None);
}

#[tokio::test(start_paused = true)]
async fn lists_without_a_strategy_are_replaced() {
    let spec =
        json!({"tolerations": [{"key": "a"}, {"key": "b"}], "nodeSelector": {"x": "1", "y": "2"}});
    let patch = json!({"tolerations": [{"key": "c", "value": null}], "nodeSelector": {"x": null, "z": "3"}});
    assert_eq!(
        patched(&spec, &patch).await,
        json!({"tolerations": [{"key": "c"}], "nodeSelector": {"y": "2", "z": "3"}})
    );
}

#[tokio::test(start_paused = true)]
async fn retain_keys_removes_every_other_member() {
    let spec = json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]});
    let patch = json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]});
    assert_eq!(
        patched(&spec, &patch).await,
        json!({"volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}, {"name": "w", "emptyDir": {}}]})
    );
    let patch =
        json!({"volumes": [{"name": "v", "$retainKeys": ["name"], "configMap": {"name": "c"}}]});
    assert_eq!(
        refused(&spec, &patch).await,
        "400 BadRequest: invalid patch format of retainKeys"
    );
    let deployment = serving(
        "apps/v1",
        "Deployment",
        &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
    );
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let reply = strategic(&deployment, DEPLOYMENT, &patch).await;
    assert_eq!(reply.json["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[tokio::test(start_paused = true)]
async fn marked_items_and_maps_are_deleted_or_replaced() {
    let spec =
        json!({"containers": [{"name": "a"}, {"name": "b"}], "securityContext": {"runAsUser": 1}});
    let patch = json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "c", "env": [{"name": "E", "$patch": "delete"}]}]});
    assert_eq!(
        patched(&spec, &patch).await["containers"],
        json!([{"name": "c", "env": [{"name": "E"}]}, {"name": "b"}])
    );
    let patch = json!({
        "containers": [{"name": "z"}, {"$patch": "replace"}],
        "securityContext": {"$patch": "replace", "runAsGroup": 2, "fsGroup": null},
        "affinity": {"$patch": "delete"},
    });
    assert_eq!(
        patched(&spec, &patch).await,
        json!({"containers": [{"name": "z"}], "securityContext": {"runAsGroup": 2}})
    );
    let patch = json!({"securityContext": {"$patch": "delete"}});
    assert_eq!(patched(&spec, &patch).await.get("securityContext"), None);
}

#[tokio::test(start_paused = true)]
async fn set_element_order_also_orders_items_that_the_patch_does_not_contain() {
    let spec = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]});
    let patch = json!({
        "$setElementOrder/containers": [{"name": "d"}, {"name": "new"}, {"name": "a"}],
        "containers": [{"name": "new"}, {"name": "a", "image": "i"}],
    });
    assert_eq!(
        patched(&spec, &patch).await,
        json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "new"}, {"name": "a", "image": "i"}]})
    );
    let room = json!({
        "$setElementOrder/containers": [{"name": "new"}, {"name": "d"}],
        "containers": [{"name": "a", "$patch": "delete"}, {"name": "new"}],
    });
    assert_eq!(
        patched(&spec, &room).await,
        json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "new"}, {"name": "d"}]}),
        "a new item follows the remaining ones"
    );
    let alone = json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]});
    assert_eq!(
        patched(&spec, &alone).await,
        json!({"containers": [{"name": "b"}, {"name": "a"}, {"name": "c"}, {"name": "d"}]})
    );
    let fresh =
        json!({"$setElementOrder/volumes": [{"name": "v"}], "volumes": [{"name": "v", "x": null}]});
    assert_eq!(
        patched(&spec, &fresh).await["volumes"],
        json!([{"name": "v", "emptyDir": {}}])
    );
}

#[tokio::test(start_paused = true)]
async fn a_replace_strategy_stores_the_value_of_the_patch() {
    let spec = json!({"selector": {"matchLabels": {"a": "1"}}, "minAvailable": 1});
    let server = serving("policy/v1", "PodDisruptionBudget", &spec);
    let uri = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/a";
    let revision = server
        .get("policy/v1", "poddisruptionbudgets", "default/a")
        .unwrap()["metadata"]["resourceVersion"]
        .clone();
    let patch = json!({
        "metadata": {"resourceVersion": revision},
        "spec": {"selector": {"matchExpressions": [{"key": "b", "operator": "Exists"}]}},
    });
    let reply = strategic(&server, uri, &patch).await;
    assert_eq!(
        reply.json["spec"],
        json!({"selector": {"matchExpressions": [{"key": "b", "operator": "Exists"}]}, "minAvailable": 1})
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_kubernetes_cannot_apply_is_rejected_with_its_message() {
    let spec = json!({"containers": [{"name": "a"}], "nodeSelector": {"x": "1"}});
    let table = [
        (
            json!({"containers": [{"image": "i"}]}),
            "500 -: map: map[image:i] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "blend"}]}),
            "500 -: unknown patch type: blend in map: map[$patch:blend name:a]",
        ),
        (
            json!({"nodeSelector": {"$patch": "merge", "y": "2"}}),
            "500 -: unknown patch type: merge in map: map[$patch:merge y:2]",
        ),
        (
            json!({"containers": [{"name": "a", "$patch": "merge"}]}),
            "500 -: merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": ["a"]}),
            "500 -: list element types are not identical: [[map[imagePullPolicy:IfNotPresent name:a resources:map[] terminationMessagePath:/dev/termination-log terminationMessagePolicy:File]] [a]]",
        ),
        (
            json!({"$setElementOrder/containers": "a"}),
            "500 -: expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder": []}),
            "400 BadRequest: invalid patch format of setElementOrder list",
        ),
        (
            json!({"$deleteFromPrimitiveList": []}),
            "400 BadRequest: invalid patch format of primitive list",
        ),
        (
            json!({"$setElementOrder/nothing": ["a"], "nothing": ["a"]}),
            "500 -: unable to find api field in struct PodSpec for the json field \"nothing\"",
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}),
            "500 -: The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
    ];
    for (patch, refusal) in table {
        assert_eq!(refused(&spec, &patch).await, refusal, "{patch}");
    }
    let lists = json!({"metadata": {"finalizers": [["x/a"]]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": "a", "finalizers": []}});
    let reply = strategic(&builder().seed([pod]).build(), POD, &lists).await;
    assert_eq!(
        (reply.code, reply.json["reason"].as_str()),
        (422, Some("Invalid"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_a_map_is_rejected_and_null_changes_nothing() {
    let server = serving("v1", "Pod", &json!({}));
    assert_eq!(strategic(&server, POD, &json!(["a"])).await.code, 400);
    let same = strategic(&server, POD, &Value::Null).await;
    assert_eq!((same.code, same.revision()), (200, "1"));
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_reject_strategic_merge_patches() {
    let kind = Kind::custom("example.com", "v1", "Foo", "foos", Scope::Namespaced);
    let foo = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"namespace": "default", "name": "a"}});
    let server = builder().kind(kind).seed([foo]).build();
    let uri = "/apis/example.com/v1/namespaces/default/foos/a";
    let reply = strategic(&server, uri, &json!({"spec": {}})).await;
    assert_eq!(
        reply.refusal(),
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
}

#[tokio::test(start_paused = true)]
async fn subresources_are_patched_by_their_own_schema() {
    let server = serving("apps/v1", "Deployment", &json!({"replicas": 1}));
    let scale = format!("{DEPLOYMENT}/scale");
    let scaled = strategic(&server, &scale, &json!({"spec": {"replicas": 3}})).await;
    assert_eq!(
        (scaled.code, &scaled.json["spec"]["replicas"]),
        (200, &json!(3))
    );
    let status = format!("{DEPLOYMENT}/status");
    for (kind, state) in [
        ("Available", "True"),
        ("Progressing", "True"),
        ("Available", "False"),
    ] {
        let patch = json!({"status": {"conditions": [{"type": kind, "status": state}]}});
        assert_eq!(strategic(&server, &status, &patch).await.code, 200);
    }
    let stored = server.get("apps/v1", "deployments", "default/a").unwrap();
    let condition = |kind: &str, status: &str| {
        let never = Value::Null;
        json!({"type": kind, "status": status, "lastTransitionTime": never, "lastUpdateTime": never})
    };
    assert_eq!(
        stored["status"]["conditions"],
        json!([
            condition("Progressing", "True"),
            condition("Available", "False")
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn long_lists_are_merged_completely() {
    let items = |from: usize, image: &str| -> Vec<Value> {
        let names = from..from + 6_000;
        names
            .map(|at| json!({"name": format!("c{at}"), "image": image}))
            .collect()
    };
    let spec = json!({"containers": items(0, "old")});
    let patch = json!({"containers": items(3_000, "new")});
    let merged = patched(&spec, &patch).await;
    let containers = merged["containers"].as_array().unwrap();
    let is_new = containers.iter().filter(|one| one["image"] == "new");
    assert_eq!((containers.len(), is_new.count()), (9_000, 6_000));
}
