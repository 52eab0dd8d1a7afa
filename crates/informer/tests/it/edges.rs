//! Tests of corner cases: concurrent calls, cancellation, extreme settings, and invalid objects from the
//! server.
//!
//! The tests check the guarantees that also hold in ordinary cases. A handler receives all events of an
//! object in order. The cache matches the server. Every wait ends. After a stop, no task runs, no memory is
//! held, and no event is delivered.

mod caches;
mod ends;
mod listeners;

use std::time::Duration;

use serde_json::{Value, json};

/// Deadline, in real time, of each wait in these tests. A test that would otherwise hang fails at the
/// deadline.
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
