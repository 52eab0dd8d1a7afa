//! Encodes the events of a watch: as lines of JSON, or as length-prefixed protobuf messages.
//!
//! A frame is one encoded event.
//!
//! Guarantees:
//! - in JSON, every line contains one event and ends with a line feed;
//! - an object that the protobuf message type of its kind can't represent, or that needs a conversion webhook, results
//!   in an ERROR event;
//! - objects are encoded as the client requested them: whole, as metadata or as a table;
//! - an error is always encoded as a `Status`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::go_json::to_text;
use crate::kinds::Kind;
use crate::negotiate::{Encoding, Format, IncludeObject, Representation};
use crate::protobuf::{self, Schema};
use crate::resource::Resource;
use crate::status::ApiError;
use crate::storage::{Entry, Event, EventType, Shape, TableShape, write_frame};
use crate::strategy::daemon_set::TEMPLATE_GENERATION;
use crate::table::Table;
use crate::typed::{self, Ordered};

/// Name of the annotation that marks the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The resources whose replicas are optional, but always set in the type into which Kubernetes converts objects.
const WITH_REPLICAS: [&str; 3] = ["deployments.apps", "replicasets.apps", "statefulsets.apps"];

/// Encodes the events and bookmarks of one watch.
pub(crate) struct Framer {
    resource: Arc<Resource>,
    representation: Representation,
    /// The schema of the objects, if the watch is in protobuf.
    schema: Option<Schema>,
    table: Table,
    /// Whether the watch has already sent the column definitions of its table.
    introduced: bool,
}

impl Framer {
    pub(crate) fn new(resource: &Arc<Resource>, format: Format, clock: Clock) -> Framer {
        Framer {
            resource: Arc::clone(resource),
            representation: format.representation,
            schema: format.schema(&resource.kind),
            table: Table::new(resource, clock),
            introduced: false,
        }
    }

    /// Returns the frame of a stored event, and caches the frame in the event.
    ///
    /// # Errors
    ///
    /// Returns a 500 error if the object can't be encoded. The caller must then end the watch with the frame
    /// that [`Framer::error`] returns.
    pub(crate) fn event(
        &mut self,
        event: &Event,
        event_type: EventType,
    ) -> Result<Bytes, ApiError> {
        let shape = self.next_shape();
        event.frame(event_type, shape, &self.resource, |entry, out| {
            self.write(event_type, entry, shape, out)
        })
    }

    /// Appends the ADDED frame of an initial object to `out`.
    ///
    /// # Errors
    ///
    /// Returns a 500 error if the object can't be encoded. The caller must then end the watch with the frame
    /// that [`Framer::error`] returns.
    pub(crate) fn write_initial(
        &mut self,
        entry: &Entry,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let shape = self.next_shape();
        self.write(EventType::Added, entry, shape, out)
    }

    /// Returns the ERROR frame for an object that can't be encoded.
    pub(crate) fn error(&self, cause: &ApiError) -> Bytes {
        error(cause, self.encoding())
    }

