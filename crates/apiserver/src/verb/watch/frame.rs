//! The lines of a watch: one JSON object per event.
//!
//! Guarantees: every line ends with a line feed; an object is shown in the representation asked for, an error always as a `Status`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::negotiate::{IncludeObject, Representation};
use crate::resource::Resource;
use crate::status::ApiError;
use crate::storage::{Entry, Event, EventType, Shape, write_frame};
use crate::table::Table;

/// Says that the initial events are complete (`InitialEventsAnnotationKey` in `meta/v1/types.go`).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Makes the lines of one watch.
pub(crate) struct Framer {
    resource: Arc<Resource>,
    representation: Representation,
    table: Table,
    /// Whether the columns of a table have been told.
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

    /// The line of a live or replayed event; its bytes are shared unless it is a table.
    pub(crate) fn event(&mut self, event: &Event, event_type: EventType) -> Bytes {
        match self.shape() {
            Ok(shape) => event.frame(event_type, shape, &self.resource),
            Err(include) => {
                let mut line = Vec::new();
                if let Some(entry) = event.shown(event_type) {
                    self.write_table(event_type, entry, include, &mut line);
                }
                line.into()
            }
        }
    }

    /// Appends the line of an object that was there before the watch.
    pub(crate) fn write_initial(&mut self, entry: &Entry, out: &mut Vec<u8>) {
        match self.shape() {
            Ok(shape) => write_frame(EventType::Added, entry, shape, &self.resource, out),
            Err(include) => self.write_table(EventType::Added, entry, include, out),
        }
    }

    pub(crate) fn bookmark(&mut self, revision: u64, ends_initial_events: bool) -> Bytes {
        let mut metadata =
            json!({"creationTimestamp": null, "resourceVersion": revision.to_string()});
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
                let cells: Vec<Value> = self.columns().iter().map(|_| json!("")).collect();
                let mut row = json!({"cells": cells});
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

    /// The shape of an object's line, or what a table's rows include.
    fn shape(&self) -> Result<Shape, IncludeObject> {
        match self.representation {
            Representation::Object => Ok(Shape::Object),
            Representation::Metadata => Ok(Shape::Metadata),
            Representation::Table(include) => Err(include),
        }
    }

    fn write_table(
        &mut self,
        event_type: EventType,
        entry: &Entry,
        include: IncludeObject,
        out: &mut Vec<u8>,
    ) {
        let columns = self.introduction();
        let start = format!(
            "{{\"type\":\"{}\",\"object\":{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"columnDefinitions\":{columns},\"rows\":[",
            event_type.as_str(),
            entry.revision,
        );
        out.extend_from_slice(start.as_bytes());
        self.table.write_row(entry, include, out);
        out.extend_from_slice(b"]}}\n");
    }

    fn columns(&self) -> Vec<Value> {
        self.table.columns().as_array().cloned().unwrap_or_default()
    }

    /// The columns, the first time.
    fn introduction(&mut self) -> Value {
        if std::mem::replace(&mut self.introduced, true) {
            return Value::Null;
        }
        self.table.columns()
    }
}

/// The line that ends a watch which failed after its start.
pub(crate) fn error(error: &ApiError) -> Bytes {
    line("ERROR", &error.status().to_json())
}

fn line(event_type: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into()
}
