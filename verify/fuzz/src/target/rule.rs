//! Fuzz target for rules in CEL: the embedded server compiles a rule, and evaluates it for an object.
//!
//! The server must accept or reject the rule and the object. The runner limits the time and the memory.

use kube_informer_apiserver::Server;
use serde_json::json;

use super::custom::{definition, outcome, write};
use crate::planted::Bug;

pub(super) const WORDS: &[&str] = &[
    "self",
    ".s",
    ".n",
    ".l",
    ".m",
    ".o",
    ".x",
    ".?s",
    "[0]",
    "[?0]",
    "oldSelf",
    "true",
    "null",
    "'a'",
    "b'a'",
    "1",
    "1u",
    "1.5",
    "9223372036854775807",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    "?",
    ":",
    " in ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".all(a, ",
    ".exists(a, ",
    ".exists_one(a, ",
    ".map(a, ",
    ".filter(a, ",
    ".transformMap(a, b, ",
    ".optMap(a, ",
    ".sortBy(a, ",
    "has(",
    "size(",
    "dyn(",
    "type(",
    "int(",
    "string(",
    "duration(",
    "timestamp(",
    "quantity(",
    "ip(",
    "cidr(",
    "url(",
    "semver(",
    ".matches('(a*)*')",
    ".replace('', self.s)",
    ".split('')",
    ".join(',')",
    ".format([",
    "'%s%.9f%x'",
    ".orValue(",
    ".flatten()",
    "lists.range(",
    "sets.contains(",
    ".distinct()",
    "optional.of(",
    "format.named('uuid')",
];

const OBJECTS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let Ok(rule) = std::str::from_utf8(data) else {
        return "no text".to_owned();
    };
    let schema = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "properties": {
                "s": {"type": "string", "maxLength": 20},
                "n": {"type": "integer"},
                "l": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}},
                "m": {"type": "object", "maxProperties": 9, "additionalProperties": {"type": "integer"}},
                "o": {"type": "object", "properties": {"s": {"type": "string", "format": "byte"}}},
                "x": {"x-kubernetes-int-or-string": true},
            },
            "x-kubernetes-validations": [{"rule": rule, "message": "violated"}],
        }},
    });
    let server = Server::builder().build();
    let defined = write(
        &server,
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition(&schema),
    );
    let message = defined.json["message"].as_str().unwrap_or_default();
    let is_fatal = bug == Some(Bug::UnknownNameIsFatal) && message.contains("undeclared reference");
    assert!(!is_fatal, "internal error: {message}");
    if defined.code != 201 {
        return outcome("rule", &defined);
    }
    let spec =
        json!({"s": "abc", "n": 3, "l": ["a", "b"], "m": {"k": 1}, "o": {"s": "YQ=="}, "x": "5%"});
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec,
    });
    let written = write(&server, "POST", OBJECTS, &object);
    let code = written.code;
    assert!(matches!(code, 201 | 422), "{code}: {}", written.json);
    outcome("object", &written)
}
