//! The events of a watch body, one by one.

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

/// Hands out the events of a watch as they are complete.
///
/// An event is one JSON object; lines don't matter, so a pretty-printed one is an event too. But a line
/// that ends inside an event is a reason to look whether that can still become one: if the rest of it
/// was lost, all that follows would be waited for as its end.
#[derive(Debug, Default)]
pub(crate) struct WatchSplitter {
    carry: Carry,
    scanner: ValueScanner,
    inside: bool,
    looks: Looks,
    limit: Limit,
}

/// How often an unfinished event was looked at, and how long it was then.
#[derive(Debug, Default)]
struct Looks {
    count: u32,
    bytes: usize,
}

/// So many chunks of an unfinished event are looked at whatever their length: API servers end each
/// event with its line, so the next ones show that the first was cut off.
const LOOKS: u32 = 3;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

impl WatchSplitter {
    /// A splitter that takes events up to this size.
    pub(crate) fn new(object_bytes: usize) -> Self {
        Self {
            limit: Limit::Object(object_bytes),
            ..Self::default()
        }
    }

    /// Takes one chunk and appends the events that it completes to `frames`.
    ///
    /// # Errors
    /// Something between events that is no JSON object, an event that is not JSON, or one above the
    /// limit. The splitter is of no use afterwards.
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
                    _ => return Err(malformed("a watch sent something that is no event")),
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

    /// Looks whether an event that has had the end of a line can still be one. Each look reads all of
    /// it, so from some on it must have doubled.
    fn look(&mut self) -> Result<(), SplitError> {
        let bytes = self.carry.bytes().len();
        if self.looks.count >= LOOKS && bytes < 2 * self.looks.bytes {
            return Ok(());
        }
        self.looks = Looks {
            count: self.looks.count + 1,
            bytes,
        };
        // What may be the beginning of a number is not complete, which the parser calls a wrong one.
        let is_of_number =
            |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = self
            .carry
            .bytes()
            .iter()
            .rposition(|byte| !is_of_number(byte));
        match serde_json::from_slice::<IgnoredAny>(&self.carry.bytes()[..=end.unwrap_or_default()])
        {
            Err(error) if !error.is_eof() => Err(malformed("an event of a watch is not JSON")),
            _ => Ok(()),
        }
    }

    /// Called at the end of the body.
    ///
    /// # Errors
    /// The body ended inside an event.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        if self.inside && self.scanner.is_nested() {
            return Err(SplitError::EndedEarly("the watch ended inside an event"));
        }
        Ok(())
    }
}

/// The beginnings that API servers write; recognizing them saves parsing the envelope.
const BEGINNINGS: [(&[u8], FrameKind); 4] = [
    (br#"{"type":"ADDED","object":"#, FrameKind::Added),
    (br#"{"type":"MODIFIED","object":"#, FrameKind::Modified),
    (br#"{"type":"DELETED","object":"#, FrameKind::Deleted),
    (br#"{"type":"BOOKMARK","object":"#, FrameKind::Bookmark),
];

fn frame(event: &Bytes, closed_inside: u32) -> Result<Frame, SplitError> {
    // With exactly one value closed inside, and that at the end, an object is all the rest; behind
    // anything else that stands for it, such as a text, that value may be another member's.
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
    let parsed: Event<'_> =
        serde_json::from_slice(event).map_err(|_| malformed("an event of a watch is not JSON"))?;
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
