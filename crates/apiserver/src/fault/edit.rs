//! [`Edit`]: a change to one event of a watch, its keyword in a fault plan, and its effect.
//!
//! Guarantees: a line stays a line; a line that is not an event of this server passes unchanged, except that
//! [`Edit::Garble`] truncates it to half.

use bytes::Bytes;
use serde_json::{Value, json};

/// A change that a fault makes to one event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Drop,
    Duplicate,
    /// The event is sent after the event that follows it.
    Swap,
    /// The second half of the event's line is not sent.
    Garble,
    /// The event's object can't be decoded.
    Spoil,
    /// The event has a type that is unknown to every client.
    Retype,
}

/// Keywords of the edits in a fault plan.
pub(super) const EDITS: [(&str, Edit); 6] = [
    ("drop", Edit::Drop),
    ("duplicate", Edit::Duplicate),
    ("swap", Edit::Swap),
    ("garble", Edit::Garble),
    ("spoil", Edit::Spoil),
    ("retype", Edit::Retype),
];

impl Edit {
    /// Applies the edit to the lines that are sent for one event.
    pub(super) fn apply(self, lines: &mut Vec<Bytes>) {
        match self {
            Self::Drop => lines.clear(),
            Self::Duplicate => lines.extend_from_within(..),
            // The caller swaps events, because two of them are involved.
            Self::Swap => {}
            Self::Garble => lines.iter_mut().for_each(|line| *line = garbled(line)),
            Self::Spoil => lines.iter_mut().for_each(|line| *line = spoilt(line)),
            Self::Retype => lines.iter_mut().for_each(|line| *line = retyped(line)),
        }
    }
}

/// Start of every event line that this server sends.
const START: &[u8] = b"{\"type\":\"";

/// Event type that is unknown to every client.
const UNKNOWN_TYPE: &[u8] = b"MOVED";

/// Start of the line of a BOOKMARK event.
const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";

/// Text that identifies the bookmark at the end of a streamed list.
const END: &[u8] = b"\"k8s.io/initial-events-end\":\"true\"";

pub(super) fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(BOOKMARK)
}

pub(super) fn is_end_bookmark(line: &[u8]) -> bool {
    is_bookmark(line) && line.windows(END.len()).any(|part| part == END)
}

/// Returns the first half of a line, which is not valid JSON.
fn garbled(line: &[u8]) -> Bytes {
    let mut half = line[..line.len() / 2].to_vec();
    half.push(b'\n');
    half.into()
}

/// Returns the line of an event with a number in place of the object's annotations.
///
/// A client can decode its name and revision, but not the object.
fn spoilt(line: &Bytes) -> Bytes {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
        return line.clone();
    };
    let metadata = event.pointer_mut("/object/metadata");
    let Some(metadata) = metadata.and_then(Value::as_object_mut) else {
        return line.clone();
    };
    metadata.insert("annotations".to_owned(), json!(0));
    // The type is first, as in every line: clients may read it without the rest.
    let (event_type, object) = (&event["type"], &event["object"]);
    format!("{{\"type\":{event_type},\"object\":{object}}}\n").into()
}

/// Returns the line of an event with a type that is unknown to every client.
fn retyped(line: &Bytes) -> Bytes {
    let Some(rest) = line.strip_prefix(START) else {
        return line.clone();
    };
    let Some(quote) = rest.iter().position(|byte| *byte == b'"') else {
        return line.clone();
    };
    [START, UNKNOWN_TYPE, &rest[quote..]].concat().into()
}
