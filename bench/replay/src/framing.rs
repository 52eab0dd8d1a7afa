//! What stands around objects in lists and watches.
//!
//! Guarantees: bodies are those of an API server, byte for byte where a client could tell the difference.

use serde_json::{Value, json};

use crate::corpus::{Version, Writer};
use crate::kind::Kind;
use crate::protobuf::{MAGIC, field_len, put_bytes, put_head, put_number};
use crate::slot::Encoding;

/// The empty fields that end Go's envelopes: encoding and type of the content.
const ENVELOPE_END: [u8; 4] = [0x1a, 0, 0x22, 0];

/// The annotation of the bookmark behind the initial events.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// What a watch says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Bookmark,
    Error,
}

/// What a list says of itself.
#[derive(Clone, Debug)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    /// Where the next page starts, and how many objects are left; `None` on the last one.
    pub(crate) next: Option<(String, u64)>,
}

/// Writes lists and events of one kind in one encoding.
#[derive(Clone, Debug)]
pub(crate) struct Framing {
    pub(crate) encoding: Encoding,
    kind: &'static Kind,
    /// An object's first bytes in JSON.
    start: String,
    /// Its envelope up to the message in protobuf.
    envelope: Vec<u8>,
}

// === impl EventType ===

impl EventType {
    fn name(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Bookmark => "BOOKMARK",
            EventType::Error => "ERROR",
        }
    }
}

// === impl Framing ===

impl Framing {
    pub(crate) fn new(kind: &'static Kind, encoding: Encoding) -> Framing {
        Framing {
            encoding,
            kind,
            start: kind.json_start(),
            envelope: envelope(&kind.api_version(), kind.kind),
        }
    }

    /// The start of a list whose items have `items` bytes together, their own heads included.
    pub(crate) fn list_start(&self, meta: &ListMeta, items: usize, out: &mut Vec<u8>) {
        let kind = format!("{}List", self.kind.kind);
        let api_version = self.kind.api_version();
        match self.encoding {
            Encoding::Json => {
                let mut members = json!({"resourceVersion": meta.revision.to_string()});
                if let Some((token, left)) = &meta.next {
                    members["continue"] = json!(token);
                    members["remainingItemCount"] = json!(left);
                }
                let start = format!(
                    r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{members},"items":["#
                );
                out.extend_from_slice(start.as_bytes());
            }
            Encoding::Protobuf => {
                let mut members = Vec::new();
                put_bytes(&mut members, 1, b"");
                put_bytes(&mut members, 2, meta.revision.to_string().as_bytes());
                let token = meta.next.as_ref().map_or("", |(token, _)| token);
                put_bytes(&mut members, 3, token.as_bytes());
                if let Some((_, left)) = meta.next {
                    put_number(&mut members, 4, left);
                }
                out.extend_from_slice(&envelope(&api_version, &kind));
                put_head(out, 2, field_len(members.len()) + items);
                put_bytes(out, 1, &members);
            }
        }
    }

    /// How many bytes an item of this length has in a list; asked of protobuf, which says lengths first.
    pub(crate) fn item_len(object: usize) -> usize {
        field_len(object)
    }

    /// One item.
    pub(crate) fn item(
        &self,
        is_first: bool,
        object: (usize, Version),
        writer: &mut Writer<'_>,
        out: &mut Vec<u8>,
    ) {
        match self.encoding {
            Encoding::Json => {
                if !is_first {
                    out.push(b',');
                }
                // Go's lists of types that it knows have `kind` and `apiVersion` once.
                let start = if self.kind.has_protobuf {
                    "{"
                } else {
                    &self.start
                };
                out.extend_from_slice(start.as_bytes());
            }
            Encoding::Protobuf => put_head(out, 2, writer.len(object.0)),
        }
        writer.write(object.0, object.1, out);
    }

    /// What ends a list.
    pub(crate) fn list_end(&self, out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Json => out.extend_from_slice(b"]}\n"),
            Encoding::Protobuf => out.extend_from_slice(&ENVELOPE_END),
        }
    }

