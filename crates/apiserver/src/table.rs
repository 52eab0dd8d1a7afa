//! Writes objects as rows of a `meta.k8s.io/v1` table, which `kubectl get` prints.
//!
//! Guarantees:
//! - the columns of each kind are those of Kubernetes;
//! - a cell that can't be computed is empty, and never causes an error.
//!
//! The `columns` module computes the cells.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::columns::Column;
use crate::columns::defined::{self, DefinedColumn, NAME_DESCRIPTION};
use crate::columns::described;
use crate::go_json::append;
use crate::negotiate::IncludeObject;
use crate::object::Object;
use crate::resource::Resource;
use crate::storage::Entry;

/// Writes the objects of one kind as rows of a `meta.k8s.io/v1` table.
pub(crate) struct Table {
    kind: String,
    columns: &'static [Column],
    /// The columns after Name of a custom kind; replaces `columns`.
    defined: Vec<DefinedColumn>,
    resource: Arc<Resource>,
    /// Source of the current time, from which ages are computed.
    clock: Clock,
}

impl Table {
    pub(crate) fn new(resource: &Arc<Resource>, clock: Clock) -> Table {
        Table {
            kind: resource.kind.kind.clone(),
            columns: resource.strategy.columns,
            defined: defined::of(&resource.kind),
            resource: Arc::clone(resource),
            clock,
        }
    }

    /// Returns the `columnDefinitions` of the table.
    pub(crate) fn columns(&self) -> Value {
        if !self.defined.is_empty() {
            let name = json!({"name": "Name", "type": "string", "format": "name", "description": NAME_DESCRIPTION, "priority": 0});
            let defined = self.defined.iter().map(DefinedColumn::definition);
            return std::iter::once(name).chain(defined).collect();
        }
        described::definitions(&self.kind)
    }

    /// Returns the cells of an empty object, as in the row of a bookmark event.
    pub(crate) fn empty_cells(&self) -> Value {
        let members = serde_json::Map::from_iter([("metadata".to_owned(), json!({}))]);
        self.cells(Object::stored(members), self.now())
    }

    fn cells(&self, object: Object, now: Timestamp) -> Value {
        if !self.defined.is_empty() {
            let name = json!(object.text("name"));
            let whole = object.into_value();
            let defined = self.defined.iter().map(|column| column.cell(&whole, now));
            return std::iter::once(name).chain(defined).collect();
        }
        let cells = self.columns.iter();
        cells.map(|column| (column.cell)(&object, now)).collect()
    }

    /// Returns the current time in whole seconds.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Appends the table row of a stored object, with the current age.
    pub(crate) fn write_row(&self, entry: &Entry, include: IncludeObject, out: &mut Vec<u8>) {
        self.write_row_at(self.now(), entry, include, out);
    }

    /// Appends the table row of a stored object, with the age at the time `now`.
    ///
    /// As in Kubernetes, the cells of a built-in kind are the same in all its versions.
    pub(crate) fn write_row_at(
        &self,
        now: Timestamp,
        entry: &Entry,
        include: IncludeObject,
        out: &mut Vec<u8>,
    ) {
        let stored = entry;
        let view = stored.viewed(&self.resource);
        let entry = view.as_ref().unwrap_or(stored);
        let is_converted = self.resource.conversion.is_some();
        let celled = if is_converted { stored } else { entry };
        let mut whole = Vec::new();
        celled.write_object(&self.resource, &mut whole);
        let members = serde_json::from_slice(&whole).expect("an entry was written as JSON");
        let object = Object::stored(members);
        let cells = self.cells(object, now);
        out.extend_from_slice(b"{\"cells\":");
        append(out, &cells);
        match include {
            IncludeObject::None => out.extend_from_slice(b",\"object\":null"),
            IncludeObject::Metadata => {
                out.extend_from_slice(b",\"object\":");
                entry.write_metadata(&self.resource, out);
            }
            IncludeObject::Object => {
                out.extend_from_slice(b",\"object\":");
                if is_converted {
                    entry.write_object(&self.resource, out);
                } else {
                    out.extend_from_slice(&whole);
                }
            }
        }
        out.push(b'}');
    }
}
