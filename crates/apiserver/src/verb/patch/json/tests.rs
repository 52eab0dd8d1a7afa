//! Tests the operations of JSON patches, and their limits.

use serde_json::json;

use super::*;
use crate::field_validation::Directive;

fn patched(document: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let operations = parse(patch.to_string().as_bytes(), Directive::Warn)?;
    apply(&operations, document)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

/// The document to which the tests apply one operation.
const DOCUMENT: &str = r#"{"a": {"b": 1}, "l": [1, 2]}"#;

/// Each operation, with the document that results when the operation is applied to [`DOCUMENT`].
const ACCEPTED: &[[&str; 2]] = &[
    [
        r#"{"op": "add", "path": "/a/x"}"#,
        r#"{"a": {"b": 1, "x": null}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "add", "path": "x/a/c", "value": 2}"#,
        r#"{"a": {"b": 1, "c": 2}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "add", "path": "/l/-1", "value": 3}"#,
        r#"{"a": {"b": 1}, "l": [1, 2, 3]}"#,
    ],
    [
        r#"{"op": "add", "path": "/l/-3", "value": 3}"#,
        r#"{"a": {"b": 1}, "l": [3, 1, 2]}"#,
    ],
    [
        r#"{"op": "add", "path": "/l/2", "value": 3}"#,
        r#"{"a": {"b": 1}, "l": [1, 2, 3]}"#,
    ],
    [
        r#"{"op": "add", "path": "/l/-", "value": 3}"#,
        r#"{"a": {"b": 1}, "l": [1, 2, 3]}"#,
    ],
    [
        r#"{"op": "add", "path": "/", "value": 3}"#,
        r#"{"": 3, "a": {"b": 1}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "add", "path": "/~01~1", "value": 3}"#,
        r#"{"~1/": 3, "a": {"b": 1}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "remove", "path": "/l/-2"}"#,
        r#"{"a": {"b": 1}, "l": [2]}"#,
    ],
    [
        r#"{"op": "remove", "path": "/l/+01"}"#,
        r#"{"a": {"b": 1}, "l": [1]}"#,
    ],
    [
        r#"{"op": "replace", "path": "/a/c", "value": 2}"#,
        r#"{"a": {"b": 1, "c": 2}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "replace", "path": "/l/-1", "value": 3}"#,
        r#"{"a": {"b": 1}, "l": [1, 3]}"#,
    ],
    [r#"{"op": "replace", "path": "", "value": [1]}"#, r#"[1]"#],
    [
        r#"{"op": "copy", "from": "/a/x", "path": "/c"}"#,
        r#"{"a": {"b": 1}, "c": null, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "move", "from": "/a", "path": "/l/0"}"#,
        r#"{"l": [{"b": 1}, 1, 2]}"#,
    ],
    [
        r#"{"op": "test", "path": "/a/x"}"#,
        r#"{"a": {"b": 1}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "test", "path": "/a/x", "value": null}"#,
        r#"{"a": {"b": 1}, "l": [1, 2]}"#,
    ],
    [
        r#"{"op": "test", "path": "", "value": {"l": [1, 2], "a": {"b": 1}}}"#,
        r#"{"a": {"b": 1}, "l": [1, 2]}"#,
    ],
];

/// Operations that do not apply to [`DOCUMENT`].
const REJECTED: &[&str] = &[
    r#"null"#,
    r#"{"path": "/a"}"#,
    r#"{"op": "x", "path": "/a"}"#,
    r#"{"op": "add", "value": 1}"#,
    r#"{"op": "add", "path": "", "value": 1}"#,
    r#"{"op": "add", "path": "a", "value": 1}"#,
    r#"{"op": "add", "path": "/x/y", "value": 1}"#,
    r#"{"op": "add", "path": "/a/b/c", "value": 1}"#,
    r#"{"op": "add", "path": "/l/3", "value": 1}"#,
    r#"{"op": "add", "path": "/l/-4", "value": 1}"#,
    r#"{"op": "add", "path": "/l/x", "value": 1}"#,
    r#"{"op": "remove", "path": "/a/x"}"#,
    r#"{"op": "remove", "path": "/l/2"}"#,
    r#"{"op": "remove", "path": "/l/-3"}"#,
    r#"{"op": "remove", "path": "/l/-"}"#,
    r#"{"op": "replace", "path": "/l/2", "value": 1}"#,
    r#"{"op": "replace", "path": "/l/-", "value": 1}"#,
    r#"{"op": "replace", "path": "", "value": "x"}"#,
    r#"{"op": "replace", "path": ""}"#,
    r#"{"op": "copy", "path": "/c"}"#,
    r#"{"op": "copy", "from": "/l/2", "path": "/c"}"#,
    r#"{"op": "copy", "from": "/x/y", "path": "/c"}"#,
    r#"{"op": "move", "from": "/a/x", "path": "/c"}"#,
    r#"{"op": "test", "path": "/a/b"}"#,
    r#"{"op": "test", "path": "/a/b", "value": null}"#,
    r#"{"op": "test", "path": "/a/b", "value": 2}"#,
    r#"{"op": "test", "path": "/l/2", "value": null}"#,
    r#"{"op": "test", "path": "/x/y", "value": null}"#,
    r#"{"op": "test", "path": ""}"#,
];

#[test]
fn operations_accept_what_kubernetes_accepts() {
    for [operation, expected] in ACCEPTED {
        let mut document = parsed(DOCUMENT);
        let patched = patched(&mut document, &json!([parsed(operation)]));
        assert_eq!(patched, Ok(()), "{operation}");
        assert_eq!(document, parsed(expected), "{operation}");
    }
}

#[test]
fn operations_that_do_not_apply_are_rejected() {
    for operation in REJECTED {
        let patched = patched(&mut parsed(DOCUMENT), &json!([parsed(operation)]));
        assert_eq!(patched, Err(ApiError::inapplicable()), "{operation}");
    }
}

#[test]
fn an_operation_beyond_the_nesting_limit_is_rejected() {
    // The text of a patch has at most 127 levels, so its values are less deep than a document.
    let below = nested(DEPTH_MAX - 2);
    let mut document = json!({"a": {"c": {}}, "b": nested(DEPTH_MAX - 1)});
    for dig in [
        json!({"op": "add", "path": "/a/c/x", "value": below}),
        json!({"op": "replace", "path": "/a/c/x", "value": below}),
        json!({"op": "copy", "from": "/b", "path": "/a/x"}),
        json!({"op": "move", "from": "/b", "path": "/a/x"}),
    ] {
        let refused = patched(&mut document.clone(), &json!([dig])).unwrap_err();
        assert_eq!(refused, ApiError::too_deep(), "{dig}");
    }
    let allowed = json!([
        {"op": "move", "from": "/b", "path": "/d"},
        {"op": "replace", "path": "/a/c", "value": below},
    ]);
    patched(&mut document, &allowed).unwrap();
    assert_eq!(height(&document), DEPTH_MAX);
}

#[test]
fn ten_thousand_insertions_into_a_long_list_are_rejected() {
    let long = || json!({"list": vec![0; 100_000], "deep": {"er": {}}});
    let at_front = json!({"op": "add", "path": "/list/0", "value": 1});
    let there = json!({"op": "move", "from": "/list", "path": "/deep/er"});
    let back = json!({"op": "move", "from": "/deep/er", "path": "/list"});
    let few = json!(vec![&at_front; 100]);
    patched(&mut long(), &few).unwrap();
    for pair in [[&at_front, &at_front], [&there, &back]] {
        let many = json!(vec![pair; 2_000].concat());
        let refused = patched(&mut long(), &many).unwrap_err();
        assert_eq!(refused.code(), 413, "{refused}");
    }
}
