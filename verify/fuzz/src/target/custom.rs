//! Fuzz target that defines a kind with a schema, and writes an object of the kind to the embedded server.
//!
//! The server must accept or reject both. Pruning and defaulting must be idempotent: an object that is written
//! again as the server has returned it does not change.

use bytes::Bytes;
use http::Request;
use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use crate::{
    asked::{Answer, ask, get},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "\"type\":\"object\"",
    "\"type\":\"array\"",
    "\"type\":\"string\"",
    "\"type\":\"integer\"",
    "\"properties\":{\"a\":{\"type\":\"string\"}}",
    "\"additionalProperties\":{\"type\":\"integer\"}",
    "\"items\":{\"type\":\"object\"}",
    "\"default\":{}",
    "\"default\":1",
    "\"nullable\":true",
    "\"required\":[\"a\"]",
    "\"enum\":[\"a\",1,null]",
    "\"pattern\":\"^(a+)+$\"",
    "\"format\":\"date-time\"",
    "\"maxLength\":1",
    "\"maxItems\":9223372036854775807",
    "\"multipleOf\":0.1",
    "\"x-kubernetes-preserve-unknown-fields\":true",
    "\"x-kubernetes-embedded-resource\":true",
    "\"x-kubernetes-int-or-string\":true",
    "\"x-kubernetes-list-type\":\"map\"",
    "\"x-kubernetes-list-map-keys\":[\"a\"]",
    "\"x-kubernetes-validations\":[{\"rule\":\"self.a == oldSelf.a\"}]",
    "\"anyOf\":[{\"required\":[\"a\"]}]",
    "\"spec\":",
    "null",
    "{}",
    "[]",
    "\"a\":",
    "\n",
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// The first line of the input is the schema, and the rest is the object.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let mut part = || serde_json::from_slice::<Value>(parts.next()?).ok();
    let (Some(schema), Some(object)) = (part(), part()) else {
        return "no JSON".to_owned();
    };
    let server = Server::builder().build();
    let defined = write(&server, "POST", DEFINITIONS, &definition(&schema));
    if defined.code != 201 {
        return outcome("definition", &defined);
    }
    let mut sent = object;
    if let Some(members) = sent.as_object_mut() {
        members.insert("apiVersion".to_owned(), json!("example.com/v1"));
        members.insert("kind".to_owned(), json!("Widget"));
        members.insert("metadata".to_owned(), json!({"name": "a"}));
    }
    let mut written = write(&server, "POST", OBJECTS, &sent);
    if written.code != 201 {
        return outcome("object", &written);
    }
    if bug == Some(Bug::UnknownFieldIsShown)
        && written.json.get("spec").is_none()
        && let Some(spec) = sent.get("spec")
    {
        written.json["spec"] = spec.clone();
    }
    let path = format!("{OBJECTS}/a");
    let stored = get(&server, &path).json;
    assert_eq!(written.json, stored, "the response is not what is stored");
    let again = write(&server, "PUT", &path, &stored);
    let may_fail = schema.to_string().contains("oldSelf");
    if again.code == 422 && may_fail {
        return outcome("update", &again);
    }
    assert_eq!(
        again.code, 200,
        "an unchanged object is rejected: {}",
        again.json
    );
    assert_eq!(again.json, stored, "an unchanged object changes");
    let is_pruned = sent["spec"] != stored["spec"];
    format!("stored, changed: {is_pruned}")
}

/// Returns a definition of the kind `Widget` with a schema.
pub(super) fn definition(schema: &Value) -> Value {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
    });
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    })
}

/// Sends a JSON body.
pub(super) fn write(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let request = request.body(Bytes::from(body.to_string()));
    ask(server, request.expect("the request is valid"))
}

/// Names the path of an input that is rejected.
pub(super) fn outcome(what: &str, answer: &Answer) -> String {
    let message = answer.json["message"].as_str().unwrap_or_default();
    // Before it, the message names the object.
    let message = message
        .split_once("is invalid: ")
        .map_or(message, |(_, message)| message);
    let mut letters = message.chars().filter(|letter| letter.is_alphabetic());
    let end: String = letters.by_ref().take(90).skip(30).collect();
    format!("{what} {} {end}", answer.code)
}
