//! Compares the errors of definitions with those of Kubernetes, and bounds the work for hostile definitions.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use super::shown::VALUE_BYTES_MAX;
use super::*;
use crate::metadata::MetadataRules;
use crate::strategy::report::{BYTES_MAX, ERRORS_MAX};

/// Definitions, updates of definitions, and the errors that Kubernetes 1.36.3 reports.
///
/// Each line is a JSON object with the members `new`, `old` for an update, `status` if only the status is
/// updated, and `errors`: lists of a reason, a field and a message.
const EXAMPLES: &[u8] = include_bytes!("examples.jsonl.gz");

fn object(value: &Value) -> Object {
    let mut object = Object::stored(value.as_object().unwrap().clone());
    complete(&mut object);
    object
}

/// Validates a new definition as a create request does.
fn errors_of_create(new: &Value) -> Vec<FieldError> {
    let mut new = object(new);
    let mut status = json!({});
    prepare_status(&mut status, &new, "");
    new.set("status", Some(status));
    let mut errors = MetadataRules::GENERIC.check_new(&new);
    errors.extend(validate(&new));
    errors
}

/// Validates an update as an update request does.
fn errors_of_update(old: &Value, new: &Value, part: Part) -> Vec<FieldError> {
    let (mut old, mut new) = (object(old), object(new));
    let stored = old.part("status")["storedVersions"].clone();
    if stored.as_array().is_none_or(Vec::is_empty) {
        let unchanged = old.clone();
        keep(&mut old, &unchanged, Part::Main);
    }
    if part == Part::Status {
        new.set("spec", old.get("spec").cloned());
    } else {
        new.set("status", old.get("status").cloned());
        keep(&mut new, &old, part);
    }
    check_change(&old, &new, part)
}

#[test]
fn examples_have_the_errors_of_kubernetes() {
    let mut text = String::new();
    GzDecoder::new(EXAMPLES).read_to_string(&mut text).unwrap();
    for line in text.lines() {
        let example: Value = serde_json::from_str(line).unwrap();
        let part = match &example["status"] {
            Value::Bool(true) => Part::Status,
            _ => Part::Main,
        };
        let errors = match &example["old"] {
            Value::Null => errors_of_create(&example["new"]),
            old => errors_of_update(old, &example["new"], part),
        };
        let found = errors
            .iter()
            .map(|error| json!([error.reason, error.field, error.body]));
        let found: Vec<Value> = found.collect();
        let expected = example["errors"].as_array().unwrap();
        assert_eq!(&found, expected, "{line}");
    }
    assert_eq!(text.lines().count(), 264);
}

fn definition(versions: &Value) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
        },
    })
}

fn with_schema(schema: &Value) -> Value {
    definition(&json!([{
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }]))
}

fn properties(count: usize, property: &Value) -> Value {
    let properties = (0..count).map(|nth| (format!("p{nth}"), property.clone()));
    Value::Object(properties.collect::<Map<String, Value>>())
}

/// Checks that the errors of a definition, also as an update of itself, are within the limits.
fn assert_bounded(definition: &Value) {
    for errors in [
        errors_of_create(definition),
        errors_of_update(definition, definition, Part::Main),
    ] {
        let bytes = errors
            .iter()
            .map(|error| error.field.len() + error.body.len());
        let bytes: usize = bytes.sum();
        assert!(!errors.is_empty());
        assert!(errors.len() <= ERRORS_MAX, "{} errors", errors.len());
        let longest = definition.to_string().len() + VALUE_BYTES_MAX;
        assert!(bytes <= BYTES_MAX + longest, "{bytes} bytes");
    }
}

#[test]
fn the_errors_of_a_large_definition_are_bounded() {
    let many = properties(5_000, &json!({"type": "x", "default": null}));
    let keys: Vec<String> = (0..5_000).map(|nth| format!("k{nth}")).collect();
    let versions: Vec<Value> = (0..5_000).map(|_| json!({"name": "-"})).collect();
    let paths: Vec<Value> = (0..5_000).map(|_| json!({"jsonPath": "x"})).collect();
    let long = "x".repeat(100_000);
    let rules = json!([{"rule": "true", "fieldPath": ".x"}]);
    let mut nested = json!({"properties": properties(3_000, &json!({})), "id": "x"});
    for _ in 0..100 {
        nested = json!({"not": nested, "x-kubernetes-validations": rules});
    }
    let mut wide = properties(1_000, &json!({"type": "array"}));
    wide = json!({long.as_str(): {"type": "object", "properties": wide}});
    let mut wrong = properties(1_000, &json!({"type": "integer", "default": "x"}));
    wrong = json!({long: {"type": "object", "properties": wrong}});
    for definition in [
        with_schema(&json!({"type": "object", "properties": many, "nullable": true})),
        with_schema(&json!({"type": "object", "properties": {"a": {
            "type": "array",
            "items": {"type": "object"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
        }}})),
        definition(&json!(versions)),
        definition(
            &json!([{"name": "v1", "storage": true, "selectableFields": paths,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]),
        ),
        with_schema(&nested),
        with_schema(&json!({"type": "object", "properties": wide})),
        with_schema(&json!({"type": "object", "properties": wrong})),
    ] {
        assert_bounded(&definition);
    }
}

#[test]
fn a_shown_value_is_cut() {
    let schema = json!({
        "type": "object",
        "properties": properties(3_000, &json!({})),
        "nullable": true,
    });
    let errors = errors_of_create(&with_schema(&schema));
    assert!(errors[0].body.ends_with("status subresource is enabled"));
    assert!(errors[0].body.contains("...: only [Description"));
}

#[test]
fn a_definition_of_the_maximum_depth_is_validated() {
    for member in ["not", "items", "additionalProperties"] {
        let mut schema = json!({"type": "array"});
        for _ in 0..120 {
            schema = json!({member: schema});
        }
        assert_bounded(&with_schema(&schema));
    }
}

#[test]
fn members_of_wrong_types_do_not_panic() {
    for wrong in [
        json!(1),
        json!("x"),
        json!([1]),
        json!({"x": 1}),
        json!(true),
    ] {
        let whole = json!({"metadata": {"name": "a"}, "spec": wrong});
        assert!(!errors_of_create(&whole).is_empty());
        for member in &member::VERSION {
            let mut version =
                json!({"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}});
            version[member.json] = wrong.clone();
            errors_of_create(&definition(&json!([version])));
        }
        for member in &member::SCHEMA {
            let mut schema = json!({"type": "object"});
            schema[member.json] = wrong.clone();
            let schema = json!({"type": "object", "properties": {"a": schema}});
            let definition = with_schema(&schema);
            errors_of_update(&definition, &definition, Part::Main);
        }
    }
    let schema = json!({"type": "object", "description": 1, "items": 1});
    assert_eq!(errors_of_create(&with_schema(&schema)), []);
    let schema = json!({"type": "object", "maximum": "x"});
    let [error] = errors_of_create(&with_schema(&schema)).try_into().unwrap();
    assert_eq!(error.field, "spec.versions[0].schema.openAPIV3Schema");
}
