//! Converts the protobuf body of a response to lines of JSON, for the checks that read JSON.
//!
//! An event is one line. A list is one line, which contains its revision and the revisions of its objects.
//!
//! Does not report invalid bytes: the informer under test must handle them.

use kube_informer_protobuf::{
    Envelope, Messages, Missing, Options, WireFields, WireValue, decode_with,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// Limits for decoding one object. No object of a simulation exceeds them.
const OPTIONS: Options = Options {
    depth: 127,
    containers: 10_000,
    values: 10_000,
    missing: Missing::Nothing,
};

/// Number of bytes that contain the length of an event.
const LENGTH_BYTES: usize = 4;

/// Number of the field `resourceVersion` in the metadata of a list.
const REVISION: u32 = 2;

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

    /// Returns the lines of the events that are complete after this chunk. The line of a list is returned by
    /// [`finish`](Self::finish).
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

    /// Returns the line of a list after the end of its body. Returns no line if the list is incomplete.
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
    let (mut event_type, mut object) = (String::new(), Value::Null);
    for field in WireFields::new(event) {
        match field.ok()? {
            (1, value) => event_type = String::from_utf8_lossy(value.bytes().ok()?).into_owned(),
            (2, value) => {
                let (_, raw) = WireFields::new(value.bytes().ok()?).next()?.ok()?;
                let envelope = envelope(raw.bytes().ok()?)?;
                object = object_json(&envelope.api_version, &envelope.kind, envelope.raw)?;
            }
            _ => {}
        }
    }
    Some(json!({"type": event_type, "object": object}))
}

/// Returns the revision of a list and its objects as JSON.
fn list_json(body: &[u8]) -> Option<Value> {
    let envelope = envelope(body)?;
    let kind = envelope.kind.strip_suffix("List")?;
    let (mut revision, mut items) = (String::new(), Vec::new());
    for field in WireFields::new(envelope.raw) {
        match field.ok()? {
            (1, metadata) => {
                let mut fields = WireFields::new(metadata.bytes().ok()?).map_while(Result::ok);
                let found = fields.find(|(number, _)| *number == REVISION);
                if let Some((_, WireValue::Bytes(text))) = found {
                    revision = String::from_utf8_lossy(text).into_owned();
                }
            }
            (2, item) => {
                items.push(object_json(
                    &envelope.api_version,
                    kind,
                    item.bytes().ok()?,
                )?);
            }
            _ => {}
        }
    }
    Some(json!({"metadata": {"resourceVersion": revision}, "items": items}))
}

fn envelope(bytes: &[u8]) -> Option<Envelope<'_>> {
    Envelope::read(bytes.strip_prefix(&Envelope::MAGIC)?).ok()
}

fn object_json(api_version: &str, kind: &str, raw: &[u8]) -> Option<Value> {
    let message = Messages::builtin().of_kind(api_version, kind)?;
    let type_meta = Some((api_version, kind));
    let decoded = decode_with(message, type_meta, raw, OPTIONS, |message| {
        Value::deserialize(message)
    });
    decoded.ok()
}
