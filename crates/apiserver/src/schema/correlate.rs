//! Finds the old value of each part of an updated object.
//!
//! Kubernetes does not report errors of values that an update does not change.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Schema;

/// A value of an updated object together with its old value, and the schema that correlates their parts.
#[derive(Clone, Copy)]
pub(super) struct Correlated<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    schema: &'a Schema,
}

/// The old items of a list with the type `map`, by their keys.
pub(super) struct OldItems<'a> {
    items: BTreeMap<String, &'a Value>,
    schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    pub(super) fn new(schema: &'a Schema, new: &'a Value, old: &'a Value) -> Correlated<'a> {
        Correlated { old, new, schema }
    }

    /// Returns the member `name` of both values, if both have it and the schema knows it.
    pub(super) fn member(self, name: &str) -> Option<Correlated<'a>> {
        Some(Correlated {
            old: self.old.as_object()?.get(name)?,
            new: self.new.as_object()?.get(name)?,
            schema: self.schema.member(name).schema()?,
        })
    }

    /// Returns the old items of a list. Returns `None` if the items of the list are not correlated.
    pub(super) fn items(self) -> Option<OldItems<'a>> {
        let is_map = self.schema.list_type == "map" && self.schema.type_name == "array";
        let schema = self.schema.items.as_deref().filter(|_| is_map)?;
        let old = self.old.as_array()?;
        let keys = &self.schema.list_map_keys;
        let mut items = BTreeMap::new();
        for item in old {
            if let Some(key) = key_of(item, keys) {
                // As in Kubernetes, the first of several items with one key counts.
                items.entry(key).or_insert(item);
            }
        }
        Some(OldItems { items, schema })
    }

    /// Returns whether the old and the new value are equal.
    ///
    /// As in Kubernetes, items of a list with the type `map` may have another order, and a value that the
    /// schema does not know makes both different.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.old, self.new) {
            (Value::Array(old), Value::Array(new)) => {
                if old.len() != new.len() {
                    return false;
                }
                let is_map = self.schema.list_type == "map";
                let Some(items) = self.items() else {
                    return old.is_empty() || (!is_map && old == new);
                };
                new.iter().all(|item| {
                    let found = items.get(item, &self.schema.list_map_keys);
                    found.is_some_and(Correlated::is_unchanged)
                })
            }
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len()
                    && new.keys().all(|name| {
                        let found = self.member(name);
                        found.is_some_and(Correlated::is_unchanged)
                    })
            }
            (old, new) => old == new,
        }
    }

    pub(super) fn keys(self) -> &'a [String] {
        &self.schema.list_map_keys
    }
}

impl<'a> OldItems<'a> {
    /// Returns the new item `item` with the old item that has the same keys.
    pub(super) fn get(&self, item: &'a Value, keys: &[String]) -> Option<Correlated<'a>> {
        let old = self.items.get(&key_of(item, keys)?)?;
        Some(Correlated {
            old,
            new: item,
            schema: self.schema,
        })
    }
}

/// Returns the values of an item's keys as one text.
///
/// Returns `None` if the list has no keys, or if a key is missing or is no scalar.
fn key_of(item: &Value, keys: &[String]) -> Option<String> {
    let item: &Map<String, Value> = item.as_object()?;
    if keys.is_empty() {
        return None;
    }
    let mut text = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => {
                text.push_str(&scalar.to_string());
                text.push('\0');
            }
        }
    }
    Some(text)
}
