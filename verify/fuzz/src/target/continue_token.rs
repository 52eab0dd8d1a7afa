//! Fuzz target for continue tokens: the embedded server must respond to any token with the correct page of
//! the list, or with an error.

use std::cell::OnceCell;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::{
    asked::{encoded, get},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "{\"v\":\"meta.k8s.io/v1\",\"rv\":4,\"start\":\"b\\u0000\"}",
    "\"v\":\"meta.k8s.io/v1\"",
    "\"rv\":",
    "-1",
    "0",
    "3",
    "99999",
    "\"start\":",
    "\"",
    "/",
    "..",
    "../",
    "zz",
    "z/b",
    "\\u0000",
    "b",
    "{",
    "}",
    "e",
    "=",
    "-",
    "_",
];

/// Number of objects in each of the two namespaces.
const OBJECTS: u64 = 6;

/// Page size of the requested lists.
const LIMIT: usize = 2;

thread_local! {
    static SERVER: OnceCell<Server> = const { OnceCell::new() };
}

/// Returns a server with the same object names in the namespaces `m` and `z`.
///
/// The server has created the objects alternately in `m` and in `z`.
fn server() -> Server {
    let names = (0..OBJECTS).map(name);
    let objects = names.flat_map(|name| {
        ["m", "z"].map(|namespace| {
            let metadata = json!({"name": name, "namespace": namespace});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        })
    });
    Server::builder().seed(objects).build()
}

fn name(number: u64) -> String {
    char::from(b'a' + u8::try_from(number).expect("a few")).to_string()
}

/// Requests a page of a list with a continue token, and checks the response.
///
/// Input that starts with a brace is the JSON of a token, and other input is an encoded token.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let (token, json) = if data.starts_with(b"{") {
        (BASE64_URL_SAFE_NO_PAD.encode(data), data.to_vec())
    } else {
        let token = String::from_utf8_lossy(data).into_owned();
        let json = BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap_or_default();
        (token, json)
    };
    if token.is_empty() {
        return "none".to_owned();
    }
    let server = SERVER.with(|server| server.get_or_init(self::server).clone());
    let namespace = match bug {
        Some(Bug::TokenLeavesNamespace) => "",
        _ => "/namespaces/m",
    };
    let path = format!(
        "/api/v1{namespace}/configmaps?limit={LIMIT}&continue={}",
        encoded(&token)
    );
    let answer = get(&server, &path);
    if answer.code != 200 {
        // A future revision results in a timeout, as for any list.
        assert!(
            [400, 410].contains(&answer.code) || is_too_large(&answer.json),
            "{}",
            answer.json
        );
        let message = answer.json["message"].as_str().unwrap_or_default();
        return message
            .chars()
            .filter(|char| !char.is_numeric())
            .take(75)
            .collect();
    }
    // An unused member may contain invalid UTF-8, as in Go.
    let json = String::from_utf8_lossy(&json);
    let wire: Value = serde_json::from_str(&json).expect("a followed token is JSON");
    assert_eq!(wire["v"], "meta.k8s.io/v1");
    let start = wire["start"].as_str().unwrap_or_default();
    let revision = wire["rv"].as_u64().unwrap_or(2 * OBJECTS);
    // Of two objects with the same name, the one in `m` is first.
    let there = (0..OBJECTS)
        .filter(|number| 2 * number < revision)
        .map(name);
    let mut rest = there.filter(|name| name.as_str() >= start);
    let expected: Vec<_> = rest
        .by_ref()
        .take(LIMIT)
        .map(|name| format!("m/{name}"))
        .collect();
    let text = |item: &Value, member: &str| {
        item["metadata"][member]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let found: Vec<_> = answer
        .items()
        .iter()
        .map(|item| format!("{}/{}", text(item, "namespace"), text(item, "name")))
        .collect();
    assert_eq!(found, expected, "from {start:?} at {revision}");
    let next = answer.json["metadata"]["continue"].is_string();
    assert_eq!(
        next,
        rest.next().is_some(),
        "a continue token must be returned exactly if items remain"
    );
    format!("{} items, more: {next}", found.len())
}

fn is_too_large(status: &Value) -> bool {
    status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
}
