//! Serializes JSON with the members of each object in the order in which Go writes them.
//!
//! Go writes the fields of a struct in the order of its declaration, and the members of a map, and of an object without
//! a type, in the order of their names. A [`Value`] has the latter order everywhere.
//!
//! Guarantees: a member that its type does not have, as a direct call can store, is written after the others.

use std::sync::OnceLock;

use kube_informer_protobuf::{Container, Field, Form, MessageId, Messages, Type};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::owner_order;
use super::value_type::{ValueType, either, message};

/// The members of the documents that have no message in the table, in the order of Go's structs: `Table`, its
/// columns and rows, the metadata of a list, and the version of the server.
const OF_DOCUMENTS: [&str; 29] = [
    "kind",
    "apiVersion",
    "metadata",
    "resourceVersion",
    "continue",
    "remainingItemCount",
    "annotations",
    "columnDefinitions",
    "rows",
    "cells",
    "object",
    "name",
    "type",
    "format",
    "description",
    "priority",
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
];

/// The type of the fields of an owner, `fieldsV1`.
pub(crate) const FIELDS_V1: &str = "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1";

/// A value that serializes as Go writes it.
#[derive(Clone, Copy)]
pub(crate) struct Ordered<'a> {
    value: &'a Value,
    shape: Shape,
}

/// Determines the order of the members of a value.
#[derive(Clone, Copy)]
enum Shape {
    /// The order of the names, on each level.
    Sorted,
    /// That of [`OF_DOCUMENTS`], on each level.
    Document,
    /// The order of paths, on each level.
    Owners,
    Field(Container, MessageId),
}

/// The members that a struct can have, by name.
struct Layout(Vec<Member>);

struct Member {
    name: &'static str,
    /// The number of members before this one in JSON.
    place: usize,
    shape: Shape,
}

impl<'a> Ordered<'a> {
    /// Returns the members of an object of a type, in the order of Go.
    pub(crate) fn members(
        members: &'a Map<String, Value>,
        value_type: ValueType,
    ) -> Vec<(&'a str, Ordered<'a>)> {
        match value_type {
            ValueType::Message(id) => layout(id).sorted(members),
            _ => in_order_of_names(members),
        }
    }

