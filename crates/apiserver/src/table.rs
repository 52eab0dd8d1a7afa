//! `meta.k8s.io/v1` tables: what `kubectl get` prints.
//!
//! Guarantees: every kind has at least Name and Age; the kinds that people look at most have the columns that Kubernetes prints; a cell that can't be computed is empty, never an error.

mod cell;

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::negotiate::IncludeObject;
use crate::object::Object;
use crate::resource::Resource;
use crate::storage::Entry;

use cell::{Column, columns_of};

/// How the objects of one kind are shown.
pub(crate) struct Table {
    columns: &'static [Column],
    type_meta: String,
    /// Ages are counted up to when a row is written.
    clock: Clock,
}

impl Table {
    pub(crate) fn new(resource: &Resource, clock: Clock) -> Table {
        Table {
            columns: columns_of(resource),
            type_meta: resource.type_meta.clone(),
            clock,
        }
    }

    /// The `columnDefinitions`.
    pub(crate) fn columns(&self) -> Value {
        self.columns
            .iter()
            .map(|column| {
                json!({
                    "name": column.name,
                    "type": column.cell_type,
                    "format": if column.name == "Name" { "name" } else { "" },
                    "description": column.name,
                    "priority": column.priority,
                })
            })
            .collect()
    }

    /// Appends one row.
    pub(crate) fn write_row(&self, entry: &Entry, include: IncludeObject, out: &mut Vec<u8>) {
        let mut whole = Vec::new();
        entry.write_as(&self.type_meta, &mut whole);
        let members = serde_json::from_slice(&whole).expect("an entry was written as JSON");
        let object = Object::stored(members);
        let now = self.clock.now();
        let cells: Value = self
            .columns
            .iter()
            .map(|column| (column.cell)(&object, now))
            .collect();
        out.extend_from_slice(format!("{{\"cells\":{cells}").as_bytes());
        match include {
            IncludeObject::None => {}
            IncludeObject::Metadata => {
                out.extend_from_slice(b",\"object\":");
                entry.write_metadata(out);
            }
            IncludeObject::Object => {
                out.extend_from_slice(b",\"object\":");
                out.extend_from_slice(&whole);
            }
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests;
