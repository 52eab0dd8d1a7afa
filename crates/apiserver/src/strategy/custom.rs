//! Validates the objects of custom kinds against their definitions.
//!
//! Guarantees: the errors and their order are those of Kubernetes' `customResourceStrategy`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Hooks, Part};
use crate::kinds::{Kind, ScalePaths};
use crate::object::Object;
use crate::quote::{Quoted, go_text};
use crate::schema::Model;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    warn: Some(warn),
    ..Hooks::NONE
};

/// The finalizers of Kubernetes itself, which have no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];

/// Adds a warning about each new finalizer without a domain.
fn warn(new: &Object, old: Option<&Object>, warnings: &mut Vec<String>) {
    let known = old.map(Object::finalizers).unwrap_or_default();
    let added: BTreeSet<&str> = new.finalizers().into_iter().collect();
    let is_bare = |name: &&str| !name.contains('/') && !STANDARD_FINALIZERS.contains(name);
    for name in added
        .into_iter()
        .filter(|name| !known.contains(name))
        .filter(is_bare)
    {
        let path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        warnings.push(format!(
            "metadata.finalizers: {}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers",
            Quoted(name)
        ));
    }
}

/// Returns the errors of a new object.
pub(crate) fn validate(kind: &Kind, model: Option<&Model>, new: &Object) -> Vec<FieldError> {
    let Some(model) = model else {
        return check_scale(kind, new, Part::Main);
    };
    let (members, value) = (new.members(), whole(new));
    let mut errors = model.check(None, &value);
    errors.extend(check_scale(kind, new, Part::Main));
    errors.extend(model.check_embedded(members));
    errors.extend(model.check_lists(None, members));
    errors.extend(model.check_rules(None, &value, &errors, &mut |_| {}));
    errors
}

/// Returns the errors of an update. Calls `warn` with the errors of rules that unchanged values violate.
pub(crate) fn validate_update(
    kind: &Kind,
    model: Option<&Model>,
    (old, new): (&Object, &Object),
    part: Part,
    warn: &mut dyn FnMut(String),
) -> Vec<FieldError> {
    let Some(model) = model else {
        return check_scale(kind, new, part);
    };
    let (before, after) = (old.members(), new.members());
    let (old_value, value) = (whole(old), whole(new));
    let mut errors = match part {
        Part::Status => model.check_status(before, after),
        _ => model.check(Some(&old_value), &value),
    };
    errors.extend(check_scale(kind, new, part));
    if part != Part::Status {
        errors.extend(model.check_embedded(after));
    }
    errors.extend(model.check_lists(Some(before), after));
    errors.extend(model.check_rules(Some(&old_value), &value, &errors, warn));
    errors
}

fn whole(object: &Object) -> Value {
    Value::Object(object.members().clone())
}

/// Returns the errors of the fields that the subresource `scale` uses.
///
/// An update of `status` does not check the requested number of replicas.
fn check_scale(kind: &Kind, object: &Object, part: Part) -> Vec<FieldError> {
    let Some(paths) = &kind.scale else {
        return Vec::new();
    };
    let ScalePaths {
        replicas,
        current_replicas,
        selector,
    } = paths;
    let requested = Some(replicas).filter(|_| part != Part::Status);
    let counts = requested.into_iter().chain([current_replicas]);
    let mut errors: Vec<FieldError> = counts
        .filter_map(|path| check_count(object.members(), path))
        .collect();
    if !selector.is_empty() {
        errors.extend(check_selector(object.members(), selector));
    }
    errors
}

/// Returns the error of a number of replicas, which is optional.
fn check_count(object: &Map<String, Value>, path: &str) -> Option<FieldError> {
    let invalid = |count: i64, why: &str| Some(FieldError::invalid(path.to_owned(), count, why));
    let value = match value_at(object, path) {
        Ok(value) => value?,
        Err(why) => return invalid(0, &why),
    };
    match value.as_i64() {
        None => invalid(0, &wrong_type(path, value, "int64")),
        Some(count) if count < 0 => invalid(count, "should be a non-negative integer"),
        Some(count) if count > i64::from(i32::MAX) => {
            let why = format!("should be less than or equal to {}", i32::MAX);
            invalid(count, &why)
        }
        Some(_) => None,
    }
}

/// Returns the error of a label selector, which must be a string if it is present.
fn check_selector(object: &Map<String, Value>, path: &str) -> Option<FieldError> {
    let why = match value_at(object, path) {
        Ok(None | Some(Value::String(_))) => return None,
        Ok(Some(other)) => wrong_type(path, other, "string"),
        Err(why) => why,
    };
    Some(FieldError::invalid(path.to_owned(), "\"\"", &why))
}

/// Returns the value at a path such as `.spec.replicas`, or `None` if it is absent.
///
/// # Errors
///
/// Returns an error if a value on the path is no object.
fn value_at<'a>(object: &'a Map<String, Value>, path: &str) -> Result<Option<&'a Value>, String> {
    let names: Vec<&str> = path.strip_prefix('.').unwrap_or(path).split('.').collect();
    let mut members = object;
    for (at, name) in names.iter().enumerate() {
        let Some(value) = members.get(*name) else {
            return Ok(None);
        };
        if at + 1 == names.len() {
            return Ok(Some(value));
        }
        members = match value {
            Value::Object(members) => members,
            Value::Null => return Ok(None),
            other => {
                let above = names[..=at].join(".");
                return Err(wrong_type(&above, other, "map[string]interface{}"));
            }
        };
    }
    Ok(None)
}

/// Returns Go's message about a value of a wrong type.
fn wrong_type(path: &str, value: &Value, expected: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    let found = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let value = go_text(value);
    format!(".{path} accessor error: {value} is of the type {found}, expected {expected}")
}
