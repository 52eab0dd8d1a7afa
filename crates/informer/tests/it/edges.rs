//! Tests of informers in corner cases: concurrent calls, cancellation, extreme settings, and invalid objects
//! from the server.

mod caches;
mod ends;
mod listeners;

use std::time::Duration;

use serde_json::{Value, json};

/// Maximum duration, in real time, of each wait in these tests. A wait that would never end fails the test
/// after this time.
const GUARD: Duration = Duration::from_secs(60);

/// Returns a pod whose `containers` field is not a list. The server stores the pod, but a typed client cannot
/// decode it.
fn broken(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": "x"},
    })
}
