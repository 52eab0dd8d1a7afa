//! Tests of informers in corner cases: concurrent calls, cancellation, extreme settings, and invalid objects
//! from the server.

mod caches;
mod ends;
mod listeners;

use std::time::Duration;

use serde_json::{Value, json};

/// Maximum duration, in real time, of each wait in these tests.
const GUARD: Duration = Duration::from_secs(60);

/// Returns a pod that the server stores, but that a typed client cannot decode.
fn broken(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": "x"},
    })
}