    /// An object that was added or has changed.
    pub(crate) fn event(
        &self,
        event: EventType,
        object: (usize, Version),
        writer: &mut Writer<'_>,
        out: &mut Vec<u8>,
    ) {
        match self.encoding {
            Encoding::Json => {
                self.json_event_start(event, out);
                out.extend_from_slice(self.start.as_bytes());
                writer.write(object.0, object.1, out);
                out.extend_from_slice(b"}\n");
            }
            Encoding::Protobuf => {
                let len = writer.len(object.0);
                put_event_start(event, &self.envelope, len, out);
                writer.write(object.0, object.1, out);
                out.extend_from_slice(&ENVELOPE_END);
            }
        }
    }

    /// A bookmark; `is_initial_end` if it stands behind the initial events.
    pub(crate) fn bookmark(&self, revision: u64, is_initial_end: bool, out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Json => {
                let mut metadata = json!({"resourceVersion": revision.to_string()});
                if is_initial_end {
                    metadata["annotations"] = json!({INITIAL_END: "true"});
                }
                self.json_event_start(EventType::Bookmark, out);
                out.extend_from_slice(self.start.as_bytes());
                out.extend_from_slice(format!("\"metadata\":{metadata}}}}}\n").as_bytes());
            }
            Encoding::Protobuf => {
                let mut metadata = Vec::new();
                put_bytes(&mut metadata, 6, revision.to_string().as_bytes());
                if is_initial_end {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, INITIAL_END.as_bytes());
                    put_bytes(&mut entry, 2, b"true");
                    put_bytes(&mut metadata, 12, &entry);
                }
                let mut object = Vec::new();
                put_bytes(&mut object, 1, &metadata);
                put_whole_event(EventType::Bookmark, &self.envelope, &object, out);
            }
        }
    }

    /// The event that ends a watch with a refusal.
    pub(crate) fn error(&self, status: &Value, out: &mut Vec<u8>) {
        match self.encoding {
            Encoding::Json => {
                self.json_event_start(EventType::Error, out);
                out.extend_from_slice(format!("{status}}}\n").as_bytes());
            }
            Encoding::Protobuf => {
                let text = |name: &str| status[name].as_str().unwrap_or_default().as_bytes();
                let mut message = Vec::new();
                put_bytes(&mut message, 1, b"");
                put_bytes(&mut message, 2, text("status"));
                put_bytes(&mut message, 3, text("message"));
                put_bytes(&mut message, 4, text("reason"));
                put_number(&mut message, 6, status["code"].as_u64().unwrap_or_default());
                put_whole_event(EventType::Error, &envelope("v1", "Status"), &message, out);
            }
        }
    }

    #[expect(
        clippy::unused_self,
        reason = "events of JSON are started by a framing of JSON alone"
    )]
    fn json_event_start(&self, event: EventType, out: &mut Vec<u8>) {
        let start = format!(r#"{{"type":"{}","object":"#, event.name());
        out.extend_from_slice(start.as_bytes());
    }
}

/// The start of `runtime.Unknown`, behind the magic number and up to its message.
fn envelope(api_version: &str, kind: &str) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &type_meta);
    out
}

/// A frame up to the message of its object: `length, WatchEvent{1: type, 2: RawExtension{1: envelope}}`.
fn put_event_start(event: EventType, envelope: &[u8], message: usize, out: &mut Vec<u8>) {
    let enveloped = envelope.len() + field_len(message) + ENVELOPE_END.len();
    let extension = field_len(enveloped);
    let name = event.name();
    let frame = field_len(name.len()) + field_len(extension);
    let frame = u32::try_from(frame).expect("objects have less than 4 GiB");
    out.extend_from_slice(&frame.to_be_bytes());
    put_bytes(out, 1, name.as_bytes());
    put_head(out, 2, extension);
    put_head(out, 1, enveloped);
    out.extend_from_slice(envelope);
    put_head(out, 2, message);
}

fn put_whole_event(event: EventType, envelope: &[u8], message: &[u8], out: &mut Vec<u8>) {
    put_event_start(event, envelope, message.len(), out);
    out.extend_from_slice(message);
    out.extend_from_slice(&ENVELOPE_END);
}
