//! Fuzz target that sends a sequence of requests to the embedded server.
//!
//! No request may cause an internal error. A read request or a rejected request must not change any object.

use bytes::Bytes;
use http::Request;
use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::json;

use crate::{
    asked::{Answer, ask},
    planted::Bug,
};

/// Maximum number of requests that are read from one input.
const REQUESTS: usize = 8;

/// Separator between two requests of an input.
const SEPARATOR: &[u8] = b"\n###\n";

/// Sends the requests in the input, and checks each response.
///
/// A request has the syntax of HTTP/1.1, except that it does not state the version.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let server = server();
    let mut ways = Vec::new();
    for text in requests(data).into_iter().take(REQUESTS) {
        let Some(request) = request(text) else {
            ways.push("no request".to_owned());
            continue;
        };
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        assert!(
            bug != Some(Bug::SlashIsFatal) || !path.to_lowercase().contains("%2f"),
            "500: internal error"
        );
        let before = server.revision();
        let answer = ask(&server, request);
        let after = server.revision();
        let may_write = ["POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str());
        assert!(may_write || after == before, "{method} {path} wrote");
        assert!(
            answer.code < 400 || after == before,
            "{method} {path} was rejected with {} and changed something",
            answer.code
        );
        check_object(&answer);
        ways.push(format!("{method} {} {}", answer.code, answer.reason()));
    }
    ways.truncate(3);
    ways.join(", ")
}

/// Checks that an object in a successful response has an `apiVersion`, a `kind` and a name.
fn check_object(answer: &Answer) {
    let json = &answer.json;
    if answer.code < 300 && json["metadata"]["uid"].is_string() {
        let texts = [
            &json["apiVersion"],
            &json["kind"],
            &json["metadata"]["name"],
        ];
        let are_there = texts
            .iter()
            .all(|text| text.as_str().is_some_and(|text| !text.is_empty()));
        assert!(are_there, "an object without name or kind: {json}");
    }
}

fn requests(data: &[u8]) -> Vec<&[u8]> {
    let mut requests = Vec::new();
    let mut rest = data;
    while let Some(at) = rest
        .windows(SEPARATOR.len())
        .position(|window| window == SEPARATOR)
    {
        requests.push(&rest[..at]);
        rest = &rest[at + SEPARATOR.len()..];
    }
    requests.push(rest);
    requests
}

fn request(text: &[u8]) -> Option<Request<Bytes>> {
    let mut rest = text;
    let mut line = || {
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        let (line, behind) = rest.split_at(end);
        rest = behind.get(1..).unwrap_or_default();
        line
    };
    let first = line();
    let space = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::builder()
        .method(&first[..space])
        .uri(&first[space + 1..]);
    loop {
        let header = line();
        if header.is_empty() {
            break;
        }
        let colon = header.iter().position(|byte| *byte == b':')?;
        request = request.header(&header[..colon], header[colon + 1..].trim_ascii());
    }
    request.body(Bytes::copy_from_slice(rest)).ok()
}

fn server() -> Server {
    let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}});
    Server::builder()
        .kind(Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Cluster))
        // A POST to any namespace must reach the code after that check.
        .enforce_namespaces(false)
        .seed([
            pod("a"),
            pod("b"),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 1}}),
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "finalizers": ["example.com/f"]}}),
        ])
        .build()
}
