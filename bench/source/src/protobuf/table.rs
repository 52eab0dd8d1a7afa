//! Reads the protobuf message types of all built-in kinds from a generated table.
//!
//! Guarantees: the field numbers and types are those of Kubernetes 1.36. `cargo xtask kinds` generates the
//! table from the sources of Kubernetes.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

/// The table of protobuf message types. Its first lines describe the format.
const V1_36: &str = include_str!("../../../../crates/protobuf/src/table/v1_36.tsv");

/// Message types whose JSON order differs from the field numbers, with the JSON names of the first members.
const REORDERED: [(&str, &[&str]); 3] = [
    (
        "k8s.io.apimachinery.pkg.apis.meta.v1.OwnerReference",
        &["apiVersion", "kind", "name", "uid"],
    ),
    (
        "k8s.io.api.core.v1.PodCondition",
        &["type", "observedGeneration"],
    ),
    (
        "k8s.io.api.core.v1.PodStatus",
        &[
            "observedGeneration",
            "phase",
            "conditions",
            "message",
            "reason",
            "nominatedNodeName",
            "hostIP",
            "hostIPs",
            "podIP",
            "podIPs",
            "startTime",
            "initContainerStatuses",
            "containerStatuses",
            "qosClass",
        ],
    ),
];

/// The protobuf message types of all built-in kinds, by message name and by kind.
pub(crate) struct Messages {
    all: BTreeMap<&'static str, Message>,
    /// Message type name of each kind; the key is `apiVersion/Kind`.
    kinds: BTreeMap<&'static str, &'static str>,
}

/// A protobuf message type: its fields, and the JSON representation of its values.
pub(super) struct Message {
    pub(super) form: Form,
    /// Fields of the message type, in ascending order of their field numbers.
    pub(super) fields: Vec<Field>,
    /// JSON names of the fields that Go writes first; the others follow in field number order.
    first: &'static [&'static str],
}

/// The JSON representation of the values of a protobuf message type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Object,
    List,
    IntOrString,
    Json,
    Time,
    Quantity,
    /// A representation that the encoder does not support.
    Other,
}

/// A field of a protobuf message type.
pub(super) struct Field {
    pub(super) number: u32,
    /// Name of the field in JSON.
    pub(super) name: &'static str,
    pub(super) container: Container,
    pub(super) value: Type,
    /// Whether the field's members belong to the parent object in JSON (`inline` in Go).
    pub(super) is_inline: bool,
    /// Whether the field is a Go pointer; a nil pointer is not encoded.
    pub(super) is_pointer: bool,
}

/// Whether a field holds one value, a list of values, or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    One,
    List,
    /// A map with string keys.
    Map,
}

/// The protobuf type of a field's value, of a list's items, or of a map's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Bytes,
    Double,
    /// An integer of 32 or 64 bits, encoded as a varint.
    Integer,
    Text,
    /// A nested message, with the name of its type.
    Message(&'static str),
}

// === impl Messages ===

impl Messages {
    /// Parses the table of protobuf message types.
    ///
    /// # Errors
    ///
    /// Returns an error if a line of the table is invalid.
    pub(crate) fn read() -> Result<Messages> {
        let mut all = BTreeMap::new();
        let mut kinds = BTreeMap::new();
        let mut last = "";
        for row in V1_36.lines().filter(|row| !row.starts_with('#')) {
            if let Some(field) = row.strip_prefix('\t') {
                let message: &mut Message =
                    all.get_mut(last).context("a field before any message")?;
                message
                    .fields
                    .push(Field::from_row(field).with_context(|| row.to_owned())?);
                continue;
            }
            let mut columns = row.split('\t');
            last = columns.next().unwrap_or_default();
            let form = Form::from_cell(columns.next().context("a message without a form")?);
            let reordered = REORDERED.iter().find(|(name, _)| *name == last);
            let message = Message {
                form,
                fields: Vec::new(),
                first: reordered.map_or(&[], |(_, first)| first),
            };
            all.insert(last, message);
            kinds.extend(columns.map(|kind| (kind, last)));
        }
        Ok(Messages { all, kinds })
    }

    pub(super) fn of_kind(&self, kind: &str) -> Result<&Message> {
        let name = self.kinds.get(kind);
        self.get(name.with_context(|| format!("{kind} is not built in"))?)
    }

    pub(super) fn get(&self, name: &str) -> Result<&Message> {
        self.all
            .get(name)
            .with_context(|| format!("no message {name}"))
    }
}

// === impl Message ===

impl Message {
    /// Returns the fields in the order in which Go writes them as JSON.
    pub(super) fn in_json(&self) -> Vec<&Field> {
        let mut fields: Vec<_> = self.fields.iter().collect();
        // The sort is stable, so all other fields keep their order.
        fields.sort_by_key(|field| {
            let place = self.first.iter().position(|name| *name == field.name);
            place.unwrap_or(self.first.len())
        });
        fields
    }
}

// === impl Form ===

impl Form {
    fn from_cell(cell: &str) -> Form {
        match cell {
            "object" => Form::Object,
            "list" => Form::List,
            "intOrString" => Form::IntOrString,
            "json" => Form::Json,
            "time" => Form::Time,
            "quantity" => Form::Quantity,
            _ => Form::Other,
        }
    }
}

// === impl Field ===

impl Field {
    /// Parses a row of the table: field number, JSON name, type and presence, separated by tabs.
    fn from_row(row: &'static str) -> Result<Field> {
        let mut columns = row.split('\t');
        let mut next = || columns.next().context("a column is missing");
        let (number, name, cell, presence) = (next()?.parse()?, next()?, next()?, next()?);
        let (container, cell) = if let Some(item) = cell.strip_prefix("[]") {
            (Container::List, item)
        } else if let Some(value) = cell.strip_prefix("{}") {
            (Container::Map, value)
        } else {
            (Container::One, cell)
        };
        if !["always", "inline", "nonzero", "nullable", "sent"].contains(&presence) {
            bail!("unknown presence {presence:?}");
        }
        Ok(Field {
            number,
            name,
            container,
            value: Type::from_cell(cell),
            is_inline: presence == "inline",
            is_pointer: presence == "sent",
        })
    }
}

// === impl Type ===

impl Type {
    fn from_cell(cell: &'static str) -> Type {
        match cell {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int32" | "int64" => Type::Integer,
            "string" => Type::Text,
            name => Type::Message(name),
        }
    }
}
