//! Corner cases: concurrent calls, cancellation, extreme settings, and objects that a server should not
//! send.
//!
//! The guarantees are the usual ones: a handler receives the events of an object completely and in order,
//! the cache matches the server, every wait ends, and after a stop nothing runs, holds memory or delivers
//! events.

mod caches;
mod ends;
mod listeners;

use std::time::Duration;

use serde_json::{Value, json};

/// A limit in real time: it ends a failing test that would hang, and does not affect a passing one.
const GUARD: Duration = Duration::from_secs(60);

/// Returns a pod whose containers are not a list; the server stores it, a typed client cannot decode it.
fn broken(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": "x"},
    })
}