    pub(crate) fn bookmark(&mut self, revision: u64, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        if let Some(schema) = &self.schema {
            let bookmark = schema.bookmark(metadata).unwrap_or_default();
            return protobuf::event("BOOKMARK", &bookmark).into();
        }
        let partial = json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": metadata,
        });
        let object = match self.representation {
            Representation::Object => object_without_values(&self.resource.kind, metadata),
            Representation::Metadata => partial,
            Representation::Table(include) => {
                let mut row = json!({"cells": self.table.empty_cells(), "object": null});
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
        let ordered = match self.representation {
            Representation::Object => Ordered::of(&object, self.resource.value_type()),
            _ => Ordered::document(&object),
        };
        line("BOOKMARK", ordered)
    }

    fn encoding(&self) -> Encoding {
        match self.schema {
            Some(_) => Encoding::Protobuf,
            None => Encoding::Json,
        }
    }

    /// Returns the representation of the next frame.
    ///
    /// If the watch sends tables, only the first table has column definitions.
    fn next_shape(&mut self) -> Shape {
        match self.representation {
            Representation::Object => Shape::Object(self.encoding()),
            Representation::Metadata => Shape::Metadata(self.encoding()),
            Representation::Table(include) => Shape::Table(TableShape {
                include,
                introduces: !std::mem::replace(&mut self.introduced, true),
                now: self.table.now(),
            }),
        }
    }

    fn write(
        &self,
        event_type: EventType,
        entry: &Entry,
        shape: Shape,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        entry.check_readable(&self.resource)?;
        let stored = entry;
        let view = stored.viewed(&self.resource);
        let entry = view.as_ref().unwrap_or(stored);
        if let Some(schema) = &self.schema {
            let mut json = Vec::new();
            match shape {
                Shape::Metadata(_) => entry.write_metadata_item(&mut json),
                Shape::Object(_) | Shape::Table(_) => entry.write_item(&mut json),
            }
            let object = schema.object(&json).ok_or_else(|| self.unfit())?;
            out.extend(protobuf::event(event_type.as_str(), &object));
            return Ok(());
        }
        write_frame(
            event_type,
            |out| match shape {
                Shape::Object(_) => entry.write_object(&self.resource, out),
                Shape::Metadata(_) => entry.write_metadata(&self.resource, out),
                Shape::Table(shape) => self.write_table(stored, shape, out),
            },
            out,
        );
        Ok(())
    }

    fn write_table(&self, entry: &Entry, shape: TableShape, out: &mut Vec<u8>) {
        let columns = if shape.introduces {
            self.table.columns()
        } else {
            Value::Null
        };
        let columns = to_text(&Ordered::document(&columns));
        let start = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"columnDefinitions\":{columns},\"rows\":[",
            entry.revision,
        );
        out.extend_from_slice(start.as_bytes());
        self.table
            .write_row_at(shape.now, entry, shape.include, out);
        out.extend_from_slice(b"]}");
    }

    /// Returns the error of an object that the protobuf message type of its kind can't represent.
    fn unfit(&self) -> ApiError {
        let kind = &self.resource.kind.kind;
        let message =
            format!("an object of kind {kind} can't be encoded as protobuf; request JSON");
        ApiError::new(500, "InternalError", message)
    }

    /// Returns the table's column definitions, or null if the watch has already sent them.
    fn introduction(&mut self) -> Value {
        if std::mem::replace(&mut self.introduced, true) {
            return Value::Null;
        }
        self.table.columns()
    }
}

/// Returns the ERROR frame for an error that ends a watch.
pub(crate) fn error(error: &ApiError, encoding: Encoding) -> Bytes {
    match encoding {
        // A watch is never in YAML.
        Encoding::Json | Encoding::Yaml => {
            line("ERROR", Ordered::document(&error.status().to_json()))
        }
        Encoding::Protobuf => protobuf::event("ERROR", &protobuf::status(error.status())).into(),
    }
}

fn line(event_type: &str, object: Ordered<'_>) -> Bytes {
    let object = to_text(&object);
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into()
}

/// Returns an object of a kind with this metadata, in which no other field is set.
fn object_without_values(kind: &Kind, mut metadata: Value) -> Value {
    if kind.is_builtin("daemonsets.apps") {
        metadata["annotations"][TEMPLATE_GENERATION] = json!("0");
    }
    let mut object = Map::from_iter([
        ("apiVersion".to_owned(), json!(kind.api_version())),
        ("kind".to_owned(), json!(kind.kind)),
        ("metadata".to_owned(), metadata),
    ]);
    if WITH_REPLICAS.iter().any(|name| kind.is_builtin(name)) {
        object.insert("spec".to_owned(), json!({"replicas": 0}));
    }
    typed::complete(kind, &mut object);
    Value::Object(object)
}
