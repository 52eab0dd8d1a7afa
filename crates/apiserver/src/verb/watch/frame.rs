//! Encodes the events of a watch as lines, with one JSON object per line.
//!
//! Guarantees:
//! - every line ends with a line feed;
//! - objects are encoded as the client requested them: whole, as metadata or as a table;
//! - an error is always encoded as a `Status`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::negotiate::{IncludeObject, Representation};
use crate::resource::Resource;
use crate::status::ApiError;
use crate::storage::{Entry, Event, EventType, Shape, TableShape, write_frame};
use crate::table::Table;

/// Name of the annotation that marks the bookmark after the initial events.
///
/// The name is that of `InitialEventsAnnotationKey` in Kubernetes' `meta/v1/types.go`.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Encodes the events and bookmarks of one watch as lines.
pub(crate) struct Framer {
    resource: Arc<Resource>,
    representation: Representation,
    table: Table,
    /// Whether the watch has already sent the column definitions of its table.
    introduced: bool,
}

impl Framer {
    pub(crate) fn new(
        resource: &Arc<Resource>,
        representation: Representation,
        clock: Clock,
    ) -> Framer {
        Framer {
            resource: Arc::clone(resource),
            representation,
            table: Table::new(resource, clock),
            introduced: false,
        }
    }

    /// Returns the line of a live or replayed event.
    ///
    /// The event caches the line for other watches that request the same representation.
    pub(crate) fn event(&mut self, event: &Event, event_type: EventType) -> Bytes {
        let shape = self.next_shape();
        event.frame(event_type, shape, &self.resource, |entry, out| {
            self.write(event_type, entry, shape, out);
        })
    }

    /// Appends to `out` the ADDED line for an object of the initial events.
    pub(crate) fn write_initial(&mut self, entry: &Entry, out: &mut Vec<u8>) {
        let shape = self.next_shape();
        self.write(EventType::Added, entry, shape, out);
    }

    pub(crate) fn bookmark(&mut self, revision: u64, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let partial = json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": metadata,
        });
        let object = match self.representation {
            Representation::Object => json!({
                "apiVersion": self.resource.kind.api_version(),
                "kind": self.resource.kind.kind,
                "metadata": metadata,
            }),
            Representation::Metadata => partial,
            Representation::Table(include) => {
                let mut row = json!({"cells": self.table.empty_cells()});
                if include != IncludeObject::None || ends_initial_events {
                    row["object"] = partial;
                }
                json!({
                    "apiVersion": "meta.k8s.io/v1",
                    "kind": "Table",
                    "metadata": {"resourceVersion": revision.to_string()},
                    "columnDefinitions": self.introduction(),
                    "rows": [row],
                })
            }
        };
        line("BOOKMARK", &object)
    }

    /// Returns the representation of the object in the next line.
    ///
    /// In a watch of tables, only the first line includes the column definitions.
    fn next_shape(&mut self) -> Shape {
        match self.representation {
            Representation::Object => Shape::Object,
            Representation::Metadata => Shape::Metadata,
            Representation::Table(include) => Shape::Table(TableShape {
                include,
                introduces: !std::mem::replace(&mut self.introduced, true),
                now: self.table.now(),
            }),
        }
    }

    fn write(&self, event_type: EventType, entry: &Entry, shape: Shape, out: &mut Vec<u8>) {
        write_frame(
            event_type,
            |out| match shape {
                Shape::Object => entry.write_object(&self.resource, out),
                Shape::Metadata => entry.write_metadata(out),
                Shape::Table(shape) => self.write_table(entry, shape, out),
            },
            out,
        );
    }

    fn write_table(&self, entry: &Entry, shape: TableShape, out: &mut Vec<u8>) {
        let columns = if shape.introduces {
            self.table.columns()
        } else {
            Value::Null
        };
        let start = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"columnDefinitions\":{columns},\"rows\":[",
            entry.revision,
        );
        out.extend_from_slice(start.as_bytes());
        self.table
            .write_row_at(shape.now, entry, shape.include, out);
        out.extend_from_slice(b"]}");
    }

    /// Returns the table's column definitions, or null if the watch has already sent them.
    fn introduction(&mut self) -> Value {
        if std::mem::replace(&mut self.introduced, true) {
            return Value::Null;
        }
        self.table.columns()
    }
}

/// Returns the ERROR line for an error after the start of the response.
pub(crate) fn error(error: &ApiError) -> Bytes {
    line("ERROR", &error.status().to_json())
}

fn line(event_type: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into()
}
