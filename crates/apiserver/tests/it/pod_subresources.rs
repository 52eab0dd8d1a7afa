//! Tests the subresources that change the `spec` of a pod: `ephemeralcontainers` and `resize`.

use bytes::Bytes;
use http_body_util::Full;
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::ask::{Reply, builder, get, pod, request, send, with};

const POD: &str = "/api/v1/namespaces/default/pods/a";
const EPHEMERAL: &str = "/api/v1/namespaces/default/pods/a/ephemeralcontainers";
const RESIZE: &str = "/api/v1/namespaces/default/pods/a/resize";

/// A server with the pod `a`, whose `spec` has these members too.
fn server(spec: &Value) -> Server {
    let mut pod = pod("a");
    let members = spec.as_object().cloned().unwrap();
    pod["spec"].as_object_mut().unwrap().extend(members);
    builder().seed([pod]).build()
}

/// Sends a strategic merge patch of the `spec`, as kubectl does.
async fn merge(server: &Server, uri: &str, spec: &Value) -> Reply {
    let patch = request("PATCH", uri);
    let patch = patch.header("content-type", "application/strategic-merge-patch+json");
    let body = Bytes::from(json!({ "spec": spec }).to_string());
    send(server, patch.body(Full::from(body)).unwrap()).await
}

async fn debug(server: &Server, container: &Value) -> Reply {
    let spec = json!({"ephemeralContainers": [container]});
    merge(server, EPHEMERAL, &spec).await
}

