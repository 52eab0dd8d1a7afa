//! Tests lists, objects and watches in the representations `Table` and `PartialObjectMetadata`.

use bytes::Bytes;
use expect_test::expect;
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tower_service::Service;

use crate::ask::{builder, get_as, pod, pods, request};

const PODS: &str = "/api/v1/pods";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn columns(table: &Value) -> Vec<&str> {
    table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_returned_as_a_table_with_the_columns_of_its_kind() {
    let mut running = pod("a");
    running["status"] = json!({
        "phase": "Running",
        "containerStatuses": [{"ready": true, "restartCount": 2, "state": {"running": {}}}],
    });
    let server = builder()
        .seed([
            running,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}),
        ])
        .build();
    let table = get_as(&server, PODS, TABLE).await.json;
    assert_eq!(table["kind"], "Table");
    assert_eq!(
        columns(&table)[..5],
        ["Name", "Ready", "Status", "Restarts", "Age"]
    );
    assert_eq!(
        table["rows"][0]["cells"],
        json!([
            "a", "1/1", "Running", "2", "0s", "<none>", "<none>", "<none>", "<none>"
        ])
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let none = get_as(&server, &format!("{PODS}?includeObject=None"), TABLE)
        .await
        .json;
    assert_eq!(none["rows"][0].get("object"), Some(&Value::Null));
    let whole = get_as(&server, &format!("{PODS}?includeObject=Object"), TABLE)
        .await
        .json;
    assert_eq!(whole["rows"][0]["object"]["status"]["phase"], "Running");
    let configs = get_as(&server, "/api/v1/configmaps", TABLE).await.json;
    assert_eq!(columns(&configs), ["Name", "Data", "Age"]);
    let one = get_as(&server, "/api/v1/namespaces/default/pods/a", TABLE)
        .await
        .json;
    assert_eq!(
        (&one["kind"], one["rows"].as_array().unwrap().len()),
        (&"Table".into(), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn metadata_of_one_object_and_of_a_list_is_returned() {
    let server = pods(&["a"]);
    let list = get_as(&server, PODS, PARTIAL_LIST).await.json;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["apiVersion"], "meta.k8s.io/v1");
    let one = get_as(&server, "/api/v1/namespaces/default/pods/a", PARTIAL)
        .await
        .json;
    assert_eq!(list["items"], json!([one]));
    assert_eq!(
        one.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata"]
    );
    assert_eq!(one["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_representation_receives_406_without_an_alternative() {
    let server = pods(&["a"]);
    let one = "/api/v1/namespaces/default/pods/a";
    let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let available = "406: Not Acceptable\n\nAvailable representations";
    for (path, accept, message) in [
        (
            PODS,
            "application/*",
            format!("{available}: {types}, {streams}"),
        ),
        (one, "text/html", format!("{available}: {types}")),
        (
            one,
            "application/yaml;stream=watch",
            format!("only the following media types are accepted: {types}"),
        ),
    ] {
        let reply = get_as(&server, path, accept).await;
        assert_eq!(
            reply.refusal(),
            format!("406 NotAcceptable: {message}"),
            "{accept}"
        );
        let either = get_as(&server, path, &format!("{accept}, application/json")).await;
        assert_eq!(either.code, 200);
    }
    for (path, accept, whose) in [
        (PODS, PARTIAL, "is a list (*core.PodList)"),
        (one, PARTIAL_LIST, "is not a list (*core.Pod)"),
    ] {
        let reply = get_as(&server, path, accept).await;
        assert_eq!(reply.code, 406);
        assert!(reply.message().ends_with(whose), "{}", reply.message());
    }
    for accept in ["*/*", "application/json;charset=utf-8"] {
        assert_eq!(get_as(&server, PODS, accept).await.code, 200, "{accept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_response_is_not_acceptable_is_not_stored() {
    let server = pods(&["a"]);
    let revision = server.revision();
    let one = "/api/v1/namespaces/default/pods/a";
    let named = r#"{"metadata":{"name":"b"}}"#;
    for (method, path) in [("POST", PODS), ("PUT", one), ("DELETE", one)] {
        let request = request(method, path)
            .header("accept", "text/html")
            .header("content-type", "application/json");
        let request = request.body(named.to_owned().into()).unwrap();
        let reply = crate::ask::send(&server, request).await;
        assert_eq!(reply.code, 406, "{method}");
    }
    assert_eq!(server.revision(), revision);
}

/// Opens a watch that ends after 1 s, and returns its events.
///
/// The server has pod `b`. Pod `a` was deleted before the watch starts.
async fn watch_as(query: &str, accept: &str) -> Vec<Value> {
    let server = pods(&["a", "b"]);
    server.delete("v1", "pods", "default/a").unwrap();
    let uri = format!("{PODS}?watch=1&timeoutSeconds=1&{query}");
    let request = request("GET", &uri).header("accept", accept);
    let reply = crate::ask::send(
        &server,
        request.body(http_body_util::Full::default()).unwrap(),
    )
    .await;
    reply
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_tables_sends_its_columns_once() {
    let lines = watch_as("resourceVersion=1", TABLE).await;
    let types: Vec<_> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(types, ["ADDED", "DELETED"]);
    assert_eq!(columns(&lines[0]["object"])[0], "Name");
    assert_eq!(lines[1]["object"]["columnDefinitions"], Value::Null);
    assert_eq!(lines[1]["object"]["rows"][0]["cells"][0], "a");
    let closing = watch_as("allowWatchBookmarks=true&includeObject=None", TABLE)
        .await
        .remove(1);
    let annotations = &closing["object"]["rows"][0]["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_metadata_has_partial_objects_and_bookmarks_and_whole_errors() {
    let lines = watch_as("allowWatchBookmarks=true", PARTIAL).await;
    for line in &lines {
        assert_eq!(line["object"]["kind"], "PartialObjectMetadata", "{line}");
        assert!(line["object"].get("spec").is_none());
    }
    assert_eq!(lines[1]["type"], "BOOKMARK");
    let error = watch_as(
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99",
        PARTIAL,
    )
    .await;
    assert_eq!(error[0]["object"]["kind"], "Status");
}

/// Sends a list request, and returns the columns and rows of the `Table` as text.
async fn printed(server: &Server, path: &str) -> String {
    let table = get_as(server, path, TABLE).await.json;
    let mut text = columns(&table).join(" | ");
    for row in table["rows"].as_array().unwrap() {
        let cells = row["cells"].as_array().unwrap().iter();
        let cells: Vec<String> = cells
            .map(|cell| {
                cell.as_str()
                    .map_or_else(|| cell.to_string(), str::to_owned)
            })
            .collect();
        text.push('\n');
        text.push_str(&cells.join(" | "));
    }
    text.push('\n');
    text
}

#[tokio::test(start_paused = true)]
async fn tables_of_workloads_equal_those_of_kubernetes() {
    let template =
        json!({"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}});
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
        {"key": "z", "operator": "Exists"},
        {"key": "k", "operator": "In", "values": ["x", "y"]},
    ]});
    let ended = json!({"terminated": {"exitCode": 3}});
    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
    let mut failed = pod("p");
    failed["status"] =
        json!({"phase": "Failed", "containerStatuses": [{"state": ended}, {"state": waiting}]});
    let mut restarted = pod("q");
    restarted["spec"]["readinessGates"] = json!([{"conditionType": "x/y"}]);
    restarted["status"] = json!({"phase": "Running", "containerStatuses": [{
        "restartCount": 3, "ready": true, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2027-01-15T07:55:00Z"}},
    }]});
    let seeds = [
        failed,
        restarted,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 3, "selector": selector, "template": template},
            "status": {"readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "spec": {"completions": 2, "manualSelector": true, "template": template},
            "status": {"succeeded": 1, "startTime": "2027-01-15T07:58:00Z"}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
            "status": {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}}),
    ];
    let server = builder().seed(seeds).build();
    let mut text = String::new();
    for path in [
        PODS,
        "/apis/apps/v1/deployments",
        "/apis/batch/v1/jobs",
        "/api/v1/nodes",
    ] {
        text.push_str(&printed(&server, path).await);
    }
    expect![[r#"
        Name | Ready | Status | Restarts | Age | IP | Node | Nominated Node | Readiness Gates
        p | 0/1 | ExitCode:3 | 0 | 0s | <none> | <none> | <none> | <none>
        q | 1/1 | Running | 3 (5m ago) | 0s | <none> | <none> | <none> | 0/1
        Name | Ready | Up-to-date | Available | Age | Containers | Images | Selector
        d | 2/3 | 1 | 2 | 0s | c,d | i,j | a=b,k in (x,y),z
        Name | Status | Completions | Duration | Age | Containers | Images | Selector
        j | Running | 1/2 | 2m | 0s | c,d | i,j | <none>
        Name | Status | Roles | Age | Version | Internal-IP | External-IP | OS-Image | Kernel-Version | Container-Runtime
        n | Unknown | <none> | 0s |  | 1.2.3.4 | <none> | <unknown> | <unknown> | <unknown>
    "#]].assert_eq(&text);
}

fn services_storage_and_events() -> [Value; 9] {
    [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "selector": {"a": "b"}, "externalIPs": ["9.9.9.9"],
                "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h.x"}]}}}),
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"},
            "subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}], "ports": [{"port": 80}, {"port": 81}]}]}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "storageClassName": "c",
                "claimRef": {"namespace": "n", "name": "c"}},
            "status": {"phase": "Bound"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"]}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
            "spec": {"tls": [{}], "rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}]}}),
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}]}}),
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"}, "type": "Normal", "reason": "r", "message": " m\n",
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.c"}, "count": 4,
            "source": {"component": "kubelet", "host": "h"},
            "firstTimestamp": "2027-01-15T06:00:00Z", "lastTimestamp": "2027-01-15T07:00:00Z"}),
        json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e2"}, "type": "Normal", "reason": "r", "note": "n",
            "regarding": {"kind": "Pod", "name": "p"}, "eventTime": "2027-01-15T06:00:00.000000Z",
            "reportingController": "c", "reportingInstance": "i",
            "series": {"count": 7, "lastObservedTime": "2027-01-15T07:59:00.000000Z"}}),
    ]
}

