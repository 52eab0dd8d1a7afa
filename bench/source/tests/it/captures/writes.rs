//! Computes the sequence of writes with which kube-apiserver's encoders produce a given response body.
//!
//! Also extracts the parts of a JSON body that must be equal for kube-apiserver and the benchmark's server.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

/// The encoding of a response body, and whether the body is a list or watch events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    JsonList,
    ProtobufList,
    JsonEvents,
    ProtobufEvents,
}

/// The bytes that kube-apiserver's encoder writes with one call.
///
/// One value can also stand for several consecutive short calls, because the resulting chunks are the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) bytes: usize,
    /// Whether kube-apiserver may flush its buffer after this write.
    pub(crate) may_flush: bool,
}

fn write(bytes: usize) -> Write {
    Write {
        bytes,
        may_flush: false,
    }
}

impl Body {
    pub(crate) fn writes(self, body: &[u8]) -> Vec<Write> {
        match self {
            Body::JsonList => {
                // Each comma is a separate write. The writes before the first item and after the last item
                // are short.
                let items = items(body);
                let mut writes = Vec::new();
                let mut at = 0;
                for item in items {
                    writes.extend([write(item.start - at), write(item.len())]);
                    at = item.end;
                }
                writes.push(write(body.len() - at));
                writes
            }
            Body::ProtobufList => {
                let mut writes = vec![write(0)];
                let mut reader = Protobuf(&body[4..]);
                reader.field(1); // type
                reader.head(2);
                reader.field(1); // metadata
                let mut at = 0;
                while reader.0.len() > 4 {
                    let length = reader.head(2);
                    let start = body.len() - reader.0.len();
                    reader.0 = &reader.0[length..];
                    writes.extend([write(start - at), write(length)]);
                    at = start + length;
                }
                writes.push(write(body.len() - at));
                writes
            }
            Body::JsonEvents => lines(body)
                .map(|line| Write {
                    bytes: line.len(),
                    may_flush: true,
                })
                .collect(),
            Body::ProtobufEvents => {
                let mut writes = Vec::new();
                let mut rest = body;
                while let Some((length, events)) = rest.split_first_chunk() {
                    let length = u32::from_be_bytes(*length) as usize;
                    let frame = Write {
                        bytes: length,
                        may_flush: true,
                    };
                    writes.extend([write(4), frame]);
                    rest = &events[length..];
                }
                writes
            }
        }
    }

    /// Returns the parts of a JSON body that must equal kube-apiserver's, or an empty set for protobuf.
    ///
    /// Constants replace the values that may differ, such as `resourceVersion`.
    pub(crate) fn shape(self, body: &[u8]) -> BTreeSet<String> {
        match self {
            Body::ProtobufList | Body::ProtobufEvents => BTreeSet::new(),
            Body::JsonList => {
                let items = items(body);
                let text = |bytes: &[u8]| masked(std::str::from_utf8(bytes).unwrap());
                let around = [
                    text(&body[..items[0].start]),
                    text(&body[items[items.len() - 1].end..]),
                ];
                let heads = items.iter().map(|item| head(&body[item.clone()]));
                around.into_iter().chain(heads).collect()
            }
            Body::JsonEvents => lines(body)
                .map(|line| {
                    if event_type(line) == "BOOKMARK" {
                        return masked(std::str::from_utf8(line).unwrap());
                    }
                    let start = line.windows(9).position(|part| part == br#""object":"#);
                    let (before, object) = line.split_at(start.unwrap() + 9);
                    let object = &object[..object.len() - 2];
                    let before = std::str::from_utf8(before).unwrap();
                    assert!(line.ends_with(b"}}\n"), "{before}");
                    format!("{before}{}", head(object))
                })
                .collect(),
        }
    }
}

/// Returns the type of a watch event in JSON, such as `ADDED`.
pub(crate) fn event_type(event: &[u8]) -> &str {
    let text = event.strip_prefix(br#"{"type":""#).unwrap();
    let end = text.iter().position(|byte| *byte == b'"').unwrap();
    std::str::from_utf8(&text[..end]).unwrap()
}

/// Returns the start of an object's JSON text. The word `metadata` replaces the member `metadata` and all
/// text after it.
///
/// For example, the result is `{"kind":"Pod","apiVersion":"v1",metadata`.
fn head(object: &[u8]) -> String {
    let text = std::str::from_utf8(object).unwrap();
    let end = text.find(r#""metadata":{""#).unwrap();
    format!("{}metadata", &text[..end])
}

/// Replaces the values of `resourceVersion`, `continue` and `remainingItemCount` by constants.
fn masked(text: &str) -> String {
    let mut out = text.to_owned();
    for (name, mark) in [
        ("\"resourceVersion\":\"", "R"),
        ("\"continue\":\"", "T"),
        ("\"remainingItemCount\":", "N"),
    ] {
        if let Some(at) = out.find(name) {
            let start = at + name.len();
            let end = out[start..].find(['"', '}', ',']).unwrap() + start;
            let mark = if start == end { "" } else { mark };
            out.replace_range(start..end, mark);
        }
    }
    out
}

fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split_inclusive(|byte| *byte == b'\n')
}

/// Returns the byte range of each item of a JSON list.
fn items(body: &[u8]) -> Vec<std::ops::Range<usize>> {
    #[derive(serde::Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    let list: List<'_> = serde_json::from_slice(body).unwrap();
    let start = body.as_ptr().addr();
    let range = |item: &RawValue| {
        let at = item.get().as_ptr().addr() - start;
        at..at + item.get().len()
    };
    list.items.into_iter().map(range).collect()
}

/// The protobuf fields that have not been read yet, as bytes.
struct Protobuf<'a>(&'a [u8]);

impl Protobuf<'_> {
    fn varint(&mut self) -> usize {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = usize::from(self.0[0]);
            self.0 = &self.0[1..];
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }

    /// Reads the tag of the length-delimited field `number`, and returns the length of its value.
    fn head(&mut self, number: usize) -> usize {
        assert_eq!(self.varint(), number << 3 | 2);
        self.varint()
    }

    fn field(&mut self, number: usize) {
        let length = self.head(number);
        self.0 = &self.0[length..];
    }
}
