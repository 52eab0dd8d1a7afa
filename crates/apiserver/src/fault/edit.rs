//! Defines the changes that a fault can make to one event of a watch ([`Edit`]).
//!
//! In a fault plan, an edit has the keyword that [`EDITS`] defines.
//!
//! Guarantees: [`Edit::Spoil`] and [`Edit::Retype`] do not change bytes that are not an event of a watch.

mod message;

pub(super) use message::frame_length;

use bytes::Bytes;
use serde_json::{Value, json};

/// The format that divides a response body into lines or messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Lines, as in a JSON watch, in which each line is an event.
    Lines,
    /// Messages with their lengths before them, as in a protobuf watch.
    Lengths,
    /// One message, as in a protobuf response that is not a watch.
    Whole,
}

/// A change that a fault makes to one event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    Drop,
    Duplicate,
    /// Swaps the event with the next event of the watch.
    Swap,
    /// Sends only the first half of the event.
    Garble,
    /// Replaces the annotations of the event's object by a number, which clients can't decode.
    Spoil,
    /// Changes the type of the event to [`UNKNOWN_TYPE`], which no client knows.
    Retype,
}

/// Keyword of each edit in a fault plan.
pub(super) const EDITS: [(&str, Edit); 6] = [
    ("drop", Edit::Drop),
    ("duplicate", Edit::Duplicate),
    ("swap", Edit::Swap),
    ("garble", Edit::Garble),
    ("spoil", Edit::Spoil),
    ("retype", Edit::Retype),
];

impl Edit {
    /// Applies the edit to one event. Does nothing for [`Edit::Swap`].
    ///
    /// `frames` contains the copies of the event: one copy, unless an earlier edit has dropped or duplicated
    /// the event.
    /// [`Edit::Drop`] removes all copies. [`Edit::Duplicate`] doubles the number of copies. Any other edit
    /// changes each copy.
    pub(super) fn apply(self, framing: Framing, frames: &mut Vec<Bytes>) {
        match self {
            Self::Drop => frames.clear(),
            Self::Duplicate => frames.extend_from_within(..),
            // The caller swaps events, because a swap affects two of them.
            Self::Swap => {}
            Self::Garble | Self::Spoil | Self::Retype => {
                for frame in frames {
                    *frame = self.changed(framing, frame);
                }
            }
        }
    }

    /// Applies the edit to the bytes of one line or message.
    fn changed(self, framing: Framing, frame: &Bytes) -> Bytes {
        match (framing, self) {
            (Framing::Lines, Self::Garble) => garbled(frame),
            (Framing::Lines, Self::Spoil) => spoilt(frame),
            (Framing::Lines, Self::Retype) => retyped(frame),
            (Framing::Lengths, Self::Garble) => message::garbled(frame),
            (Framing::Lengths, Self::Spoil) => message::spoilt(frame),
            (Framing::Lengths, Self::Retype) => message::retyped(frame),
            (Framing::Whole, Self::Garble) => frame.slice(..frame.len() / 2),
            (_, Self::Spoil | Self::Retype | Self::Drop | Self::Duplicate | Self::Swap) => {
                frame.clone()
            }
        }
    }
}

impl Framing {
    /// Returns whether the line or message is a BOOKMARK event.
    pub(super) fn is_bookmark(self, frame: &[u8]) -> bool {
        match self {
            Self::Lines => is_bookmark(frame),
            Self::Lengths => message::is_bookmark(frame),
            Self::Whole => false,
        }
    }

    /// Returns whether `frame` is the bookmark that ends the initial events of a streaming list.
    pub(super) fn is_end_bookmark(self, frame: &[u8]) -> bool {
        match self {
            Self::Lines => is_end_bookmark(frame),
            Self::Lengths => message::is_end_bookmark(frame),
            Self::Whole => false,
        }
    }
}

/// Start of the line of every event that this server sends.
const START: &[u8] = b"{\"type\":\"";

/// Event type that [`Edit::Retype`] writes, and that Kubernetes does not define.
const UNKNOWN_TYPE: &[u8] = b"MOVED";

/// Start of the line of a BOOKMARK event.
const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\"";

/// JSON text of the annotation on the bookmark that ends the initial events of a streaming list.
const END: &[u8] = b"\"k8s.io/initial-events-end\":\"true\"";

fn is_bookmark(line: &[u8]) -> bool {
    line.starts_with(BOOKMARK)
}

fn is_end_bookmark(line: &[u8]) -> bool {
    is_bookmark(line) && line.windows(END.len()).any(|part| part == END)
}

/// Returns the first half of `line`, followed by a line break.
fn garbled(line: &[u8]) -> Bytes {
    let mut half = line[..line.len() / 2].to_vec();
    half.push(b'\n');
    half.into()
}

/// Replaces the annotations of the event's object by a number, so that clients can't decode the object.
///
/// Returns `line` unchanged if it is not an event.
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

/// Replaces the event's type by [`UNKNOWN_TYPE`].
///
/// Returns `line` unchanged if it is not an event.
fn retyped(line: &Bytes) -> Bytes {
    let Some(rest) = line.strip_prefix(START) else {
        return line.clone();
    };
    let Some(quote) = rest.iter().position(|byte| *byte == b'"') else {
        return line.clone();
    };
    [START, UNKNOWN_TYPE, &rest[quote..]].concat().into()
}
