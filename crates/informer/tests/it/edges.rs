//! The corners where an informer is most easily wrong: two things at once, ends in the middle of
//! something, extreme settings, and objects that are not as a server should send them.
//!
//! What must hold there is what holds everywhere. A handler hears an object's story from its
//! beginning and in its order; the cache has what the server has; every wait ends; and an
//! end is an end: nothing runs, holds or tells anything after it.

mod caches;
mod ends;
mod listeners;

use std::time::Duration;

use serde_json::{Value, json};

/// In real time: keeps a test that is wrong from hanging, and decides nothing in one that is right.
const GUARD: Duration = Duration::from_secs(60);

/// A pod whose containers are no list; the server keeps it, a typed client can't.
fn broken(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": "x"},
    })
}