    /// Returns another value in the order of the members of `self`.
    pub(crate) fn with(self, value: &Value) -> Ordered<'_> {
        let shape = self.shape;
        Ordered { value, shape }
    }

    /// Returns the metadata of an object in the order of Go's struct, as in a `PartialObjectMetadata`.
    pub(crate) fn metadata(value: &'a Value) -> Ordered<'a> {
        let shape = match ValueType::metadata() {
            ValueType::Item(field) => Shape::of(field),
            _ => Shape::Sorted,
        };
        Ordered { value, shape }
    }

    /// Returns an object of a type.
    pub(crate) fn of(value: &'a Value, value_type: ValueType) -> Ordered<'a> {
        let shape = match value_type {
            ValueType::Message(id) => Shape::Field(Container::One, id),
            _ => Shape::Sorted,
        };
        Ordered { value, shape }
    }

    /// Returns an object with the type that its `apiVersion` and `kind` name, or a document that has no such type.
    pub(crate) fn document(value: &'a Value) -> Ordered<'a> {
        let text = |name| value.get(name).and_then(Value::as_str);
        let api_version = text("apiVersion").unwrap_or("v1");
        let kind = text("kind").unwrap_or_default();
        match ValueType::named(api_version, kind) {
            known @ ValueType::Message(_) => Ordered::of(value, known),
            _ => Ordered {
                value,
                shape: Shape::Document,
            },
        }
    }
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let below = |value, shape| Ordered { value, shape };
        let (container, id) = match self.shape {
            Shape::Owners => match self.value {
                Value::Object(members) => {
                    let members = owner_order::sorted(members).into_iter();
                    return serializer.collect_map(
                        members.map(|(name, value)| (name, below(value, Shape::Owners))),
                    );
                }
                other => return other.serialize(serializer),
            },
            Shape::Sorted => return self.value.serialize(serializer),
            Shape::Document => match self.value {
                Value::Array(items) => {
                    return serializer
                        .collect_seq(items.iter().map(|item| below(item, Shape::Document)));
                }
                Value::Object(members) => {
                    return serializer.collect_map(of_document(members));
                }
                plain => return plain.serialize(serializer),
            },
            Shape::Field(container, id) => (container, id),
        };
        let one = Shape::Field(Container::One, id);
        match (container, self.value, message(id).form) {
            (Container::List, Value::Array(items), _) => {
                serializer.collect_seq(items.iter().map(|item| below(item, one)))
            }
            (Container::Map, Value::Object(members), _) => {
                let members = members.iter();
                serializer.collect_map(members.map(|(name, item)| (name, below(item, one))))
            }
            (Container::One, Value::Object(members), Form::Object) => {
                serializer.collect_map(layout(id).sorted(members))
            }
            (Container::One, value @ Value::Object(_), Form::Either) => {
                below(value, Shape::of(either(id).0)).serialize(serializer)
            }
            (Container::One, value @ Value::Array(_), Form::Either) => {
                below(value, Shape::of(either(id).1)).serialize(serializer)
            }
            (Container::One, value, Form::List) => {
                let items = message(id).fields.first().map_or(Shape::Sorted, Shape::of);
                below(value, items).serialize(serializer)
            }
            (_, value, _) => value.serialize(serializer),
        }
    }
}

impl Shape {
    fn of(field: &Field) -> Shape {
        match field.value {
            Type::Message(id) if message(id).name == FIELDS_V1 => Shape::Owners,
            Type::Message(id) => Shape::Field(field.container, id),
            _ => Shape::Sorted,
        }
    }
}

impl Layout {
    fn new(id: MessageId) -> Layout {
        let mut layout = Layout(Vec::new());
        if message(id).is_kind {
            layout.push("kind", Shape::Sorted);
            layout.push("apiVersion", Shape::Sorted);
        }
        layout.extend(id);
        layout.0.sort_by_key(|member| member.name);
        layout
    }

    fn extend(&mut self, id: MessageId) {
        for field in message(id).fields_in_go_order() {
            match field.value {
                Type::Message(inner) if field.is_inline() => self.extend(inner),
                _ => self.push(field.name, Shape::of(field)),
            }
        }
    }

    fn push(&mut self, name: &'static str, shape: Shape) {
        let place = self.0.len();
        self.0.push(Member { name, place, shape });
    }

    /// Returns the members of an object in the order of Go.
    fn sorted<'a>(&self, members: &'a Map<String, Value>) -> Vec<(&'a str, Ordered<'a>)> {
        // Both have the order of the names.
        let mut known = self.0.iter().peekable();
        let mut placed: Vec<_> = members
            .iter()
            .map(|(name, value)| {
                while known.next_if(|known| known.name < name.as_str()).is_some() {}
                let found = known.next_if(|known| known.name == name);
                let (place, shape) = found.map_or((usize::MAX, Shape::Sorted), |known| {
                    (known.place, known.shape)
                });
                (place, (name.as_str(), Ordered { value, shape }))
            })
            .collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, member)| member).collect()
    }
}

/// Returns the members of a struct.
fn layout(id: MessageId) -> &'static Layout {
    static LAYOUTS: OnceLock<Vec<OnceLock<Layout>>> = OnceLock::new();
    let layouts = LAYOUTS.get_or_init(|| {
        let all = Messages::v1_36().all().iter();
        all.map(|_| OnceLock::new()).collect()
    });
    layouts[id.index()].get_or_init(|| Layout::new(id))
}

fn in_order_of_names(members: &Map<String, Value>) -> Vec<(&str, Ordered<'_>)> {
    let shape = Shape::Sorted;
    let members = members.iter();
    members
        .map(|(name, value)| (name.as_str(), Ordered { value, shape }))
        .collect()
}

fn of_document(members: &Map<String, Value>) -> Vec<(&str, Ordered<'_>)> {
    let shape = Shape::Document;
    let members = members.iter();
    let mut members: Vec<_> = members
        .map(|(name, value)| (name.as_str(), Ordered { value, shape }))
        .collect();
    let position = |name: &str| OF_DOCUMENTS.iter().position(|known| *known == name);
    members.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
    members
}
