//! Adapts the defaults of a schema to the schema, when a definition is read.
//!
//! Guarantees: no default has a member that pruning would remove from an object.

use serde_json::{Map, Value};

use super::embedded::{self, Malformed};
use super::shape::Unknown;
use super::{Additional, DefaultValue, Schema};

/// A step from a value to a value below it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Property(String),
    /// Any member that `properties` does not name.
    Additional,
    Item,
}

/// Name of the member that stands for any name. The name is not significant.
const ANY: &str = "*";

impl Step {
    /// Returns an object or a list that has `value` at the place `steps`.
    pub(super) fn around(steps: &[Step], value: Value) -> Value {
        steps.iter().rev().fold(value, |value, step| match step {
            Step::Property(name) => Value::Object(Map::from_iter([(name.clone(), value)])),
            Step::Additional => Value::Object(Map::from_iter([(ANY.to_owned(), value)])),
            Step::Item => Value::Array(vec![value]),
        })
    }
}

impl Schema {
    /// Removes from each default what this schema, that of the whole object, does not allow at its place.
    pub(super) fn prune_defaults(&mut self) {
        let mut places = Vec::new();
        self.find_defaults(&mut Vec::new(), &mut places);
        for place in places {
            let Some(default) = self.at(&place).and_then(|node| node.default.take()) else {
                continue;
            };
            let pruned = self.pruned(&place, default.value);
            if let Some(node) = self.at(&place) {
                node.default = pruned.map(DefaultValue::from);
            }
        }
    }

    /// Appends the places of all defaults to `found`. `place` is the place of this node.
    fn find_defaults(&self, place: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
        if self.default.is_some() {
            found.push(place.clone());
        }
        let mut below = |step: Step, node: &Schema| {
            place.push(step);
            node.find_defaults(place, found);
            place.pop();
        };
        if let Some(Additional::Schema(node)) = &self.additional_properties {
            below(Step::Additional, node);
        }
        if let Some(node) = &self.items {
            below(Step::Item, node);
        }
        for (name, node) in &self.properties {
            below(Step::Property(name.clone()), node);
        }
    }

    fn at(&mut self, place: &[Step]) -> Option<&mut Schema> {
        let mut node = self;
        for step in place {
            node = match step {
                Step::Property(name) => node.properties.get_mut(name)?,
                Step::Item => node.items.as_deref_mut()?,
                Step::Additional => match &mut node.additional_properties {
                    Some(Additional::Schema(schema)) => schema,
                    _ => return None,
                },
            };
        }
        Some(node)
    }

    /// Returns a value as it remains at a place of an object. Returns `None` if it is removed.
    fn pruned(&self, place: &[Step], value: Value) -> Option<Value> {
        let Value::Object(mut members) = Step::around(place, value) else {
            return None;
        };
        // Malformed members are dropped, so nothing is rejected.
        let _ = embedded::coerce(self, &mut members, true, Malformed::Drop);
        self.prune(&mut members, &mut Unknown::default());
        let mut value = Value::Object(members);
        for step in place {
            value = match (step, value) {
                (Step::Property(name), Value::Object(mut members)) => members.remove(name)?,
                (Step::Additional, Value::Object(mut members)) => members.remove(ANY)?,
                (Step::Item, Value::Array(items)) => items.into_iter().next()?,
                _ => return None,
            };
        }
        Some(value)
    }
}
