//! What stored objects cost: fills a server with pods of about 1 KB and prints the process's resident memory.
//!
//! ```text
//! cargo run --release -p kube-informer-apiserver --example stored_objects -- 1000000
//! ```
//!
//! A million pods of 1,021 bytes, as clients read them, take 1.5 GB: 1,504 bytes each, of which the watch history's last 102,400 events are a small part.
//! Memory is read from `/proc`, so it is printed on Linux only.

#![expect(clippy::print_stdout, reason = "an example shows what it measures")]

use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Objects if no number is given.
const OBJECTS: usize = 100_000;

fn main() {
    let argument = std::env::args().nth(1);
    let objects: usize = argument
        .and_then(|text| text.parse().ok())
        .unwrap_or(OBJECTS);
    let before = resident_bytes();
    let started = Instant::now();
    let server = Server::builder().build();
    let mut json_bytes = 0;
    for nth in 0..objects {
        match server.create(pod(nth)) {
            Ok(stored) => json_bytes += stored.to_string().len(),
            Err(error) => {
                println!("pod {nth} was refused: {error}");
                return;
            }
        }
    }
    let each = json_bytes / objects.max(1);
    println!(
        "{objects} pods of {each} bytes stored in {:.1?}",
        started.elapsed()
    );
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        let used = after.saturating_sub(before);
        println!(
            "{} MB resident, {} bytes per pod",
            used / 1_000_000,
            used / objects.max(1)
        );
    }
    drop(server);
}

/// A pod as a deployment of three replicas would have made it.
fn pod(nth: usize) -> Value {
    let (app, namespace) = (nth / 3, nth % 100);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("app-{app}-7d4b9c6f5-{nth:07}"),
            "namespace": format!("team-{namespace}"),
            "labels": {"app": format!("app-{app}"), "pod-template-hash": "7d4b9c6f5"},
            "annotations": {"example.com/owner": "x".repeat(335)},
        },
        "spec": {
            "nodeName": format!("node-{}", nth % 5_000),
            "containers": [{
                "name": "main",
                "image": "registry.example.com/team/app:v1.2.3",
                "env": [{"name": "MODE", "value": "production"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            }],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    })
}

/// The memory that the process has in use now.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: usize = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}
