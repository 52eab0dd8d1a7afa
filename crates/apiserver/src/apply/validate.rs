//! Checks that a value has its type.
//!
//! Guarantees: the messages are those of structured-merge-diff for values of the package `unstructured`.

use std::collections::BTreeSet;

use serde_json::{Map as Members, Value};

use super::atom::{Handled, Identity, List, Map, Scalar, Type};
use super::errors::{Errors, Name};
use super::path::PathElement;
use super::planted::{self, Bug};
use crate::quote::{Quoted, go_float, go_text};

/// Whether a list can contain an item twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Rejected,
}

/// Checks a value.
///
/// # Errors
///
/// Returns the message about all errors.
pub(super) fn validate(
    value: &Value,
    value_type: Type<'_>,
    duplicates: Duplicates,
) -> Result<(), String> {
    let mut errors = Errors::default();
    Validator {
        duplicates,
        errors: &mut errors,
    }
    .value(value, value_type);
    errors.into_result()
}

struct Validator<'e> {
    duplicates: Duplicates,
    errors: &'e mut Errors,
}

impl Validator<'_> {
    fn value(&mut self, value: &Value, value_type: Type<'_>) {
        let atom = value_type.atom();
        match (atom.handled(atom.part(Some(value))), value) {
            (_, Value::Null) => {}
            (Handled::Scalar(scalar), _) => {
                if let Some(message) = scalar_error(scalar, value) {
                    self.errors.push(message);
                }
            }
            (Handled::List(list), Value::Array(items)) => self.items(&list, items),
            (Handled::Map(map), Value::Object(members)) => self.members(&map, members),
            (Handled::List(_), _) => {
                let value = go_text(value);
                self.errors.push(format!("expected list, got &{{{value}}}"));
            }
            (Handled::Map(_), _) => {
                let value = go_text(value);
                self.errors.push(format!("expected map, got &{{{value}}}"));
            }
        }
    }

    fn items(&mut self, list: &List<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let step = match list.identity {
                Identity::Atomic => PathElement::Index(i64::try_from(at).unwrap_or(i64::MAX)),
                _ => match list.step_to(item) {
                    Ok(step) => step,
                    Err(why) => return self.errors.push(format!("element {at}: {why}")),
                },
            };
            if !matches!(list.identity, Identity::Atomic)
                && !seen.insert(step.clone())
                && (self.duplicates == Duplicates::Rejected || planted::has(Bug::StoredDuplicates))
            {
                self.errors
                    .push(format!("duplicate entries for key {step}"));
            }
            self.below(&step, item, list.item);
        }
    }

    fn members(&mut self, map: &Map<'_>, members: &Members<String, Value>) {
        for (name, value) in members {
            let Some(member) = map.member(name) else {
                // Kubernetes does not visit further members either.
                let push = |errors: &mut Errors| errors.push("field not declared in schema");
                return self.errors.at(&Name(name), push);
            };
            self.below(&Name(name), value, member);
        }
    }

    fn below(&mut self, step: &dyn std::fmt::Display, value: &Value, value_type: Type<'_>) {
        let duplicates = self.duplicates;
        self.errors.at(step, |errors| {
            Validator { duplicates, errors }.value(value, value_type);
        });
    }
}

/// Returns the message about a value that is no scalar of a type, or `None`. A null has every type.
pub(super) fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Any, Value::Bool(_) | Value::Number(_) | Value::String(_)) => None,
        (Scalar::Numeric, _) => Some(format!(
            "expected numeric (int or float), got {}",
            go_type(value)
        )),
        (Scalar::Text, _) => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_syntax(value)
        )),
        (Scalar::Boolean, _) => Some(format!("expected boolean, got &{{{}}}", go_text(value))),
        (Scalar::Any, _) => Some(format!("expected any scalar, got &{{{}}}", go_text(value))),
    }
}

/// Returns the type of a value in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns a value as Go's `%#v` shows it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => go_float(number.as_f64().unwrap_or(f64::INFINITY)),
        },
        Value::String(text) => Quoted(text).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{}:{}", Quoted(name), go_syntax(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
    }
}
