//! Fuzz target that creates an object on the embedded server from a body in the protobuf format of
//! Kubernetes.
//!
//! The server must either reject the body or store an object. A stored object must be readable, and a copy of
//! it in JSON format must be accepted.

use bytes::Bytes;
use http::Request;
use kube_informer_apiserver::Server;

use crate::{
    asked::{ask, get},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "k8s\0",
    "\n\0",
    "\u{12}\0",
    "\u{7f}",
    "\u{8}\u{1}",
    "\u{3a}",
    "\u{1a}\0",
    "\"\0",
    "v1",
    "Pod",
    "ConfigMap",
    "\n\u{2}v1\u{12}\u{3}Pod",
];

/// Sends a POST request with a protobuf body to a new embedded server, and checks the created object, if any.
///
/// The first line of `data` is the path of the request, and the rest of `data` is the body.
pub(super) fn run(data: &[u8], _bug: Option<Bug>) -> String {
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (path, body) = data.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let server = Server::builder().enforce_namespaces(false).build();
    let post = |content_type: &str, body: Bytes| {
        let request = Request::post(path).header("content-type", content_type);
        request.body(body).ok().map(|request| ask(&server, request))
    };
    let Some(answer) = post(
        "application/vnd.kubernetes.protobuf",
        Bytes::copy_from_slice(body),
    ) else {
        return "no path".to_owned();
    };
    if answer.code != 201 {
        let message = answer.json["message"].as_str().unwrap_or_default();
        let message: String = message
            .chars()
            .filter(|char| char.is_alphabetic())
            .take(40)
            .collect();
        return format!("{} {message}", answer.code);
    }
    let (object, path) = (&answer.json, String::from_utf8_lossy(path));
    let Some(name) = object["metadata"]["name"].as_str() else {
        return "created without a name".to_owned();
    };
    let path = path.split('?').next().unwrap_or_default();
    assert_eq!(
        &get(&server, &format!("{path}/{name}")).json,
        object,
        "a read returns another object"
    );
    // The same object sent as JSON is stored equally, so the body produced nothing that JSON would not.
    let mut copy = object.clone();
    let metadata = copy["metadata"].as_object_mut().expect("it has a name");
    for member in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(member);
    }
    metadata.insert("name".to_owned(), "copy".into());
    let copied = post("application/json", copy.to_string().into());
    let copied = copied.expect("the path is the same");
    assert_eq!(
        copied.code, 201,
        "the same object as JSON is rejected: {}",
        copied.json["message"]
    );
    format!("created {}", object["kind"])
}
