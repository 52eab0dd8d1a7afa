//! Defines [`Edit`], a change to one event of a watch, with its keyword in a fault plan and its effect.
//!
//! Guarantees:
//! - A line whose content an edit changes is still one line.
//! - [`Edit::Spoil`] and [`Edit::Retype`] return a line unchanged if it is not an event of this server.

use bytes::Bytes;
use serde_json::{Value, json};

/// A change that a fault makes to one event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Drop,
    Duplicate,
    /// Sends the event after the event that follows it.
    Swap,
    /// Sends only the first half of the event's line.
    Garble,
    /// Changes the event's object. A client then can't decode the object.
    Spoil,
    /// Changes the type of the event to one that no client knows.
    Retype,
}

/// Keyword of each edit in the grammar of fault plans.
pub(super) const EDITS: [(&str, Edit); 6] = [
    ("drop", Edit::Drop),
    ("duplicate", Edit::Duplicate),
    ("swap", Edit::Swap),
    ("garble", Edit::Garble),
    ("spoil", Edit::Spoil),
    ("retype", Edit::Retype),
];

impl Edit {
    /// Applies the edit to `lines`, the lines that are sent for one event.
    pub(super) fn apply(self, lines: &mut Vec<Bytes>) {
        match self {
            Self::Drop => lines.clear(),
            Self::Duplicate => lines.extend_from_within(..),
            // The caller swaps events, because a swap affects two of them.
            Self::Swap => {}
            Self::Garble => lines.iter_mut().for_each(|line| *line = garbled(line)),
            Self::Spoil => lines.iter_mut().for_each(|line| *line = spoilt(line)),
            Self::Retype => lines.iter_mut().for_each(|line| *line = retyped(line)),
        }
    }
}

/// Start of the line of every event that this server sends.
const START: &[u8] = b"{\"type\":\"";

/// Event type that no client knows.
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

/// Returns the first half of a line, which is not valid JSON, with a line break.
fn garbled(line: &[u8]) -> Bytes {
    let mut half = line[..line.len() / 2].to_vec();
    half.push(b'\n');
    half.into()
}

/// Returns the line of an event with a number in place of the object's annotations.
///
/// A client can decode the name and the revision of the object, but not the complete object. A line that is
/// not an event with an object is returned unchanged.
fn spoilt(line: &Bytes) -> Bytes {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
        return line.clone();
    };
    let metadata = event.pointer_mut("/object/metadata");
    let Some(metadata) = metadata.and_then(Value::as_object_mut) else {
        return line.clone();
    };
    metadata.insert("annotations".to_owned(), json!(0));
    // The type is the first member, as in every line, because clients may read it without the rest.
    let (event_type, object) = (&event["type"], &event["object"]);
    format!("{{\"type\":{event_type},\"object\":{object}}}\n").into()
}

/// Returns the line of an event with its type replaced by [`UNKNOWN_TYPE`].
///
/// Any other line is returned unchanged.
fn retyped(line: &Bytes) -> Bytes {
    let Some(rest) = line.strip_prefix(START) else {
        return line.clone();
    };
    let Some(quote) = rest.iter().position(|byte| *byte == b'"') else {
        return line.clone();
    };
    [START, UNKNOWN_TYPE, &rest[quote..]].concat().into()
}
