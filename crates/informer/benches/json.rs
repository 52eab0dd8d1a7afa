//! Compares the speed of the library's JSON parser with the speed of `serde_json`.
//!
//! ```text
//! cargo bench -p kube-informer --features __fuzzing --bench json
//! ```
//!
//! The benchmark prints nanoseconds per KiB of pod JSON. The two parsers read the same bytes alternately on
//! one thread. Each printed figure is the minimum of several rounds. The figures depend on the machine, so
//! the benchmark does not compare them with a limit.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::fuzzing::{read_json, scan_json};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Number of rounds per printed figure. The figure is from the fastest round.
const ROUNDS: usize = 20;

/// Number of pods that each parser parses per round.
const PODS: usize = 500;

fn main() -> Result<()> {
    let pods: Vec<Vec<u8>> = (0..PODS)
        .map(|number| serde_json::to_vec(&pod(number)))
        .collect::<Result<_, _>>()?;
    println!(
        "{:<40} {:>8} {:>12}",
        "nanoseconds per KiB", "here", "serde_json"
    );
    row(&pods, "find the end of a value", scan, parse::<IgnoredAny>);
    row(&pods, "decode and measure a pod", read::<Pod>, parse::<Pod>);
    row(
        &pods,
        "decode and measure a value",
        read::<Value>,
        parse::<Value>,
    );
    Ok(())
}

fn row(pods: &[Vec<u8>], what: &str, ours: fn(&[u8]), theirs: fn(&[u8])) {
    let (mut here, mut there) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        here = here.min(per_kib(pods, ours));
        there = there.min(per_kib(pods, theirs));
    }
    println!("{what:<40} {here:>8.0} {there:>12.0}");
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53 bytes")]
fn per_kib(pods: &[Vec<u8>], read: fn(&[u8])) -> f64 {
    let begun = Instant::now();
    for pod in pods {
        read(pod);
    }
    let bytes: usize = pods.iter().map(Vec::len).sum();
    begun.elapsed().as_secs_f64() * 1e9 / (bytes as f64 / 1024.0)
}

fn scan(json: &[u8]) {
    black_box(scan_json(&[json]));
}

fn read<T: DeserializeOwned>(json: &[u8]) {
    black_box(read_json::<T>(json).ok());
}

fn parse<T: DeserializeOwned>(json: &[u8]) {
    black_box(serde_json::from_slice::<T>(json).ok());
}

/// Returns a pod with typical fields: managed fields, environment variables and conditions.
fn pod(number: usize) -> Value {
    let fields: serde_json::Map<String, Value> = (0..40)
        .map(|field| (format!("f:field-{field}"), json!({"f:value": {}})))
        .collect();
    let env: Vec<_> = (0..20)
        .map(|at| json!({"name": format!("NAME_{at}"), "value": format!("value {at}\n")}))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number}"),
            "namespace": "default",
            "uid": format!("00000000-0000-0000-0000-{number:012}"),
            "resourceVersion": (number + 1).to_string(),
            "labels": {"app": "web", "pod-template-hash": "5d78c9869d"},
            "managedFields": [{
                "manager": "kubelet",
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }],
        },
        "spec": {
            "nodeName": format!("node-{}", number % 50),
            "containers": [{"name": "main", "image": "registry.example.com/main:1", "env": env}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": 0, "image": "main", "imageID": "main",
            }],
        },
    })
}
