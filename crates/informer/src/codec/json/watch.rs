//! Splits the body of a watch response into its events ([`WatchSplitter`]).
//!
//! Guarantees:
//! - the splitter buffers at most one event;
//! - an event that is too large is rejected.
//!
//! The module does not decode the objects in the events.

use std::borrow::Cow;

use bytes::{Buf, Bytes};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    super::{
        Codec, Frame, FrameKind, SplitError,
        frame::{Carry, Limit, malformed},
    },
    is_space,
};
use crate::json::ValueScanner;

/// Splits the body of a watch response into its events, one JSON object each.
///
/// After a line break inside an event, the splitter checks that the event can still become valid JSON.
/// Without this check, the events after a truncated event would be read as parts of that event.
#[derive(Debug, Default)]
pub(crate) struct WatchSplitter {
    carry: Carry,
    scanner: ValueScanner,
    inside: bool,
    looks: Looks,
    limit: Limit,
}

/// Number of JSON checks of the unfinished event, and the event's length in bytes at the last check.
#[derive(Debug, Default)]
struct Looks {
    count: u32,
    bytes: usize,
}

/// The first `LOOKS` JSON checks of an unfinished event are never skipped.
///
/// Each check reads the whole event. A later check is therefore skipped unless the event is at least twice as
/// long as at the previous check.
const LOOKS: u32 = 3;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

impl WatchSplitter {
    pub(crate) fn new(object_bytes: usize) -> Self {
        Self {
            limit: Limit::Object(object_bytes),
            ..Self::default()
        }
    }

    /// Reads one chunk of the body, and appends the events that end in the chunk to `frames`.
    ///
    /// # Errors
    /// Returns an error if an event is invalid or too large. The splitter can't be used after an error.
    pub(crate) fn feed(
        &mut self,
        mut chunk: Bytes,
        frames: &mut Vec<Frame>,
    ) -> Result<(), SplitError> {
        while !chunk.is_empty() {
            if !self.inside {
                match chunk[0] {
                    byte if is_space(byte) => {
                        chunk.advance(1);
                        continue;
                    }
                    b'{' => {
                        self.inside = true;
                        self.scanner = ValueScanner::default();
                        self.looks = Looks::default();
                    }
                    _ => return Err(malformed("the watch sent data that is not a watch event")),
                }
            }
            let Some(end) = self.scanner.scan(&chunk) else {
                self.carry.extend(&chunk, self.limit)?;
                return match memchr::memchr(b'\n', &chunk) {
                    Some(_) => self.look(),
                    None => Ok(()),
                };
            };
            let event = self.carry.complete(chunk.split_to(end), self.limit)?;
            self.inside = false;
            frames.push(frame(&event, self.scanner.closed_inside)?);
        }
        Ok(())
    }

    /// If a check is due (see [`LOOKS`]), checks that the unfinished event can still become valid JSON.
    fn look(&mut self) -> Result<(), SplitError> {
        let bytes = self.carry.bytes().len();
        if self.looks.count >= LOOKS && bytes < 2 * self.looks.bytes {
            return Ok(());
        }
        self.looks = Looks {
            count: self.looks.count + 1,
            bytes,
        };
        // The parser reports an incomplete number as an invalid one.
        let is_of_number =
            |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = self
            .carry
            .bytes()
            .iter()
            .rposition(|byte| !is_of_number(byte));
        match serde_json::from_slice::<IgnoredAny>(&self.carry.bytes()[..=end.unwrap_or_default()])
        {
            Err(error) if !error.is_eof() => {
                Err(malformed("the watch sent an event that is not valid JSON"))
            }
            _ => Ok(()),
        }
    }

    /// Checks at the end of the body that the last event is complete.
    ///
    /// # Errors
    /// Returns an error if the body ended inside an event.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        if self.inside && self.scanner.is_nested() {
            return Err(SplitError::EndedEarly(
                "the watch ended in the middle of an event",
            ));
        }
        Ok(())
    }
}

/// First bytes of watch events, as API servers write them, and the type of each event. Contains all types
/// except `ERROR`.
///
/// If an event starts with one of these texts, its object is usually extracted without a JSON parser.
const BEGINNINGS: [(&[u8], FrameKind); 4] = [
    (br#"{"type":"ADDED","object":"#, FrameKind::Added),
    (br#"{"type":"MODIFIED","object":"#, FrameKind::Modified),
    (br#"{"type":"DELETED","object":"#, FrameKind::Deleted),
    (br#"{"type":"BOOKMARK","object":"#, FrameKind::Bookmark),
];

fn frame(event: &Bytes, closed_inside: u32) -> Result<Frame, SplitError> {
    // If `object` is a map and the only nested value, it extends to the end of the event. If it is another
    // value, such as a string, the nested value belongs to another member.
    if closed_inside == 1 && event.ends_with(b"}}") {
        for (beginning, kind) in BEGINNINGS {
            if event.starts_with(beginning) && event[beginning.len()] == b'{' {
                let bytes = event.slice(beginning.len()..event.len() - 1);
                return Ok(Frame {
                    kind,
                    codec: Codec::Json,
                    bytes,
                });
            }
        }
    }
    let parsed: Event<'_> = serde_json::from_slice(event)
        .map_err(|_| malformed("the watch sent an event that is not valid JSON"))?;
    let kind = match parsed.r#type.as_ref() {
        "ADDED" => FrameKind::Added,
        "MODIFIED" => FrameKind::Modified,
        "DELETED" => FrameKind::Deleted,
        "BOOKMARK" => FrameKind::Bookmark,
        "ERROR" => FrameKind::Error,
        other => FrameKind::Unknown(other.chars().take(64).collect()),
    };
    let bytes = match parsed.object {
        Some(object) => event.slice_ref(object.get().as_bytes()),
        None => Bytes::from_static(b"null"),
    };
    Ok(Frame {
        kind,
        codec: Codec::Json,
        bytes,
    })
}
