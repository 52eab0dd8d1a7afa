//! Writes the parts of list and watch responses that surround the objects, such as list metadata and event
//! types.
//!
//! Guarantees: a body is written with the same sequence of writes as in kube-apiserver, so its chunks have
//! the same boundaries.

use crate::chunks::Output;
use crate::corpus::{Version, Writer};
use crate::kind::Kind;
use crate::protobuf::{MAGIC, field_len, put_bytes, put_head, put_number};
use crate::refusal::Refusal;
use crate::slot::Encoding;

/// The last bytes of each protobuf envelope (`runtime.Unknown`): empty `contentEncoding` and `contentType`.
const ENVELOPE_END: [u8; 4] = [0x1a, 0, 0x22, 0];

/// Annotation of the bookmark that ends the initial events.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// The type of a watch event.
///
/// There is no `Deleted`, because the benchmark's server deletes no objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Bookmark,
    Error,
}

/// The metadata of a list response: its `resourceVersion`, `continue` and `remainingItemCount`.
#[derive(Clone, Debug)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    /// The `continue` token of the next page, and the number of objects after the current page.
    pub(crate) next: Option<(String, u64)>,
}

/// Writes the list responses and watch events of one kind in one encoding.
#[derive(Clone, Debug)]
pub(crate) struct Framing {
    pub(crate) encoding: Encoding,
    kind: &'static Kind,
    /// The JSON text at the start of each object: an opening brace, `apiVersion` and `kind`.
    start: String,
    /// The bytes of a protobuf envelope (`runtime.Unknown`) before the object's message.
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

