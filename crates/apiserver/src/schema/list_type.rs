//! Finds duplicate items in lists with the type `set` or `map` (`x-kubernetes-list-type`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Schema;
use super::outcome::{ErrorList, shown};
use crate::go_json::to_text;
use crate::status::FieldError;

/// Returns an error for each value that a list contains again although its type forbids it.
pub(super) fn duplicates(schema: &Schema, object: &Map<String, Value>) -> Vec<FieldError> {
    let mut search = Search::default();
    search.members(schema, object);
    search.errors.into()
}

/// Returns a text that identifies a value. As in Kubernetes, the number 1.0 differs from 1, except in a list or an
/// object.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(_) => value.to_string(),
        other => to_text(other),
    }
}

#[derive(Default)]
struct Search {
    /// Path of the current value.
    path: String,
    errors: ErrorList,
}

impl Search {
    fn below(&mut self, step: &str, go: impl FnOnce(&mut Search)) {
        let length = self.path.len();
        self.path.push_str(step);
        go(self);
        self.path.truncate(length);
    }

    fn members(&mut self, schema: &Schema, members: &Map<String, Value>) {
        for (name, value) in members {
            let Some((below, step)) = schema.step(name, &self.path) else {
                continue;
            };
            self.below(&step, |this| this.value(below, value));
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value) {
        if self.errors.is_full() {
            return;
        }
        match value {
            Value::Array(items) => self.items(schema, items),
            Value::Object(members) => self.members(schema, members),
            _ => {}
        }
    }

    fn items(&mut self, schema: &Schema, items: &[Value]) {
        match schema.list_type.as_str() {
            "set" => self.repeated(items.iter().map(|item| (identity(item), shown(item)))),
            "map" => self.repeated_keys(&schema.list_map_keys, items),
            _ => {}
        }
        if let Some(below) = &schema.items {
            for (at, item) in items.iter().enumerate() {
                self.below(&format!("[{at}]"), |this| this.value(below, item));
            }
        }
    }

    fn repeated_keys(&mut self, keys: &[String], items: &[Value]) {
        let mut wrong = items.iter().enumerate();
        let wrong = wrong.find(|(_, item)| !item.is_object() && !item.is_null());
        if let Some((at, item)) = wrong {
            let field = format!("{}[{at}]", self.path);
            let why = "must be an object for an array of list-type map";
            self.errors
                .push(FieldError::invalid(field, shown(item), why));
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
        self.repeated(keyed.collect::<Vec<_>>().into_iter());
    }

    /// Adds an error for the second of several equal items. An item has the text that identifies it, and the
    /// text in the error.
    fn repeated(&mut self, items: impl Iterator<Item = (String, String)>) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (at, (item, shown)) in items.enumerate() {
            let times = seen.entry(item).or_default();
            *times += 1;
            if *times == 2 && !self.errors.is_full() {
                self.errors.push(FieldError {
                    field: format!("{}[{at}]", self.path).into(),
                    reason: "FieldValueDuplicate",
                    body: format!("Duplicate value: {shown}"),
                });
            }
        }
    }
}
