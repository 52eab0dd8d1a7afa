//! Draws the patches of random requests.

use fastrand::Rng;
use harness::draw::Choose as _;
use serde_json::{Value, json};

use super::objects::{self, Kind};

/// JSON pointers that are not specific to a kind. The last pointer names a member that no object has.
const POINTERS: [&str; 12] = [
    "/metadata/labels",
    "/metadata/labels/app",
    "/metadata/labels/tier",
    "/metadata/annotations",
    "/metadata/annotations/note",
    "/metadata/finalizers",
    "/metadata/finalizers/0",
    "/metadata/finalizers/-",
    "/metadata/resourceVersion",
    "/metadata/name",
    "/metadata/uid",
    "/missing/member",
];

/// Member of a strategic merge patch that removes finalizers.
const REMOVED_FINALIZERS: &str = "$deleteFromPrimitiveList/finalizers";

/// Members for which kube-apiserver sets a default.
const DEFAULTED: [&str; 5] = [
    "/spec",
    "/spec/replicas",
    "/status/replicas",
    "/spec/containers/0/image",
    "/type",
];

/// Draws a patch: its content type and its document.
pub(super) fn patch(random: &mut Rng, kind: &Kind) -> (&'static str, Value) {
    let form = random.weighted(&[
        (40, "merge-patch"),
        (30, "strategic-merge-patch"),
        (30, "json-patch"),
    ]);
    match form {
        "json-patch" => ("application/json-patch+json", operations(random, kind)),
        "merge-patch" => (
            "application/merge-patch+json",
            document(random, kind, false),
        ),
        _ => (
            "application/strategic-merge-patch+json",
            document(random, kind, true),
        ),
    }
}

fn operations(random: &mut Rng, kind: &Kind) -> Value {
    let number = random.usize(1..4);
    (0..number).map(|_| operation(random, kind)).collect()
}

fn operation(random: &mut Rng, kind: &Kind) -> Value {
    let op = random.weighted(&[
        (35, "add"),
        (25, "replace"),
        (20, "remove"),
        (12, "test"),
        (4, "copy"),
        (4, "move"),
    ]);
    let path = pointer(random, kind);
    // Without this member, kube-apiserver sets a default.
    let op = if DEFAULTED.contains(&path) {
        "replace"
    } else {
        op
    };
    let mut operation = json!({"op": op, "path": path});
    match op {
        "copy" | "move" => {
            let from = pointer(random, kind);
            // The two servers have different revisions and uids.
            let is_drawn = matches!(from, "/metadata/resourceVersion" | "/metadata/uid");
            if DEFAULTED.contains(&from) {
                operation["op"] = "copy".into();
            }
            operation["from"] = if is_drawn { "/metadata/name" } else { from }.into();
        }
        "remove" => {}
        _ => operation["value"] = value(random, kind, path),
    }
    operation
}

fn pointer(random: &mut Rng, kind: &Kind) -> &'static str {
    if random.chance(40) {
        random.one::<&str>(kind.pointers)
    } else {
        random.one::<&str>(&POINTERS)
    }
}

/// Draws a value that fits the member at `pointer`, or null.
fn value(random: &mut Rng, kind: &Kind, pointer: &str) -> Value {
    if pointer.starts_with("/metadata/") && random.chance(5) {
        return Value::Null;
    }
    match pointer {
        "/metadata/labels" => objects::labels(random),
        "/data" | "/data/k" if kind.name == "Secret" => match pointer {
            "/data" => json!({"note": "YQ=="}),
            _ => "YQ==".into(),
        },
        "/metadata/annotations" | "/data" | "/stringData" => json!({"note": "a"}),
        "/binaryData" => json!({"b": "AAE="}),
        "/metadata/finalizers" => objects::finalizers(random),
        "/metadata/finalizers/0" | "/metadata/finalizers/-" => "example.com/h".into(),
        "/metadata/resourceVersion" => format!("${}", objects::revision(random)).into(),
        "/metadata/uid" => "$uid1".into(),
        "/immutable" | "/automountServiceAccountToken" => random.bool().into(),
        "/spec/replicas" | "/status/replicas" | "/spec/leaseTransitions" => random.u32(0..3).into(),
        "/spec" => json!({"holderIdentity": "c"}),
        "/imagePullSecrets" => json!([{"name": "a"}]),
        "/imagePullSecrets/0" => json!({"name": "b"}),
        "/spec/containers/0/image" => "x:3".into(),
        "/status/phase" => "Running".into(),
        _ => (*random.one(&["a", "b"])).into(),
    }
}

fn document(random: &mut Rng, kind: &Kind, is_strategic: bool) -> Value {
    let mut document = json!({});
    let number = random.usize(1..3);
    for _ in 0..number {
        if random.chance(60) {
            let (member, value) = metadata(random, is_strategic);
            document["metadata"][member] = value;
        } else {
            let pointer = random.one::<&str>(kind.pointers);
            set(&mut document, random, kind, pointer);
        }
    }
    // kube-apiserver applies both in a random order.
    if let Some(Value::Object(metadata)) = document.get_mut("metadata")
        && metadata.contains_key("finalizers")
    {
        metadata.remove(REMOVED_FINALIZERS);
    }
    if random.chance(20) {
        document["metadata"]["resourceVersion"] = format!("${}", objects::revision(random)).into();
    }
    document
}

fn metadata(random: &mut Rng, is_strategic: bool) -> (&'static str, Value) {
    let member = random.weighted(&[
        (40, "labels"),
        (20, "annotations"),
        (20, "finalizers"),
        (6, "ownerReferences"),
        (4, REMOVED_FINALIZERS),
        (2, "name"),
        (2, "uid"),
        (2, "generation"),
    ]);
    let value = match member {
        "labels" => {
            json!({*random.one(&["app", "tier"]): random.one(&[json!("a"), json!("b"), Value::Null]).clone()})
        }
        "annotations" => random
            .one(&[json!({"note": "c"}), json!({"note": null}), Value::Null])
            .clone(),
        "finalizers" if random.chance(30) => Value::Null,
        "ownerReferences" => objects::owners(random),
        "name" => "other".into(),
        "uid" => "00000000-0000-4000-8000-00000000000f".into(),
        "generation" => 9.into(),
        _ => objects::finalizers(random),
    };
    // Outside a strategic merge patch this is a member with an unknown name.
    let member = if is_strategic || !member.starts_with('$') {
        member
    } else {
        "finalizers"
    };
    (member, value)
}

/// Sets the member at `pointer`, if its parents are objects.
fn set(document: &mut Value, random: &mut Rng, kind: &Kind, pointer: &str) {
    if pointer.contains("/0") {
        return;
    }
    let mut at = document;
    let mut names = pointer.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        if !(at.is_object() || at.is_null()) {
            return;
        }
        if names.peek().is_none() {
            at[name] = value(random, kind, pointer);
            return;
        }
        at = &mut at[name];
    }
}
