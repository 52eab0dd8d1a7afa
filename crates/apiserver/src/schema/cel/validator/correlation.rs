//! Finds the old values of an update, and compares them with the new ones.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value as Json;

use super::super::structural::Schema;

/// A new value with its old value.
#[derive(Debug)]
pub(super) struct Correlation<'a> {
    new: &'a Json,
    old: &'a Json,
    schema: &'a Schema,
    is_unchanged: Cell<Option<bool>>,
    index: OnceCell<ListIndex<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn new(new: &'a Json, old: &'a Json, schema: &'a Schema) -> Correlation<'a> {
        Correlation {
            new,
            old,
            schema,
            is_unchanged: Cell::new(None),
            index: OnceCell::new(),
        }
    }

    /// Returns a field or entry, if both values have it and the schema describes it.
    pub(super) fn field(&self, name: &str) -> Option<Rc<Correlation<'a>>> {
        let (new, old) = (
            self.new.as_object()?.get(name)?,
            self.old.as_object()?.get(name)?,
        );
        let schema = self
            .schema
            .property(name)
            .or(self.schema.additional.as_ref())?;
        Some(Rc::new(Correlation::new(new, old, schema)))
    }

    /// Returns an item of a list of the type `map`, if the old list has an item with the same keys.
    pub(super) fn item(&self, index: usize) -> Option<Rc<Correlation<'a>>> {
        let (new, old) = (self.new.as_array()?.get(index)?, self.old.as_array()?);
        let known = self.index.get_or_init(|| ListIndex::new(self.schema, old));
        let schema = self.schema.items.as_ref()?;
        Some(Rc::new(Correlation::new(new, known.find(new)?, schema)))
    }

    /// Returns whether the values are equal. A value inside that has no old value counts as a difference.
    pub(super) fn is_unchanged(&self) -> bool {
        if let Some(known) = self.is_unchanged.get() {
            return known;
        }
        let is_unchanged = self.compare();
        self.is_unchanged.set(Some(is_unchanged));
        is_unchanged
    }

    fn compare(&self) -> bool {
        match (self.new, self.old) {
            (Json::Array(new), Json::Array(old)) => {
                let is_map_list = self.schema.extensions.list_type.as_deref() == Some("map");
                if !is_map_list || self.schema.items.is_none() {
                    return new == old;
                }
                let unchanged = |index| self.item(index).is_some_and(|item| item.is_unchanged());
                new.len() == old.len() && (0..new.len()).all(unchanged)
            }
            (Json::Object(new), Json::Object(old)) => {
                let unchanged =
                    |name: &String| self.field(name).is_some_and(|field| field.is_unchanged());
                new.len() == old.len() && new.keys().all(unchanged)
            }
            (new, old) => new == old,
        }
    }
}

/// The items of a list of the type `map` by their keys. It is empty for other lists.
#[derive(Debug, Default)]
pub(super) struct ListIndex<'a> {
    items: BTreeMap<String, &'a Json>,
    keys: Vec<String>,
}

impl<'a> ListIndex<'a> {
    pub(super) fn new(schema: &Schema, items: &'a [Json]) -> ListIndex<'a> {
        if schema.kind != "array" || schema.extensions.list_type.as_deref() != Some("map") {
            return ListIndex::default();
        }
        let keys = schema.extensions.list_map_keys.clone();
        let mut index = ListIndex {
            items: BTreeMap::new(),
            keys,
        };
        for item in items {
            if let Some(key) = index.key(item) {
                index.items.entry(key).or_insert(item);
            }
        }
        index
    }

    /// Returns the first item with the same keys.
    pub(super) fn find(&self, item: &Json) -> Option<&'a Json> {
        self.items.get(&self.key(item)?).copied()
    }

    /// Returns the values of the keys as one text, if all are scalars.
    fn key(&self, item: &Json) -> Option<String> {
        if self.keys.is_empty() {
            return None;
        }
        let mut joined = String::new();
        for key in &self.keys {
            match item.get(key)? {
                Json::Null | Json::Array(_) | Json::Object(_) => return None,
                scalar => {
                    // JSON escapes the separator inside of texts.
                    joined.push_str(&scalar.to_string());
                    joined.push('\0');
                }
            }
        }
        Some(joined)
    }
}
