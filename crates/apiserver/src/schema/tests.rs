//! Tests of schemas.
//!
//! `tests/examples.jsonl` has the results of the Go packages of kube-apiserver 1.36.3 for random schemas and
//! objects: one JSON object per line, with these members.
//!
//! - `schema`, `object` and, for an update, `old`: the input;
//! - `unknown` and `decoded`: the removed members, and the object without them and with its defaults, if it
//!   differs from `object`;
//! - `coerce`: the error, if the object can't be decoded;
//! - `errors` and `status`: the errors of the object and of its status, sorted, as `field|reason|body`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Schema;
use super::model::{Model, Stored, Undecodable};
use crate::go_json::to_text;
use crate::status::FieldError;
use crate::typed::DEFAULTS_BYTES_MAX;

const EXAMPLES: &str = include_str!("tests/examples.jsonl");

fn model(schema: &Value) -> Model {
    let read = Arc::new(Schema::read(schema).unwrap());
    let stored = Stored {
        by_webhook: false,
        version: "v1".to_owned(),
        schemas: [("v1".to_owned(), Arc::clone(&read))].into(),
    };
    Model::new(read, schema, stored, Vec::new())
}

fn sorted(errors: Vec<FieldError>) -> Value {
    let texts = errors.into_iter().map(|error| {
        let FieldError {
            field,
            reason,
            body,
        } = error;
        format!("{field}|{reason}|{body}")
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    json!(texts)
}

/// Returns the result of an example, with the members that `tests/examples.jsonl` has.
fn result(example: &Value) -> Map<String, Value> {
    let model = model(&example["schema"]);
    let mut object = example["object"].as_object().unwrap().clone();
    let old = example.get("old").map(|old| old.as_object().unwrap());
    let old_value = example.get("old").cloned();
    let mut result = Map::new();
    match model.decode(&mut object) {
        Err(Undecodable::Invalid(error)) => {
            result.insert("coerce".to_owned(), json!(FieldError::list(&[error])));
        }
        Err(Undecodable::TooManyDefaults) => panic!("the defaults are small"),
        Ok(unknown) => {
            let mut errors = model.check(old_value.as_ref(), &Value::Object(object.clone()));
            errors.extend(model.check_embedded(&object));
            errors.extend(model.check_lists(old, &object));
            let status = old.map_or_else(Vec::new, |old| model.check_status(old, &object));
            result.insert("unknown".to_owned(), json!(unknown));
            result.insert("errors".to_owned(), sorted(errors));
            result.insert("status".to_owned(), sorted(status));
            result.insert("decoded".to_owned(), Value::Object(object));
        }
    }
    result
}

#[test]
fn random_objects_have_the_results_of_kubernetes() {
    for line in EXAMPLES.lines() {
        let example: Value = serde_json::from_str(line).unwrap();
        let result = result(&example);
        assert_eq!(
            result.contains_key("coerce"),
            example.get("coerce").is_some(),
            "{line}"
        );
        for (member, found) in result {
            let expected = match member.as_str() {
                "decoded" => example.get("decoded").unwrap_or(&example["object"]),
                _ => &example[&member],
            };
            let expected = match expected {
                Value::Null => json!([]),
                other => other.clone(),
            };
            assert_eq!(to_text(&found), to_text(&expected), "{member} of {line}");
        }
    }
    assert_eq!(EXAMPLES.lines().count(), 106);
}

#[test]
fn a_second_pruning_changes_nothing() {
    for line in EXAMPLES.lines() {
        let example: Value = serde_json::from_str(line).unwrap();
        let model = model(&example["schema"]);
        let mut object = example["object"].as_object().unwrap().clone();
        if model.decode(&mut object).is_ok() {
            let once = object.clone();
            model.show("v1", &mut object);
            assert_eq!(object, once, "{line}");
        }
    }
}

#[test]
fn defaults_are_limited_in_size() {
    let default = "x".repeat(1_000_000);
    let item =
        json!({"type": "object", "properties": {"a": {"type": "string", "default": default}}});
    let model = model(&json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}},
    }));
    let object = |count: usize| {
        let items = vec![json!({}); count];
        Map::from_iter([("items".to_owned(), json!(items))])
    };
    assert_eq!(model.decode(&mut object(3)), Ok(Vec::new()));
    let mut many = object(100_000);
    assert_eq!(model.decode(&mut many), Err(Undecodable::TooManyDefaults));
    let mut shown = object(100_000);
    model.show("v1", &mut shown);
    assert!(to_text(&Value::Object(shown)).len() < 2 * DEFAULTS_BYTES_MAX);
}

#[test]
fn errors_are_limited_in_number() {
    let model = model(&json!({
        "type": "object",
        "properties": {"items": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        }},
    }));
    let items: Vec<usize> = (0..200_000).map(|number| number / 2).collect();
    let object = Map::from_iter([("items".to_owned(), json!(items))]);
    assert_eq!(model.check_lists(None, &object).len(), 1_000);
    assert_eq!(model.check(None, &Value::Object(object)).len(), 1_000);
}

#[test]
fn a_schema_with_a_wrong_type_is_rejected() {
    let why = Schema::read(&json!({"properties": {"a": {"maxLength": "5"}}})).unwrap_err();
    assert!(
        why.to_string().contains("invalid type: string \"5\""),
        "{why}"
    );
}
