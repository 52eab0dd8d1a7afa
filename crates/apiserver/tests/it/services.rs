//! Tests the addresses and ports of services. The cases of `verify/cases/kinds` compare single requests with
//! kube-apiserver.

use std::collections::BTreeSet;

use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::ask::{builder, get, with};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, kind: &str) -> Value {
    let spec = json!({"type": kind, "ports": [{"port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

async fn addresses(server: &Server) -> Vec<String> {
    let list = get(server, SERVICES).await.json;
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|service| service["spec"]["clusterIP"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn addresses_and_node_ports_are_distinct_and_reproducible() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = builder().build();
        for nth in 0..200 {
            let body = service(&format!("s{nth}"), "NodePort");
            if nth % 2 == 0 {
                server.create(body).unwrap();
            } else {
                assert_eq!(with(&server, "POST", SERVICES, &body).await.code, 201);
            }
        }
        let list = get(&server, SERVICES).await.json;
        let items = list["items"].as_array().unwrap().iter();
        let ports: BTreeSet<i64> = items
            .filter_map(|service| service["spec"]["ports"][0]["nodePort"].as_i64())
            .collect();
        assert_eq!(ports.len(), 200);
        runs.push(addresses(&server).await);
    }
    let distinct: BTreeSet<&String> = runs[0].iter().collect();
    assert_eq!(distinct.len(), 201, "with the service `kubernetes`");
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn the_address_and_the_port_of_a_deleted_service_are_free() {
    let server = builder().build();
    let mut body = service("a", "NodePort");
    body["spec"]["clusterIP"] = json!("10.0.0.7");
    body["spec"]["ports"][0]["nodePort"] = json!(30_007);
    assert_eq!(with(&server, "POST", SERVICES, &body).await.code, 201);
    body["metadata"]["name"] = json!("b");
    assert_eq!(with(&server, "POST", SERVICES, &body).await.code, 422);
    server.delete("v1", "services", "default/a").unwrap();
    assert_eq!(with(&server, "POST", SERVICES, &body).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn a_full_range_of_node_ports_is_an_error() {
    let server = builder().build();
    let ports = |first: u32, count: u32| -> Vec<Value> {
        let ports = first..first + count;
        ports
            .map(|port| json!({"name": format!("p{port}"), "port": port}))
            .collect()
    };
    let mut body = service("a", "NodePort");
    body["spec"]["ports"] = json!(ports(1, 2_768));
    assert_eq!(with(&server, "POST", SERVICES, &body).await.code, 201);
    let refused = with(&server, "POST", SERVICES, &service("b", "NodePort")).await;
    assert_eq!(refused.code, 500);
    let message = "Internal error occurred: failed to allocate a nodePort: range is full";
    assert_eq!(refused.json["message"], message);
    assert_eq!(
        with(&server, "POST", SERVICES, &service("b", "ClusterIP"))
            .await
            .code,
        201
    );
}

fn node_ports(service: &Value) -> Vec<i64> {
    let ports = service["spec"]["ports"].as_array().unwrap().iter();
    ports.filter_map(|port| port["nodePort"].as_i64()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_port_that_a_service_asks_for_is_not_chosen_for_another_of_its_ports() {
    let server = builder().build();
    let mut body = service("a", "LoadBalancer");
    body["spec"]["externalTrafficPolicy"] = json!("Local");
    body["spec"]["healthCheckNodePort"] = json!(30_001);
    body["spec"]["ports"] = json!([
        {"name": "a", "port": 80},
        {"name": "b", "port": 443, "nodePort": 30_000},
        {"name": "c", "port": 80, "protocol": "UDP"},
    ]);
    let made = with(&server, "POST", SERVICES, &body).await;
    assert_eq!(made.code, 201, "{}", made.json);
    assert_eq!(node_ports(&made.json), [30_002, 30_000, 30_002]);

    let mut changed = made.json;
    changed["spec"]["ports"] = json!([
        {"name": "a", "port": 80, "nodePort": 30_003},
        {"name": "b", "port": 443},
        {"name": "d", "port": 80, "protocol": "SCTP"},
    ]);
    let path = format!("{SERVICES}/a");
    let changed = with(&server, "PUT", &path, &changed).await;
    assert_eq!(changed.code, 200, "{}", changed.json);
    assert_eq!(node_ports(&changed.json), [30_003, 30_000, 30_004]);

    let mut twice = service("b", "NodePort");
    twice["spec"]["ports"] = json!([
        {"name": "a", "port": 80, "nodePort": 30_100},
        {"name": "b", "port": 81, "nodePort": 30_100, "protocol": "UDP"},
    ]);
    let refused = with(&server, "POST", SERVICES, &twice).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.json["message"],
        "Service \"b\" is invalid: spec.ports[1].nodePort: Invalid value: 30100: provided port is already allocated"
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_of_a_direct_call_only_receives_what_it_lacks() {
    let server = builder().build();
    let mut body = service("a", "NodePort");
    body["spec"]["clusterIP"] = json!("10.96.0.7");
    body["spec"]["ports"][0]["nodePort"] = json!(1);
    server.create(body.clone()).unwrap();
    body["metadata"]["name"] = json!("b");
    body["spec"]["ipFamilies"] = json!(["IPv6"]);
    let same = server.create(body.clone()).unwrap();
    assert_eq!(same["spec"]["clusterIP"], "10.96.0.7");
    assert_eq!(same["spec"]["ipFamilies"], json!(["IPv6"]));
    assert_eq!(node_ports(&same), [1]);

    let mut other = service("b", "NodePort");
    other["spec"]["ports"] =
        json!([{"name": "a", "port": 80, "nodePort": 2}, {"name": "b", "port": 81}]);
    let kept = server.update(other).unwrap();
    assert_eq!(kept["spec"]["clusterIPs"], json!(["10.96.0.7"]));
    assert_eq!(node_ports(&kept), [2, 30_000]);

    for spec in [json!("x"), json!({"clusterIP": 1}), json!({"ports": [1]})] {
        let ill =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c"}, "spec": spec});
        let made = server.create(ill.clone()).unwrap();
        let kept: Vec<_> = match &spec {
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| made["spec"][name] == *value)
                .collect(),
            spec => vec![made["spec"] == *spec],
        };
        assert_eq!(kept, [true], "{made}");
        assert_eq!(made["spec"].get("ipFamilies"), None);
        server.update(ill).unwrap();
        server.delete("v1", "services", "default/c").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_without_an_address_receives_one_when_it_changes() {
    let server = builder().build();
    let bare =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": "x"});
    server.create(bare).unwrap();
    let path = format!("{SERVICES}/a");
    let changed = with(&server, "PUT", &path, &service("a", "ClusterIP")).await;
    assert_eq!(changed.code, 200, "{}", changed.json);
    assert!(
        changed.json["spec"]["clusterIP"]
            .as_str()
            .unwrap()
            .starts_with("10.96.")
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_load_balancer_has_no_status_of_one() {
    let server = builder().build();
    let mut body = service("a", "LoadBalancer");
    body["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    let mut made = server.create(body).unwrap();
    let path = format!("{SERVICES}/a");
    let same = with(&server, "PUT", &path, &made).await.json;
    assert_eq!(
        same["status"]["loadBalancer"]["ingress"][0]["ip"],
        "192.0.2.1"
    );
    made["spec"]["type"] = json!("ClusterIP");
    let changed = with(&server, "PUT", &path, &made).await.json;
    assert_eq!(changed["status"], json!({"loadBalancer": {}}));
}

#[tokio::test(start_paused = true)]
async fn two_changes_at_the_same_time_never_get_the_same_node_port() {
    let server = builder().build();
    for nth in 0..400 {
        server
            .create(service(&format!("s{nth}"), "ClusterIP"))
            .unwrap();
    }
    std::thread::scope(|scope| {
        for half in 0..2 {
            let server = &server;
            scope.spawn(move || {
                for nth in 0..200 {
                    let name = format!("s{}", half * 200 + nth);
                    server.update(service(&name, "NodePort")).unwrap();
                }
            });
        }
    });
    let list = get(&server, SERVICES).await.json;
    let items = list["items"].as_array().unwrap().iter();
    let ports: BTreeSet<i64> = items.flat_map(node_ports).collect();
    assert_eq!(ports.len(), 400);
}
