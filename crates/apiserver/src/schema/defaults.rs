//! Adapts the defaults of a schema to the schema, when a definition is read.
//!
//! Guarantees: no default has a member that pruning would remove from an object. The work is linear in the size of
//! the schema, unless its defaults are in the metadata of embedded objects.

use std::{ptr, vec};

use serde_json::Value;

use super::embedded::{self, Malformed};
use super::place::{Place, Step};
use super::shape::{self, Unknown};
use super::{Additional, DefaultValue, Schema};

impl Schema {
    /// Removes from each default what this schema, that of the whole object, does not allow at its place.
    pub(super) fn prune_defaults(&mut self) {
        let pruned = Pruning::of(self).pruned;
        self.replace_defaults(&mut pruned.into_iter());
    }

    /// Returns whether [`Schema::prune_defaults`] changes a default.
    pub(super) fn has_unpruned_defaults(&self) -> bool {
        Pruning::of(self).has_changes
    }

    /// Replaces the defaults in the order in which [`Pruning`] visits them.
    fn replace_defaults(&mut self, pruned: &mut vec::IntoIter<Option<Value>>) {
        if self.default.is_some() {
            self.default = pruned.next().flatten().map(DefaultValue::from);
        }
        if let Some(Additional::Schema(node)) = &mut self.additional_properties {
            node.replace_defaults(pruned);
        }
        if let Some(node) = &mut self.items {
            node.replace_defaults(pruned);
        }
        for node in self.properties.values_mut() {
            node.replace_defaults(pruned);
        }
        let with_default = self.properties.iter();
        let with_default = with_default.filter(|(_, property)| property.default.is_some());
        self.defaulted = with_default.map(|(name, _)| name.clone()).collect();
    }
}

struct Pruning<'a> {
    /// The schema of the whole object.
    root: &'a Schema,
    /// The pruned defaults. `None` stands for a default that is removed.
    pruned: Vec<Option<Value>>,
    /// Whether a default differs from the pruned one.
    has_changes: bool,
}

impl<'a> Pruning<'a> {
    fn of(root: &'a Schema) -> Pruning<'a> {
        let mut pruning = Pruning {
            root,
            pruned: Vec::new(),
            has_changes: false,
        };
        pruning.node(root, &mut Place::of(root));
        pruning
    }

    fn node(&mut self, node: &'a Schema, place: &mut Place<'a>) {
        let is_root = ptr::eq(node, self.root);
        let mut own = Place::of(node);
        // Nothing below metadata is a resource of its own.
        let place = if node.embeds && !place.is_in_meta {
            &mut own
        } else {
            place
        };
        if let Some(default) = &node.default {
            let value = default.value.clone();
            let pruned = if is_root || place.is_in_meta {
                in_resource(place, value)
            } else {
                Some(alone(node, value))
            };
            self.has_changes |= pruned.as_ref() != Some(&default.value);
            self.pruned.push(pruned);
        }
        if let Some(Additional::Schema(below)) = &node.additional_properties {
            place.below(Step::Additional, |place| self.node(below, place));
        }
        if let Some(below) = &node.items {
            place.below(Step::Item, |place| self.node(below, place));
        }
        for (name, below) in &node.properties {
            let step = Step::property(name, is_root || node.embeds);
            place.below(step, |place| self.node(below, place));
        }
    }
}

/// Returns a value as it remains in an object that has it at `place`. Returns `None` if it is removed.
fn in_resource(place: &Place<'_>, value: Value) -> Option<Value> {
    let Value::Object(mut members) = place.around(value) else {
        return None;
    };
    // Malformed members are dropped, so nothing is rejected.
    let _ = embedded::coerce(place.resource, &mut members, true, Malformed::Drop);
    place.resource.prune(&mut members, &mut Unknown::default());
    place.value_in(Value::Object(members))
}

/// Returns a value as it remains in any object that has it at the place of its schema, outside of metadata.
fn alone(node: &Schema, mut value: Value) -> Value {
    let _ = embedded::coerce_value(node, &mut value, String::new(), Malformed::Drop);
    shape::prune(&mut value, Some(node), &mut Unknown::default());
    value
}
