//! Visits the objects and lists in a value that a schema describes, with their paths.

use serde_json::{Map, Value};

use super::Schema;

/// An object or a list that a schema describes.
pub(super) enum Visited<'a> {
    Object(&'a Map<String, Value>),
    List(&'a [Value]),
}

/// Visits objects and lists, each before what it contains. Members of objects are visited by name.
pub(super) struct Walk<V> {
    /// Path of the current value.
    path: String,
    /// Receives the schema, the value and its path, and returns whether the walk goes on.
    visit: V,
}

impl<V: FnMut(&Schema, Visited<'_>, &str) -> bool> Walk<V> {
    pub(super) fn new(path: String, visit: V) -> Walk<V> {
        Walk { path, visit }
    }

    pub(super) fn object(&mut self, schema: &Schema, members: &Map<String, Value>) -> bool {
        (self.visit)(schema, Visited::Object(members), &self.path)
            && members.iter().all(|(name, value)| {
                let below = schema.step(name, &self.path);
                below.is_none_or(|(below, step)| self.below(&step, below, value))
            })
    }

    pub(super) fn value(&mut self, schema: &Schema, value: &Value) -> bool {
        match value {
            Value::Object(members) => self.object(schema, members),
            Value::Array(items) => self.list(schema, items),
            _ => true,
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value]) -> bool {
        let goes_on = (self.visit)(schema, Visited::List(items), &self.path);
        let Some(below) = schema.items.as_deref().filter(|_| goes_on) else {
            return goes_on;
        };
        let mut items = items.iter().enumerate();
        items.all(|(at, item)| self.below(&format!("[{at}]"), below, item))
    }

    fn below(&mut self, step: &str, schema: &Schema, value: &Value) -> bool {
        let length = self.path.len();
        self.path.push_str(step);
        let goes_on = self.value(schema, value);
        self.path.truncate(length);
        goes_on
    }
}
