//! Tests of the types of custom kinds.

use serde_json::json;

use super::*;

/// Returns the fields of a manager that applies a `spec`, or the error.
fn applied(schema: &Value, spec: &Value) -> Result<Value, String> {
    let mut stored = Stored::of_spec(schema);
    stored.apply("one", &json!({ "spec": spec }))?;
    Ok(stored.fields("one")["f:spec"].clone())
}

#[test]
fn unknown_members_are_fields_where_a_schema_keeps_them() {
    let text = json!({"type": "string"});
    let inner = json!({"type": "object", "properties": {"a": text}});
    for (schema, is_kept) in [
        (
            json!({"type": "object", "properties": {"inner": inner}}),
            false,
        ),
        // What a node keeps, the nodes below it keep too.
        (
            json!({
                "type": "object",
                "properties": {"inner": inner},
                "x-kubernetes-preserve-unknown-fields": true,
            }),
            true,
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            true,
        ),
        (json!({"type": "object"}), true),
    ] {
        let spec = json!({"inner": {"a": "x", "b": {"c": [1], "d": {}}}});
        let fields = applied(&schema, &spec);
        if is_kept {
            let fields = fields.unwrap();
            assert_eq!(
                fields["f:inner"]["f:b"],
                json!({".": {}, "f:c": {}, "f:d": {}}),
                "{schema}"
            );
        } else {
            let error = fields.unwrap_err();
            assert!(
                error.ends_with(": .spec.inner.b: field not declared in schema"),
                "{error}"
            );
        }
    }
}

#[test]
fn scalars_have_the_types_of_their_schemas() {
    for (schema, value, error) in [
        (
            json!({"type": "integer"}),
            json!("1"),
            "expected numeric (int or float), got string",
        ),
        (
            json!({"type": "number"}),
            json!([]),
            "expected numeric (int or float), got []interface {}",
        ),
        (
            json!({"type": "boolean"}),
            json!({"a": 1}),
            "expected boolean, got &{map[a:1]}",
        ),
        (
            json!({"type": "string"}),
            json!(1.5),
            "expected string, got &value.valueUnstructured{Value:1.5}",
        ),
        (
            json!({"type": "string", "format": "byte"}),
            json!(true),
            "expected string, got &value.valueUnstructured{Value:true}",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!(1),
            "",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!([1]),
            "expected any scalar, got &{[1]}",
        ),
        (json!({"x-kubernetes-int-or-string": true}), json!(1), ""),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!("10%"),
            "",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!("x"),
            "expected list, got &{x}",
        ),
    ] {
        let spec = json!({"type": "object", "properties": {"a": schema}});
        let outcome = applied(&spec, &json!({ "a": value }));
        match outcome {
            Ok(fields) => assert_eq!((error, fields), ("", json!({"f:a": {}})), "{schema}"),
            Err(why) => assert!(
                !error.is_empty() && why.ends_with(&format!(": .spec.a: {error}")),
                "{why}"
            ),
        }
    }
}

#[test]
fn embedded_objects_have_metadata() {
    let schema = json!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    });
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"});
    let spec = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"labels": {"l": "x"}, "ownerReferences": [owner], "finalizers": ["f"]},
        "spec": {"a": "x"},
    });
    assert_eq!(
        applied(&schema, &spec).unwrap(),
        json!({
            "f:apiVersion": {}, "f:kind": {},
            "f:metadata": {
                "f:finalizers": {"v:\"f\"": {}},
                "f:labels": {"f:l": {}},
                "f:ownerReferences": {"k:{\"uid\":\"u1\"}": {}},
            },
            "f:spec": {"f:a": {}},
        })
    );
    let error = applied(&schema, &json!({"metadata": {"other": 1}})).unwrap_err();
    assert!(
        error.ends_with(": .spec.metadata.other: field not declared in schema"),
        "{error}"
    );
}

#[test]
fn a_version_without_a_schema_has_any_fields() {
    let mut stored = Stored::of_schemas(&json!({"v1": null}));
    stored
        .apply(
            "one",
            &json!({"spec": {"a": [{"name": "x"}], "b": {"c": 1}}}),
        )
        .unwrap();
    assert_eq!(
        stored.fields("one"),
        json!({"f:spec": {".": {}, "f:a": {}, "f:b": {".": {}, "f:c": {}}}})
    );
}
