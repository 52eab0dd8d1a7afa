//! Represents the place of a schema's node in the objects that the schema describes.

use serde_json::{Map, Value};

use super::{META, Schema};

/// A step from a value to a value below it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Property(&'a str),
    /// A member of [`META`] of a resource.
    Meta(&'a str),
    /// Any member that `properties` does not name.
    Additional,
    Item,
}

/// The place of a node in the closest resource around it: the whole object, or an embedded object.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// The schema of the resource.
    pub(super) resource: &'a Schema,
    steps: Vec<Step<'a>>,
    /// Whether the node is below a member of [`META`].
    pub(super) is_in_meta: bool,
}

/// Name of the member that stands for any name. The name is not significant.
const ANY: &str = "*";

impl<'a> Step<'a> {
    /// Returns the step to a member of `properties`. `of_resource` tells whether the schema is that of a resource.
    pub(super) fn property(name: &'a str, of_resource: bool) -> Step<'a> {
        if of_resource && META.contains(&name) {
            Step::Meta(name)
        } else {
            Step::Property(name)
        }
    }

    /// Returns the name of the member. Returns `None` for a list item.
    fn name(self) -> Option<&'a str> {
        match self {
            Step::Property(name) | Step::Meta(name) => Some(name),
            Step::Additional => Some(ANY),
            Step::Item => None,
        }
    }
}

impl<'a> Place<'a> {
    pub(super) fn of(resource: &'a Schema) -> Place<'a> {
        Place {
            resource,
            steps: Vec::new(),
            is_in_meta: false,
        }
    }

    /// Runs `go` with the place of a node below.
    pub(super) fn below<T>(&mut self, step: Step<'a>, go: impl FnOnce(&mut Place<'a>) -> T) -> T {
        let was_in_meta = self.is_in_meta;
        self.is_in_meta |= matches!(step, Step::Meta(_));
        self.steps.push(step);
        let done = go(self);
        self.steps.pop();
        self.is_in_meta = was_in_meta;
        done
    }

    /// Returns the smallest resource that has `value` at this place.
    pub(super) fn around(&self, value: Value) -> Value {
        let steps = self.steps.iter().rev();
        steps.fold(value, |value, step| match step.name() {
            Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
            None => Value::Array(vec![value]),
        })
    }

    /// Returns the value at this place of a resource that [`Place::around`] has returned.
    pub(super) fn value_in(&self, resource: Value) -> Option<Value> {
        self.steps
            .iter()
            .try_fold(resource, |value, step| match (step.name(), value) {
                (Some(name), Value::Object(mut members)) => members.remove(name),
                (None, Value::Array(items)) => items.into_iter().next(),
                _ => None,
            })
    }
}
