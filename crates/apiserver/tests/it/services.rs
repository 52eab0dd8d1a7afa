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
    assert_eq!(refused.code, 422);
    let message = refused.json["message"].as_str().unwrap();
    assert!(
        message.ends_with("failed to allocate a nodePort: range is full"),
        "{message}"
    );
    assert_eq!(
        with(&server, "POST", SERVICES, &service("b", "ClusterIP"))
            .await
            .code,
        201
    );
}
