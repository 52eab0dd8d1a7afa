//! The actions of the simulated API server: it writes and deletes object `a` with valid and invalid
//! content.

/// One step: a description, `write` or `delete`, and the JSON of the new or final state.
type Step = (&'static str, &'static str, Vec<u8>);

/// The JSON fields of the object's metadata, without the enclosing braces.
const HEAD: &str = r#""name":"a","namespace":"default","uid":"u","resourceVersion":"REVISION""#;

pub(super) fn script() -> Vec<Step> {
    [
        bodies(),
        metadata(),
        kinds(),
        without_metadata(),
        deletions(),
    ]
    .concat()
}

/// Returns steps whose objects have valid metadata. Most of these objects contain a field that can't be
/// decoded.
fn bodies() -> Vec<Step> {
    let deep = format!(r#","spec":{}{}"#, "[".repeat(200), "]".repeat(200));
    let mut no_utf8 = object("", r#","spec":{"nodeName":"X"}"#);
    let at = no_utf8.iter().position(|&byte| byte == b'X').unwrap();
    no_utf8[at] = 0xff;
    vec![
        ("a healthy object", "write", good("")),
        (
            "containers that are not a list",
            "write",
            object("", r#","spec":{"containers":"hunter2"}"#),
        ),
        (
            "broken after broken",
            "write",
            object("", r#","spec":{"containers":7}"#),
        ),
        ("healthy again", "write", good(r#","labels":{"app":"x"}"#)),
        ("a null spec", "write", object("", r#","spec":null"#)),
        (
            "null in a list",
            "write",
            object("", r#","spec":{"containers":[null]}"#),
        ),
        (
            "a duplicate key",
            "write",
            object("", r#","spec":{"nodeName":"x","nodeName":"y"}"#),
        ),
        (
            "a duplicate spec",
            "write",
            object("", r#","spec":{"nodeName":"x"},"spec":{"nodeName":"y"}"#),
        ),
        ("deep nesting", "write", object("", &deep)),
        ("invalid UTF-8", "write", no_utf8),
        (
            "invalid JSON after the metadata",
            "write",
            object("", r#","spec":{nonsense}"#),
        ),
    ]
}

/// Returns steps whose objects have invalid metadata.
fn metadata() -> Vec<Step> {
    vec![
        (
            "labels that are not a map",
            "write",
            object(r#","labels":["x"]"#, ""),
        ),
        (
            "a label that is not a string",
            "write",
            object(r#","labels":{"app":7}"#, ""),
        ),
        (
            "annotations that are not a map",
            "write",
            object(r#","annotations":"x""#, ""),
        ),
        (
            "owner references that are not a list",
            "write",
            object(r#","ownerReferences":"x""#, ""),
        ),
        (
            "an invalid time",
            "write",
            object(r#","creationTimestamp":"yesterday""#, ""),
        ),
        (
            "a uid that is not a string",
            "write",
            raw(&format!(
                r#"{{"metadata":{{{},"uid":5}}}}"#,
                HEAD.replace(r#""uid":"u","#, "")
            )),
        ),
        (
            "a duplicate name",
            "write",
            raw(&format!(r#"{{"metadata":{{{HEAD},"name":"a"}}}}"#)),
        ),
        (
            "duplicate metadata",
            "write",
            raw(&format!(
                r#"{{"metadata":{{{HEAD}}},"metadata":{{{HEAD}}}}}"#
            )),
        ),
    ]
}

/// Returns steps whose objects have an unexpected kind, or contain the field `kind` after the other fields.
fn kinds() -> Vec<Step> {
    vec![
        (
            "the kind after the other fields",
            "write",
            object("", r#","kind":"Pod","apiVersion":"v1""#),
        ),
        (
            "another kind",
            "write",
            raw(&format!(
                r#"{{"kind":"Service","apiVersion":"v1","metadata":{{{HEAD}}}}}"#
            )),
        ),
        (
            "another kind after the other fields",
            "write",
            object("", r#","kind":"Service","apiVersion":"v1""#),
        ),
    ]
}

/// Returns steps that write JSON values without metadata. The first and the last step write a valid object.
fn without_metadata() -> Vec<Step> {
    vec![
        ("healthy before no metadata", "write", good("")),
        ("no metadata", "write", raw(r#"{"spec":{}}"#)),
        ("null metadata", "write", raw(r#"{"metadata":null}"#)),
        ("an array instead of an object", "write", raw("[]")),
        ("null instead of an object", "write", raw("null")),
        ("healthy after no metadata", "write", good("")),
    ]
}

/// Returns steps that delete the object in three cases:
/// - The stored state and the final state are valid.
/// - The stored state and the final state are invalid.
/// - The stored state is valid, and the final state is invalid.
fn deletions() -> Vec<Step> {
    vec![
        ("deleted while healthy", "delete", good("")),
        (
            "broken from the beginning",
            "write",
            object("", r#","spec":5"#),
        ),
        ("deleted while broken", "delete", object("", r#","spec":5"#)),
        ("healthy before the deletion", "write", good("")),
        (
            "deleted in a broken state",
            "delete",
            object("", r#","spec":5"#),
        ),
    ]
}

fn good(labels: &str) -> Vec<u8> {
    object(labels, r#","spec":{"containers":[{"name":"c"}]}"#)
}

fn raw(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn object(metadata: &str, behind: &str) -> Vec<u8> {
    format!(r#"{{"metadata":{{{HEAD}{metadata}}}{behind}}}"#).into_bytes()
}
