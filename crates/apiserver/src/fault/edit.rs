//! [`Edit`]: a change to one event of a watch. Everything about an edit is here: its word in a plan and its effect.
//!
//! Guarantees: a line stays a line; one that is not an event of this server passes unchanged, except that [`Edit::Garble`] takes half of it.

use bytes::Bytes;
use serde_json::{Value, json};

/// What happens to one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Drop,
    Duplicate,
    /// It changes places with the next one.
    Swap,
    /// Half of its line is lost.
    Garble,
    /// Its object can't be decoded.
    Spoil,
    /// Its type is one that no client knows.
    Retype,
}

/// The words of the edits, as a plan has them.
pub(super) const EDITS: [(&str, Edit); 6] = [
    ("drop", Edit::Drop),
    ("duplicate", Edit::Duplicate),
    ("swap", Edit::Swap),
    ("garble", Edit::Garble),
    ("spoil", Edit::Spoil),
    ("retype", Edit::Retype),
];

impl Edit {
    /// Edits what is to be sent for one event.
    pub(super) fn apply(self, lines: &mut Vec<Bytes>) {
        match self {
            Self::Drop => lines.clear(),
            Self::Duplicate => lines.extend_from_within(..),
            // Two events take part, so whoever sends them swaps them.
            Self::Swap => {}
            Self::Garble => lines.iter_mut().for_each(|line| *line = garbled(line)),
            Self::Spoil => lines.iter_mut().for_each(|line| *line = spoilt(line)),
            Self::Retype => lines.iter_mut().for_each(|line| *line = retyped(line)),
        }
    }
}

/// How the lines of this server start.
const START: &[u8] = b"{\"type\":\"";

/// The type that no client knows.
const UNKNOWN_TYPE: &[u8] = b"MOVED";

/// How the line of a bookmark starts.
const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";

/// What the bookmark that closes a streamed list has in it.
const END: &[u8] = b"\"k8s.io/initial-events-end\":\"true\"";

pub(super) fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(BOOKMARK)
}

pub(super) fn is_end_bookmark(line: &[u8]) -> bool {
    is_bookmark(line) && line.windows(END.len()).any(|part| part == END)
}

/// The first half of a line, so that what is left is not JSON.
fn garbled(line: &[u8]) -> Bytes {
    let mut half = line[..line.len() / 2].to_vec();
    half.push(b'\n');
    half.into()
}

/// The event with annotations that are a number: JSON of which a client can read the name and the revision, but not the object.
fn spoilt(line: &Bytes) -> Bytes {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
        return line.clone();
    };
    let metadata = event.pointer_mut("/object/metadata");
    let Some(metadata) = metadata.and_then(Value::as_object_mut) else {
        return line.clone();
    };
    metadata.insert("annotations".to_owned(), json!(0));
    // The type comes first, as in every line: clients may read it without the rest.
    let (event_type, object) = (&event["type"], &event["object"]);
    format!("{{\"type\":{event_type},\"object\":{object}}}\n").into()
}

/// The event with a type that no client knows.
fn retyped(line: &Bytes) -> Bytes {
    let Some(rest) = line.strip_prefix(START) else {
        return line.clone();
    };
    let Some(quote) = rest.iter().position(|byte| *byte == b'"') else {
        return line.clone();
    };
    [START, UNKNOWN_TYPE, &rest[quote..]].concat().into()
}
