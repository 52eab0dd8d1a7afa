//! Finds duplicate items in lists with the type `set` or `map` (`x-kubernetes-list-type`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Schema;
use super::outcome::{ErrorList, shown};
use super::walk::{Visited, Walk};
use crate::go_json::to_text;
use crate::status::FieldError;

/// Returns an error for each value that a list contains again although its type forbids it.
pub(super) fn duplicates(schema: &Schema, object: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = ErrorList::default();
    let check = |schema: &Schema, visited: Visited<'_>, path: &str| {
        if let Visited::List(items) = visited {
            match schema.list_type.as_str() {
                "set" => {
                    let items = items.iter().map(|item| (identity(item), shown(item)));
                    repeated(items, path, &mut errors);
                }
                "map" => repeated_keys(&schema.list_map_keys, items, path, &mut errors),
                _ => {}
            }
        }
        !errors.is_full()
    };
    Walk::new(String::new(), check).object(schema, object);
    errors.into()
}

/// Returns a text that identifies a value. As in Kubernetes, the number 1.0 differs from 1, except in a list or an
/// object.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(_) => value.to_string(),
        other => to_text(other),
    }
}

fn repeated_keys(keys: &[String], items: &[Value], path: &str, errors: &mut ErrorList) {
    let mut wrong = items.iter().enumerate();
    let wrong = wrong.find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((at, item)) = wrong {
        let field = format!("{path}[{at}]");
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(field, shown(item), why));
        return;
    }
    let names: BTreeSet<&String> = keys.iter().collect();
    let keyed = items.iter().map(|item| {
        let members = item.as_object().into_iter().flatten();
        let found: BTreeMap<&String, &Value> =
            members.filter(|(name, _)| names.contains(name)).collect();
        let text = to_text(&found);
        let identity = match keys {
            [key] => item.get(key).map_or_else(String::new, identity),
            _ => text.clone(),
        };
        (identity, text)
    });
    repeated(keyed, path, errors);
}

/// Adds an error for the second of several equal items. An item has the text that identifies it, and the
/// text in the error.
fn repeated(items: impl Iterator<Item = (String, String)>, path: &str, errors: &mut ErrorList) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (at, (item, shown)) in items.enumerate() {
        let times = seen.entry(item).or_default();
        *times += 1;
        if *times == 2 && !errors.is_full() {
            errors.push(FieldError {
                field: format!("{path}[{at}]").into(),
                reason: "FieldValueDuplicate",
                body: format!("Duplicate value: {shown}"),
            });
        }
    }
}