#[tokio::test(start_paused = true)]
async fn tables_of_services_storage_and_events_equal_those_of_kubernetes() {
    let server = builder().seed(services_storage_and_events()).build();
    let mut text = String::new();
    for path in [
        "/api/v1/services",
        "/api/v1/endpoints",
        "/api/v1/secrets",
        "/api/v1/persistentvolumes",
        "/api/v1/persistentvolumeclaims",
        "/apis/networking.k8s.io/v1/ingresses",
        "/apis/autoscaling/v2/horizontalpodautoscalers",
        "/api/v1/events",
        "/apis/events.k8s.io/v1/events",
    ] {
        text.push_str(&printed(&server, path).await);
    }
    expect![[r#"
        Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector
        kubernetes | ClusterIP | 10.96.0.1 | <none> | 443/TCP | 0s | <none>
        s | LoadBalancer | 10.0.0.1 | 1.2.3.4,h.x,9.9.9.9 | 80:30080/TCP,53:30000/UDP | 0s | a=b
        Name | Endpoints | Age
        e | 1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more... | 0s
        kubernetes | 192.0.2.1:6443 | 0s
        Name | Type | Data | Age
        s | Opaque | 1 | 0s
        Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | VolumeAttributesClass | Reason | Age | VolumeMode
        v | 1Gi | RWO,RWX | Retain | Bound | n/c | c | <unset> |  | 0s | Filesystem
        Name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age | VolumeMode
        c | Pending |  |  |  |  | <unset> | 0s | Filesystem
        Name | Class | Hosts | Address | Ports | Age
        i | <none> | a,b,c + 1 more... |  | 80, 443 | 0s
        Name | Reference | Targets | MinPods | MaxPods | Replicas | Age
        h | Deployment/d | cpu: <unknown>/50% | 1 | 3 | 0 | 0s
        Last Seen | Type | Reason | Object | Subobject | Source | Message | First Seen | Count | Name
        60m | Normal | r | pod/p | spec.c | kubelet, h | m | 120m | 4 | e1
        60s | Normal | r | pod/p |  | c, i | n | 120m | 7 | e2
        Last Seen | Type | Reason | Object | Subobject | Source | Message | First Seen | Count | Name
        60m | Normal | r | pod/p | spec.c | kubelet, h | m | 120m | 4 | e1
        60s | Normal | r | pod/p |  | c, i | n | 120m | 7 | e2
    "#]].assert_eq(&text);
}

#[tokio::test(start_paused = true)]
async fn lists_and_tables_in_yaml_have_the_values_of_those_in_json() {
    let table = ";as=Table;g=meta.k8s.io;v=v1";
    for names in [&["a", "b"][..], &[]] {
        let server = pods(names);
        for (path, form) in [
            (PODS, ""),
            (PODS, table),
            ("/api/v1/namespaces/default", ""),
        ] {
            let json = get_as(&server, path, &format!("application/json{form}")).await;
            let yaml = get_as(&server, path, &format!("application/yaml{form}")).await;
            assert_eq!(yaml.headers["content-type"], "application/yaml");
            let value: Value = serde_saphyr::from_str(&yaml.text).unwrap();
            assert_eq!(value, json.json, "{}", yaml.text);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_of_a_table_in_yaml_can_be_too_deep() {
    let mut data = json!(0);
    for _ in 0..125 {
        data = json!([data]);
    }
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"namespace": "default", "name": "a"}, "data": {"x": data}});
    let server = builder().seed([revision]).build();
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions/a?includeObject=Object";
    let accept = "application/yaml;as=Table;g=meta.k8s.io;v=v1";
    let request = request("GET", path).header("accept", accept);
    let response = server
        .clone()
        .call(request.body(Full::<Bytes>::default()).unwrap());
    let body = response.await.unwrap().into_body();
    assert!(body.collect().await.is_err());
}
