//! How long a warm start takes beside a list: 100,000 pods, saved and loaded, and listed from the
//! embedded server in this process.
//!
//! `cargo bench -p kube-informer --bench warm_start`
//!
//! Figures for one machine, without a limit. A list from a server in this process has no network and no
//! etcd, so it takes hardly longer than reading its objects does; what a warm start spares is the server
//! and the wire, of which there is as good as nothing here.

#![expect(clippy::print_stdout, reason = "a bench says what it measured")]
#![expect(
    clippy::unwrap_used,
    reason = "a bench that can't go on says so by panicking"
)]

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer,
    client::ListWatch,
    shared_informer::Builder,
    status::{Status, WarmStart},
    warm_start::SavedStore,
};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::time::Instant;

const OBJECTS: usize = 100_000;

const ROUNDS: usize = 3;

fn pod(number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number}"),
            "namespace": format!("ns-{}", number % 100),
            "labels": {"app": format!("app-{}", number % 1000), "pod-template-hash": "5d78c9869d"},
        },
        "spec": {
            "nodeName": format!("node-{}", number % 1000),
            "containers": [{"name": "main", "image": "registry.example.com/app:1.0"}],
        },
    })
}

#[tokio::main]
async fn main() {
    let server = Server::builder().build();
    server.create_all((0..OBJECTS).map(pod)).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm-start-bench");
    let _ = std::fs::remove_dir_all(&folder);
    let saved = || SavedStore::in_directory(&folder, "1");
    let informer = || SharedInformer::<Pod>::builder(ListWatch::<Pod>::new(server.client()));
    for round in 1..=ROUNDS {
        listed(informer()).await;
        save(informer().warm_start(saved())).await;
        loaded(informer().warm_start(saved())).await;
        println!("round {round} of {ROUNDS}");
    }
}

async fn listed(builder: Builder<Pod>) {
    let (pods, controller) = builder.build();
    let begun = Instant::now();
    let synced = async { pods.wait_for_sync().await.unwrap() };
    controller
        .run(synced)
        .await
        .expect("the informer does not fail");
    println!("listed {} in {:?}", pods.indexer().len(), begun.elapsed());
}

async fn save(builder: Builder<Pod>) {
    let (pods, controller) = builder.build();
    let saved = async {
        pods.wait_for_sync().await.unwrap();
        let begun = Instant::now();
        let saved = pods.save().await.unwrap();
        println!("saved {} bytes in {:?}", saved.bytes, begun.elapsed());
    };
    controller
        .run(saved)
        .await
        .expect("the informer does not fail");
}

/// Until the cache has everything; it says that it is synced a second later.
async fn loaded(builder: Builder<Pod>) {
    let (pods, controller) = builder.build();
    let begun = Instant::now();
    let mut status = pods.status();
    let started = async {
        let is_decided = |status: &Status| status.warm_start.is_some();
        let decided = status.wait_for(is_decided).await.unwrap();
        let is_warm = matches!(decided.warm_start, Some(WarmStart::Warm { .. }));
        assert!(is_warm, "{:?}", decided.warm_start);
        println!("loaded {} in {:?}", pods.indexer().len(), begun.elapsed());
    };
    controller
        .run(started)
        .await
        .expect("the informer does not fail");
}
