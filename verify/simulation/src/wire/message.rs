//! Converts the protobuf body of a response to lines of JSON, for the checks that read JSON.
//!
//! The result has one line for each event, or one line for a list. The line of a list contains the revisions
//! of the list and of its objects.
//!
//! This module does not report invalid bytes: the informer under test must handle them.

use kube_informer_protobuf::{Envelope, WireFields, WireValue};
use serde_json::{Value, json};

/// Number of bytes that contain the length of an event.
const LENGTH_BYTES: usize = 4;

/// Number of the field `metadata` of an object or a list.
const METADATA: u32 = 1;

/// Number of the field `resourceVersion` in the metadata of a list.
const REVISION_OF_LIST: u32 = 2;

/// Number of the field `resourceVersion` in the metadata of an object.
const REVISION: u32 = 6;

/// Number of the field `annotations` in the metadata of an object.
const ANNOTATIONS: u32 = 12;

/// Converter of one protobuf body.
pub(super) struct Converter {
    is_watch: bool,
    /// Received bytes that have not been converted.
    bytes: Vec<u8>,
}

impl Converter {
    pub(super) fn new(is_watch: bool) -> Self {
        Self {
            is_watch,
            bytes: Vec::new(),
        }
    }

    /// Returns the lines of the watch events that this chunk completes.
    ///
    /// Returns nothing for a list, whose line [`finish`](Self::finish) returns.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.bytes.extend_from_slice(chunk);
        let mut lines = Vec::new();
        while self.is_watch
            && let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>()
            && let Ok(length) = usize::try_from(u32::from_be_bytes(*length))
            && let Some(event) = rest.get(..length)
        {
            lines.extend(line(&event_json(event).unwrap_or_default()));
            self.bytes.drain(..LENGTH_BYTES + length);
        }
        lines
    }

    /// Returns the line of JSON that represents a list. Returns nothing for a watch or an incomplete list.
    ///
    /// Must be called after the last chunk of the response.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        if self.is_watch {
            return Vec::new();
        }
        let list = list_json(&std::mem::take(&mut self.bytes));
        list.map(|list| line(&list)).unwrap_or_default()
    }
}

fn line(json: &Value) -> Vec<u8> {
    format!("{json}\n").into_bytes()
}

fn event_json(event: &[u8]) -> Option<Value> {
    let event_type = String::from_utf8_lossy(field(event, 1)?).into_owned();
    let object = envelope(field(field(event, 2)?, 1)?)?;
    Some(json!({"type": event_type, "object": object_json(object.raw)}))
}

/// Returns the revision of a list, and the revision and annotation keys of each object in the list, as JSON.
fn list_json(body: &[u8]) -> Option<Value> {
    let list = envelope(body)?.raw;
    let items = WireFields::new(list).map_while(Result::ok);
    let items = items.filter_map(|(number, item)| match item {
        WireValue::Bytes(item) if number == 2 => Some(object_json(item)),
        _ => None,
    });
    let items: Vec<_> = items.collect();
    let metadata = field(list, METADATA)?;
    Some(json!({"metadata": {"resourceVersion": text(metadata, REVISION_OF_LIST)}, "items": items}))
}

/// Returns the revision and the annotation keys of a protobuf object as JSON.
///
/// Ignores the rest of the metadata after an invalid field. A revision that is not found is the empty string.
fn object_json(message: &[u8]) -> Value {
    let metadata = field(message, METADATA).unwrap_or_default();
    let annotations = WireFields::new(metadata).map_while(Result::ok);
    let annotations = annotations.filter_map(|(number, entry)| match entry {
        WireValue::Bytes(entry) if number == ANNOTATIONS => Some((text(entry, 1), json!(""))),
        _ => None,
    });
    let annotations: Value = annotations.collect();
    json!({"metadata": {"resourceVersion": text(metadata, REVISION), "annotations": annotations}})
}

fn envelope(bytes: &[u8]) -> Option<Envelope<'_>> {
    Envelope::read(bytes.strip_prefix(&Envelope::MAGIC)?).ok()
}

/// Returns the first field with the number `number`.
fn field(message: &[u8], number: u32) -> Option<&[u8]> {
    let mut fields = WireFields::new(message).map_while(Result::ok);
    let found = fields.find(|(found, _)| *found == number);
    found.and_then(|(_, value)| value.bytes().ok())
}

fn text(message: &[u8], number: u32) -> String {
    String::from_utf8_lossy(field(message, number).unwrap_or_default()).into_owned()
}
