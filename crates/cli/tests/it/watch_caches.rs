//! Tests the flags of `serve` that set the sizes of watch caches.
//!
//! A size determines the oldest revision from which a client can start a watch.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube_client::{
    Api, Client,
    api::{ListParams, PostParams},
    core::ObjectMeta,
};
use serde_json::Value;

use crate::serve::{client, serving_with};

async fn answer(client: &Client, path: &str) -> String {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

/// Watches a resource from the revision `from` for at most one second, and returns a text for each event.
///
/// The text is the code of an `ERROR` event, or the revision of the object in any other event.
async fn replayed(client: &Client, resource: &str, from: u64) -> Vec<String> {
    let path = format!("/api/v1/{resource}?watch=1&resourceVersion={from}&timeoutSeconds=1");
    let received = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let object = &event["object"];
        match event["type"].as_str().unwrap() {
            "ERROR" => object["code"].to_string(),
            _ => object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .to_owned(),
        }
    };
    answer(client, &path).await.lines().map(received).collect()
}

/// Creates five secrets, then five namespaces. Returns the revision before each group.
async fn ten_objects(client: &Client) -> (u64, u64) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let list = secrets.list(&ListParams::default()).await.unwrap();
    let start: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
    let metadata = |nth: u64| ObjectMeta {
        name: Some(format!("n{nth}")),
        ..ObjectMeta::default()
    };
    let params = PostParams::default();
    for nth in 0..5 {
        let secret = Secret {
            metadata: metadata(nth),
            ..Secret::default()
        };
        secrets.create(&params, &secret).await.unwrap();
    }
    for nth in 0..5 {
        let namespace = Namespace {
            metadata: metadata(nth),
            ..Namespace::default()
        };
        namespaces.create(&params, &namespace).await.unwrap();
    }
    (start, start + 5)
}

/// Returns the number of objects in a list with `resourceVersion=0` and a limit of 2.
///
/// A watch cache ignores the limit. A result greater than 2 therefore shows that a watch cache served the
/// list.
async fn listed_with_a_limit(client: &Client, resource: &str) -> usize {
    let path = format!("/api/v1/{resource}?resourceVersion=0&limit=2");
    let list: Value = serde_json::from_str(&answer(client, &path).await).unwrap();
    list["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_size_limits_how_far_back_watches_of_a_resource_start() {
    let flags = ["--watch-cache-sizes", "secrets#2,nodes#50"];
    let (server, path) = serving_with("sizes.yaml", &flags).await;
    let client = client(&path).await;
    let (secrets, namespaces) = ten_objects(&client).await;
    assert_eq!(replayed(&client, "secrets", secrets).await, ["410"]);
    let last_two = [secrets + 4, secrets + 5].map(|revision| revision.to_string());
    assert_eq!(replayed(&client, "secrets", secrets + 3).await, last_two);
    let all = replayed(&client, "namespaces", namespaces).await;
    assert_eq!(all.len(), 5, "it has the default size");
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn the_default_size_applies_to_other_resources_and_0_disables_the_cache() {
    let flags = [
        "--default-watch-cache-size",
        "2",
        "--watch-cache-sizes",
        "namespaces#0",
    ];
    let (server, path) = serving_with("default_size.yaml", &flags).await;
    let client = client(&path).await;
    let (secrets, namespaces) = ten_objects(&client).await;
    assert_eq!(replayed(&client, "secrets", secrets).await, ["410"]);
    assert_eq!(listed_with_a_limit(&client, "secrets").await, 5);
    assert_eq!(replayed(&client, "namespaces", namespaces).await.len(), 5);
    assert_eq!(listed_with_a_limit(&client, "namespaces").await, 2);
    server.end_by("-INT").await.with_code(130);
}

#[tokio::test]
async fn without_a_watch_cache_storage_serves_reads() {
    let (server, path) = serving_with("no_cache.yaml", &["--watch-cache=false"]).await;
    let client = client(&path).await;
    ten_objects(&client).await;
    for resource in ["secrets", "namespaces"] {
        assert_eq!(listed_with_a_limit(&client, resource).await, 2);
    }
    server.end_by("-INT").await.with_code(130);
}