/// Returns the errors about the pod `a`.
fn errors(reply: &Reply) -> &str {
    assert_eq!(reply.code, 422, "{}", reply.text);
    let errors = reply.message().strip_prefix("Pod \"a\" is invalid: ");
    errors.unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_ephemeral_containers_change_with_their_subresource() {
    let server = server(&json!({}));
    let mut sent = get(&server, POD).await.json;
    sent["metadata"]["labels"] = json!({"k": "v"});
    sent["status"] = json!({"phase": "Failed"});
    sent["spec"]["containers"][0]["image"] = json!("other");
    sent["spec"]["nodeName"] = json!("n");
    sent["spec"]["ephemeralContainers"] = json!([{"name": "x", "image": "b:1"}]);
    let added = with(&server, "PUT", EPHEMERAL, &sent).await;
    assert_eq!(added.code, 200, "{}", added.text);
    let pod = get(&server, EPHEMERAL).await.json;
    assert_eq!(pod, get(&server, POD).await.json);
    assert_eq!(pod["metadata"]["generation"], 2);
    assert_eq!(pod["metadata"].get("labels"), None);
    assert_eq!(pod["status"]["phase"], "Pending");
    assert_eq!(pod["spec"]["containers"][0]["image"], "i");
    assert_eq!(pod["spec"].get("nodeName"), None);
    let container = &pod["spec"]["ephemeralContainers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(container["terminationMessagePolicy"], "File");

    let main = json!({"ephemeralContainers": [{"name": "y", "image": "b"}]});
    let refused = merge(&server, POD, &main).await;
    assert!(errors(&refused).contains("pod updates may not change fields"));
    let missing = EPHEMERAL.replace("/a/", "/b/");
    assert_eq!(merge(&server, &missing, &main).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_is_neither_removed_nor_changed() {
    let server = server(&json!({}));
    let added = debug(&server, &json!({"name": "x", "image": "b"})).await;
    assert_eq!(added.code, 200);
    let again = debug(&server, &json!({"name": "y", "image": "b"})).await;
    let names = again.json["spec"]["ephemeralContainers"].as_array();
    assert_eq!(names.unwrap().len(), 2, "a patch adds to the others");
    let removal = json!({"spec": {"ephemeralContainers": null}});
    let removed = with(&server, "PATCH", EPHEMERAL, &removal).await;
    assert_eq!(
        errors(&removed),
        "[spec.ephemeralContainers: Forbidden: existing ephemeral containers \"y\" may not be removed\n, spec.ephemeralContainers: Forbidden: existing ephemeral containers \"x\" may not be removed\n]"
    );
    let changed = debug(&server, &json!({"name": "x", "tty": true})).await;
    assert_eq!(
        errors(&changed),
        "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"x\" may not be changed\n@@ -27,6 +27,6 @@\n  \"SecurityContext\": null,\n  \"Stdin\": false,\n  \"StdinOnce\": false,\n- \"TTY\": false,\n+ \"TTY\": true,\n  \"TargetContainerName\": \"\"\n }\n"
    );
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_has_no_part_in_the_workload() {
    let server = server(&json!({"volumes": [{"name": "v", "emptyDir": {}}]}));
    for (members, expected) in [
        (
            json!({"name": "c"}),
            "spec.ephemeralContainers[0].name: Duplicate value: \"c\"",
        ),
        (
            json!({"image": null}),
            "spec.ephemeralContainers[0].image: Required value",
        ),
        (
            json!({"image": " b"}),
            "spec.ephemeralContainers[0].image: Invalid value: \" b\": must not have leading or trailing whitespace",
        ),
        (
            json!({"targetContainerName": "x"}),
            "spec.ephemeralContainers[0].targetContainerName: Not found: \"x\"",
        ),
        (
            json!({"ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}, "lifecycle": {}}),
            "[spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container, spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container, spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container]",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "s"}]}),
            "spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
        ),
    ] {
        let mut container = json!({"name": "x", "image": "b"});
        let members = members.as_object().cloned().unwrap();
        container.as_object_mut().unwrap().extend(members);
        let refused = debug(&server, &container).await;
        assert_eq!(errors(&refused), expected);
    }
    let target = json!({"name": "x", "image": "b", "targetContainerName": "c"});
    assert_eq!(debug(&server, &target).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_has_no_ephemeral_containers_and_is_not_resized() {
    let mut pod = pod("a");
    pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let server = builder().seed([pod]).build();
    let refused = debug(&server, &json!({"name": "c", "image": "b"})).await;
    assert_eq!(
        errors(&refused),
        "[]: Forbidden: static pods do not support ephemeral containers"
    );
}

#[tokio::test(start_paused = true)]
async fn a_writer_of_a_subresource_owns_what_it_sends() {
    let server = builder().build();
    with(
        &server,
        "POST",
        "/api/v1/namespaces/default/pods",
        &pod("a"),
    )
    .await;
    let uri = format!("{EPHEMERAL}?fieldManager=debugger");
    let container = json!({"name": "x", "image": "b"});
    let sent = json!({
        "metadata": {"labels": {"k": "v"}},
        "spec": {"ephemeralContainers": [container]},
    });
    let added = with(&server, "PATCH", &uri, &sent).await.json;
    let owners = added["metadata"]["managedFields"].as_array().unwrap();
    let owner = owners.iter().find(|owner| owner["manager"] == "debugger");
    let owner = owner.unwrap();
    assert_eq!(owner["subresource"], "ephemeralcontainers");
    let fields = owner["fieldsV1"].as_object().unwrap();
    // As in Kubernetes, also labels, which the write does not set.
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["f:metadata", "f:spec"]);
    assert_eq!(added["metadata"].get("labels"), None);
}

/// Resources with these requests and limits.
fn resources(requests: &Value, limits: &Value) -> Value {
    json!({"requests": requests, "limits": limits})
}

/// A server with the pod `a`, whose only container has these resources.
fn sized(resources: &Value) -> Server {
    let container = json!({"name": "c", "image": "i", "resources": resources});
    server(&json!({ "containers": [container] }))
}

async fn resize(server: &Server, resources: &Value) -> Reply {
    let container = json!({"name": "c", "resources": resources});
    merge(server, RESIZE, &json!({ "containers": [container] })).await
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_only_resources() {
    let server = sized(&json!({"requests": {"cpu": "1"}}));
    let mut sent = get(&server, POD).await.json;
    sent["metadata"]["annotations"] = json!({"k": "v"});
    sent["spec"]["containers"][0]["image"] = json!("other");
    sent["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    sent["spec"]["nodeName"] = json!("n");
    let resized = with(&server, "PUT", RESIZE, &sent).await;
    assert_eq!(resized.code, 200, "{}", resized.text);
    let pod = get(&server, RESIZE).await.json;
    assert_eq!(pod["metadata"]["generation"], 2);
    assert_eq!(pod["metadata"].get("annotations"), None);
    assert_eq!(pod["spec"]["containers"][0]["image"], "i");
    assert_eq!(pod["spec"].get("nodeName"), None);
    let resources = &pod["spec"]["containers"][0]["resources"];
    assert_eq!(*resources, json!({"requests": {"cpu": "2"}}));
    let before = server.revision();
    let same = resize(&server, &json!({"requests": {"cpu": "2000m"}})).await;
    assert_eq!((same.code, server.revision()), (200, before));
}

#[tokio::test(start_paused = true)]
async fn a_resize_keeps_the_quality_of_service() {
    let both = json!({"cpu": "1", "memory": "1Gi"});
    let server = sized(&resources(&both, &both));
    let less = json!({"requests": {"cpu": "500m"}});
    assert_eq!(
        errors(&resize(&server, &less).await),
        "spec: Invalid value: \"Guaranteed\": Pod QOS Class may not change as a result of resizing"
    );
    let more = json!({"cpu": "2"});
    let resized = resize(&server, &resources(&more, &json!({"cpu": "2000m"}))).await;
    assert_eq!(resized.code, 200, "{}", resized.text);
    let none = sized(&json!({"requests": {"cpu": "0"}}));
    let class = &get(&none, POD).await.json["status"]["qosClass"];
    assert_eq!(class, "BestEffort", "zero is no request");
}

#[tokio::test(start_paused = true)]
async fn pods_that_can_not_be_resized_are_rejected() {
    let running =
        |resources: Value| json!({"name": "c", "state": {"running": {}}, "resources": resources});
    let mut old = pod("a");
    old["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    let mut of_windows = old.clone();
    of_windows["spec"]["os"] = json!({"name": "windows"});
    let mut on_old_node = old.clone();
    on_old_node["status"] =
        json!({"qosClass": "Burstable", "containerStatuses": [running(Value::Null)]});
    let mut on_new_node = old.clone();
    on_new_node["status"] =
        json!({"qosClass": "Burstable", "containerStatuses": [running(json!({}))]});
    let mut is_static = old;
    is_static["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let twice = json!({"requests": {"cpu": "2"}});
    for (pod, expected) in [
        (of_windows, "[]: Forbidden: windows pods cannot be resized"),
        (is_static, "[]: Forbidden: static pods cannot be resized"),
        (
            on_old_node,
            "spec: Forbidden: Pod running on node without support for resize",
        ),
    ] {
        let server = builder().seed([pod]).build();
        assert_eq!(errors(&resize(&server, &twice).await), expected);
    }
    let server = builder().seed([on_new_node]).build();
    assert_eq!(resize(&server, &twice).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn resources_of_the_pod_and_of_init_containers_can_change() {
    let init = |resources: Value, policy: &str| {
        let policy = json!([{"resourceName": "cpu", "restartPolicy": policy}]);
        json!({"name": "i", "image": "i", "resources": resources, "resizePolicy": policy})
    };
    let cpu = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let spec = |of_pod: Value, of_init: Value, policy: &str| json!({"resources": of_pod, "initContainers": [init(of_init, policy)]});
    let old = server(&spec(cpu("5"), cpu("1"), "NotRequired"));
    let changed = merge(&old, RESIZE, &spec(cpu("6"), cpu("2"), "NotRequired")).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    let changed = &changed.json["spec"];
    assert_eq!(changed["resources"], cpu("6"));
    assert_eq!(changed["initContainers"][0]["resources"], cpu("2"));
    let removed = json!({"resources": null});
    let removed = merge(&old, RESIZE, &removed).await;
    assert_eq!(
        errors(&removed),
        "spec.resources: Forbidden: pod-level resources cannot be removed"
    );
    let pages = json!({"resources": {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}});
    assert_eq!(
        errors(&merge(&old, RESIZE, &pages).await),
        "spec: Forbidden: only cpu and memory resources are mutable at pod-level"
    );
    // Only a direct call can still store such a policy.
    let restarts = server(&spec(Value::Null, cpu("1"), "RestartContainer"));
    let changed = json!({"initContainers": [{"name": "i", "resources": cpu("2")}]});
    let refused = merge(&restarts, RESIZE, &changed).await;
    assert_eq!(
        errors(&refused),
        "spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resize_policy_is_checked() {
    let pods = "/api/v1/namespaces/default/pods";
    let server = builder().build();
    let policy =
        |name: &str, restart: &str| json!({"resourceName": name, "restartPolicy": restart});
    let mut new = pod("a");
    new["spec"]["restartPolicy"] = json!("Never");
    new["spec"]["containers"][0]["resizePolicy"] = json!([
        policy("cpu", "NotRequired"),
        policy("cpu", "RestartContainer"),
        policy("x", "y")
    ]);
    assert_eq!(
        errors(&with(&server, "POST", pods, &new).await),
        "[spec.containers[0].resizePolicy[1]: Duplicate value: \"cpu\", spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never', spec.containers[0].resizePolicy: Unsupported value: \"x\": supported values: \"cpu\", \"memory\", spec.containers[0].resizePolicy: Unsupported value: \"y\": supported values: \"NotRequired\", \"RestartContainer\", spec.containers[0].resizePolicy: Invalid value: \"y\": must be 'NotRequired' when pod `restartPolicy` is 'Never']"
    );
}

#[tokio::test(start_paused = true)]
async fn other_changes_of_containers_are_rejected() {
    let container =
        |name: &str, resources: Value| json!({"name": name, "image": "i", "resources": resources});
    let of = |containers: Vec<Value>| json!({"metadata": {"name": "a"}, "spec": {"containers": containers}});
    let old = resources(&json!({"cpu": "1"}), &json!({"memory": "1Gi"}));
    let server = server(&json!({"containers": [container("c", old.clone())]}));
    let mut with_policy = container("c", old.clone());
    with_policy["resizePolicy"] =
        json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    let pages = json!({"memory": "1Gi", "hugepages-2Mi": "2Mi"});
    for (containers, expected) in [
        (
            vec![container("d", old.clone())],
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
        ),
        (
            vec![container("c", old.clone()), container("d", old.clone())],
            "spec.containers: Forbidden: containers may not be added or removed on resize",
        ),
        (
            vec![container(
                "c",
                json!({"requests": {"cpu": "1", "memory": "1Gi"}}),
            )],
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
        ),
        (
            vec![with_policy],
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            vec![container("c", resources(&json!({"cpu": "1"}), &pages))],
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
    ] {
        let refused = with(&server, "PUT", RESIZE, &of(containers)).await;
        assert_eq!(errors(&refused), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_with_a_resource_claim_is_not_resized() {
    let claiming = json!({"requests": {"cpu": "1"}, "claims": [{"name": "x"}]});
    let mut container = json!({"name": "c", "image": "i"});
    container["resources"] = claiming;
    let server = server(&json!({
        "containers": [container],
        "resourceClaims": [{"name": "x", "resourceClaimName": "y"}],
    }));
    let refused = resize(&server, &json!({"requests": {"cpu": "2"}})).await;
    assert_eq!(
        errors(&refused),
        "spec: Forbidden: only cpu and memory resources are mutable"
    );
}
