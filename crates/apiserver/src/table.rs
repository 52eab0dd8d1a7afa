//! `meta.k8s.io/v1` tables, which `kubectl get` prints.
//!
//! Guarantees: every kind has at least Name and Age; common kinds have Kubernetes' columns; a cell that can't be
//! computed is empty, never an error.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::columns::Column;
use crate::negotiate::IncludeObject;
use crate::object::Object;
use crate::resource::Resource;
use crate::storage::Entry;

/// Writes the objects of one kind as a `meta.k8s.io/v1` table.
pub(crate) struct Table {
    columns: &'static [Column],
    type_meta: String,
    /// Source of the current time, for ages.
    clock: Clock,
}

impl Table {
    pub(crate) fn new(resource: &Resource, clock: Clock) -> Table {
        Table {
            columns: resource.strategy.columns,
            type_meta: resource.type_meta.clone(),
            clock,
        }
    }

    /// Returns the `columnDefinitions` of the table.
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

    /// Returns the cells of an empty object, for the row of a bookmark.
    pub(crate) fn empty_cells(&self) -> Value {
        let members = serde_json::Map::from_iter([("metadata".to_owned(), json!({}))]);
        self.cells(&Object::stored(members), self.now())
    }

    fn cells(&self, object: &Object, now: Timestamp) -> Value {
        let cells = self.columns.iter();
        cells.map(|column| (column.cell)(object, now)).collect()
    }

    /// The time for computing ages, in seconds.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Appends one row with ages at the current time.
    pub(crate) fn write_row(&self, entry: &Entry, include: IncludeObject, out: &mut Vec<u8>) {
        self.write_row_at(self.now(), entry, include, out);
    }

    /// Appends one row with ages at this time.
    pub(crate) fn write_row_at(
        &self,
        now: Timestamp,
        entry: &Entry,
        include: IncludeObject,
        out: &mut Vec<u8>,
    ) {
        let mut whole = Vec::new();
        entry.write_as(&self.type_meta, &mut whole);
        let members = serde_json::from_slice(&whole).expect("an entry was written as JSON");
        let object = Object::stored(members);
        let cells = self.cells(&object, now);
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