    /// Writes all bytes of a list before its first item.
    ///
    /// `items` is the sum of the [`item_len`](Self::item_len) of all items. Only protobuf needs this sum,
    /// because a protobuf list starts with its length.
    pub(crate) fn list_start(&self, meta: &ListMeta, items: usize, out: &mut Output) {
        let kind = format!("{}List", self.kind.kind);
        let api_version = self.kind.api_version();
        out.write(|out| match self.encoding {
            Encoding::Json if self.kind.has_protobuf => {
                let start = format!(
                    r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{},"items":["#,
                    meta.json(&["resourceVersion", "continue", "remainingItemCount"])
                );
                out.extend_from_slice(start.as_bytes());
            }
            Encoding::Json => {
                let start = format!(r#"{{"apiVersion":"{api_version}","items":["#);
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
        });
    }

    /// Returns the length in bytes of a protobuf list item with an object of `object` bytes.
    pub(crate) fn item_len(object: usize) -> usize {
        field_len(object)
    }

    /// Writes one item of a list: the bytes before the object, and the object itself.
    ///
    /// `object` is the index and the version of the object.
    pub(crate) fn item(
        &self,
        is_first: bool,
        object: (usize, Version),
        writer: &mut Writer<'_>,
        out: &mut Output,
    ) {
        match self.encoding {
            Encoding::Json => {
                if !is_first {
                    out.write(|out| out.push(b','));
                }
                out.write(|out| {
                    // In Go, items of a typed list have no `kind` and `apiVersion`.
                    let start = if self.kind.has_protobuf {
                        "{"
                    } else {
                        &self.start
                    };
                    out.extend_from_slice(start.as_bytes());
                    writer.write(object.0, object.1, out);
                });
            }
            Encoding::Protobuf => {
                out.write(|out| put_head(out, 2, writer.len(object.0)));
                out.write(|out| writer.write(object.0, object.1, out));
            }
        }
    }

    /// Writes the end of a list: all bytes after its last item.
    pub(crate) fn list_end(&self, meta: &ListMeta, out: &mut Output) {
        out.write(|out| match self.encoding {
            Encoding::Json if self.kind.has_protobuf => out.extend_from_slice(b"]}\n"),
            Encoding::Json => {
                // Go represents a list without a type as a map and sorts its keys.
                let end = format!(
                    "],\"kind\":\"{}List\",\"metadata\":{}}}\n",
                    self.kind.kind,
                    meta.json(&["continue", "remainingItemCount", "resourceVersion"])
                );
                out.extend_from_slice(end.as_bytes());
            }
            Encoding::Protobuf => out.extend_from_slice(&ENVELOPE_END),
        });
    }

    /// Writes a watch event, including its object.
    ///
    /// `object` is the index and the version of the object.
    pub(crate) fn event(
        &self,
        event: EventType,
        object: (usize, Version),
        writer: &mut Writer<'_>,
        out: &mut Output,
    ) {
        match self.encoding {
            Encoding::Json => out.write(|out| {
                put_json_event_start(event, out);
                out.extend_from_slice(self.start.as_bytes());
                writer.write(object.0, object.1, out);
                out.extend_from_slice(b"}\n");
            }),
            Encoding::Protobuf => {
                let len = writer.len(object.0);
                let event = EventHead::new(event, &self.envelope, len);
                out.write(|out| event.put_length(out));
                out.write(|out| {
                    event.put_start(out);
                    writer.write(object.0, object.1, out);
                    out.extend_from_slice(&ENVELOPE_END);
                });
            }
        }
    }

    /// Writes a bookmark; if `is_initial_end` is true, the bookmark ends the initial events.
    pub(crate) fn bookmark(&self, revision: u64, is_initial_end: bool, out: &mut Output) {
        match self.encoding {
            Encoding::Json => {
                let revision = format!(r#""resourceVersion":"{revision}""#);
                let annotation = format!(r#""annotations":{{"{INITIAL_END}":"true"}}"#);
                // Go writes typed objects in declaration order, and sorts the keys of untyped ones.
                let metadata = match (is_initial_end, self.kind.has_protobuf) {
                    (false, _) => revision,
                    (true, true) => format!("{revision},{annotation}"),
                    (true, false) => format!("{annotation},{revision}"),
                };
                let empty = self.kind.empty;
                let object = format!("{}\"metadata\":{{{metadata}}}{empty}}}", self.start);
                put_whole_json_event(EventType::Bookmark, &object, out);
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

    /// Writes an `ERROR` event with the `Status` object of `refusal`.
    pub(crate) fn error(&self, refusal: &Refusal, out: &mut Output) {
        match self.encoding {
            Encoding::Json => put_whole_json_event(EventType::Error, &refusal.json(), out),
            Encoding::Protobuf => {
                let mut message = Vec::new();
                put_bytes(&mut message, 1, b"");
                put_bytes(&mut message, 2, Refusal::STATUS.as_bytes());
                put_bytes(&mut message, 3, refusal.message.as_bytes());
                put_bytes(&mut message, 4, refusal.reason.as_bytes());
                put_number(&mut message, 6, refusal.code.as_u16().into());
                put_whole_event(EventType::Error, &envelope("v1", "Status"), &message, out);
            }
        }
    }
}

// === impl ListMeta ===

impl ListMeta {
    /// Returns the list metadata as a JSON object whose members have the order `order`.
    ///
    /// If `order` starts with `resourceVersion`, as for built-in kinds, the last page has no `continue`.
    /// Otherwise, the last page has an empty `continue`.
    fn json(&self, order: &[&str; 3]) -> String {
        let is_typed = order[0] == "resourceVersion";
        let members = order.iter().filter_map(|name| match (*name, &self.next) {
            ("resourceVersion", _) => Some(format!(r#""{name}":"{}""#, self.revision)),
            ("continue", Some((token, _))) => Some(format!(r#""{name}":"{token}""#)),
            ("continue", None) if !is_typed => Some(format!(r#""{name}":"""#)),
            ("remainingItemCount", Some((_, left))) => Some(format!(r#""{name}":{left}"#)),
            _ => None,
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

// === impl EventHead ===

/// The bytes of a protobuf watch event before the message of the object:
/// `length, WatchEvent{1: type, 2: RawExtension{1: envelope}}`.
struct EventHead<'a> {
    event: EventType,
    envelope: &'a [u8],
    /// Length in bytes of the protobuf message of the event's object.
    message: usize,
}

impl<'a> EventHead<'a> {
    fn new(event: EventType, envelope: &'a [u8], message: usize) -> EventHead<'a> {
        EventHead {
            event,
            envelope,
            message,
        }
    }

    fn enveloped(&self) -> usize {
        self.envelope.len() + field_len(self.message) + ENVELOPE_END.len()
    }

    /// Appends the event's length to `out` as a big-endian `u32`.
    fn put_length(&self, out: &mut Vec<u8>) {
        let extension = field_len(self.enveloped());
        let frame = field_len(self.event.name().len()) + field_len(extension);
        let frame = u32::try_from(frame).expect("objects have less than 4 GiB");
        out.extend_from_slice(&frame.to_be_bytes());
    }

    fn put_start(&self, out: &mut Vec<u8>) {
        let enveloped = self.enveloped();
        put_bytes(out, 1, self.event.name().as_bytes());
        put_head(out, 2, field_len(enveloped));
        put_head(out, 1, enveloped);
        out.extend_from_slice(self.envelope);
        put_head(out, 2, self.message);
    }
}

fn put_json_event_start(event: EventType, out: &mut Vec<u8>) {
    let start = format!(r#"{{"type":"{}","object":"#, event.name());
    out.extend_from_slice(start.as_bytes());
}

fn put_whole_json_event(event: EventType, object: &str, out: &mut Output) {
    out.write(|out| {
        put_json_event_start(event, out);
        out.extend_from_slice(object.as_bytes());
        out.extend_from_slice(b"}\n");
    });
}

/// Returns the bytes of a protobuf envelope before the object's message: the magic number and the type.
fn envelope(api_version: &str, kind: &str) -> Vec<u8> {
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &type_meta);
    out
}

fn put_whole_event(event: EventType, envelope: &[u8], message: &[u8], out: &mut Output) {
    let head = EventHead::new(event, envelope, message.len());
    out.write(|out| head.put_length(out));
    out.write(|out| {
        head.put_start(out);
        out.extend_from_slice(message);
        out.extend_from_slice(&ENVELOPE_END);
    });
}
