//! Fuzz target that applies a patch of any type to a pod or a custom object on the embedded server.
//!
//! The server must apply the patch completely or not at all, and must not change immutable metadata. The
//! result of a JSON merge patch must follow RFC 7386.

use bytes::Bytes;
use http::Request;
use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::{Map, Value, json};

use crate::{
    asked::{ask, get},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "json widgets\n",
    "merge widgets\n",
    "strategic pods\n",
    "json pods\n",
    "merge pods\n",
    "strategic widgets\n",
    "{\"op\":\"add\",\"path\":\"/spec/a\",\"value\":1}",
    "{\"op\":\"remove\",\"path\":\"/metadata/name\"}",
    "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/spec/b\"}",
    "{\"op\":\"move\",\"from\":\"/spec\",\"path\":\"/spec/c\"}",
    "{\"op\":\"test\",\"path\":\"/spec/none\",\"value\":null}",
    "/spec/list/-",
    "/spec/list/0",
    "~1",
    "~0",
    "/",
    "null",
    "{\"metadata\":{\"uid\":\"x\"}}",
    "{\"metadata\":{\"resourceVersion\":\"1\"}}",
    "{\"metadata\":null}",
    "{\"spec\":null}",
    "\"$patch\":\"delete\"",
    "\"$patch\":\"replace\"",
    "\"$setElementOrder/containers\":[{\"name\":\"c\"}]",
    "\"$deleteFromPrimitiveList/finalizers\":[\"f\"]",
    "\"$retainKeys\":[\"a\"]",
    "\"name\":\"c\"",
    "[",
    "]",
    "{",
    "}",
    ",",
];

/// Metadata fields that a patch must not change.
const KEPT: [&str; 4] = ["name", "namespace", "uid", "creationTimestamp"];

/// Members that the server sets, which are not compared with the expected result.
const SERVERS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Sends a patch to a new server, and checks the response and the stored object.
///
/// The first line of the input selects the types of the patch and the object. The rest is the patch.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (head, body) = data.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let (how, of) = head.split_once(' ').unwrap_or(("merge", "widgets"));
    let media_type = match how {
        "json" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        _ => "application/merge-patch+json",
    };
    let path = match of {
        "pods" => "/api/v1/namespaces/default/pods/a",
        _ => "/apis/example.com/v1/namespaces/default/widgets/a",
    };
    let server = server();
    let before = get(&server, path).json;
    let request = Request::patch(path).header("content-type", media_type);
    let request = request.body(Bytes::copy_from_slice(body));
    let answer = ask(&server, request.expect("the request is valid"));
    let after = get(&server, path).json;
    if answer.code != 200 {
        assert_eq!(after, before, "refused with {}, but applied", answer.code);
        let message = answer.json["message"].as_str().unwrap_or_default();
        let message: String = message
            .chars()
            .filter(|char| char.is_alphabetic())
            .take(24)
            .collect();
        return format!("{how} {of} {} {} {message}", answer.code, answer.reason());
    }
    // A patch can remove the last finalizer of a deleted object; no object is deleted here.
    assert_eq!(
        after, answer.json,
        "the response differs from the stored object"
    );
    for member in KEPT {
        assert_eq!(
            after["metadata"][member], before["metadata"][member],
            "{member} was patched"
        );
    }
    let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let is_same = after == before;
    assert_eq!(
        revision(&after) == revision(&before),
        is_same,
        "two states have the same revision"
    );
    if how == "merge" && path.starts_with("/apis") {
        let expected = merged(&before, body, bug);
        assert_eq!(
            rest(&after),
            rest(&expected),
            "the merge has another result"
        );
    }
    format!("{how} {of} patched, the same: {is_same}")
}

fn server() -> Server {
    let spec = json!({"a": 1, "b": {"c": [1, 2], "d": null}, "list": ["x", {"name": "y"}]});
    let metadata = json!({"name": "a", "finalizers": ["example.com/f"], "labels": {"l": "v"}, "annotations": {"n": "v"}});
    let containers =
        json!([{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}, {"name": "d"}]);
    Server::builder()
        .kind(Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced))
        .seed([
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}),
        ])
        .build()
}

fn rest(object: &Value) -> Map<String, Value> {
    let members = object.as_object().cloned().unwrap_or_default();
    let rest = members.into_iter();
    rest.filter(|(name, _)| !SERVERS.contains(&name.as_str()))
        .collect()
}

/// Returns `object` with the JSON merge patch `patch` applied, as specified by RFC 7386.
fn merged(object: &Value, patch: &[u8], bug: Option<Bug>) -> Value {
    let patch: Value = serde_json::from_slice(patch).expect("an applied patch is JSON");
    let mut object = object.clone();
    // Kubernetes treats a null as an empty patch.
    if patch.is_object() {
        merge(&mut object, &patch, bug);
    }
    object
}

fn merge(target: &mut Value, patch: &Value, bug: Option<Bug>) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let members = target
        .as_object_mut()
        .expect("it was replaced by an object");
    for (name, value) in patch {
        if value.is_null() && bug != Some(Bug::NullIsStored) {
            members.remove(name);
        } else {
            merge(
                members.entry(name.as_str()).or_insert(Value::Null),
                value,
                bug,
            );
        }
    }
}
