//! The events of a watch body, one by one.

use std::borrow::Cow;

use bytes::{Buf, Bytes};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Carry, Frame, FrameKind, PIECE_BYTES, is_space, malformed, value::ValueScanner};
use crate::transport::{Class, Error};

/// Hands out the events of a watch as they are complete.
///
/// An event is one JSON object; lines don't matter, so a pretty-printed one is an event too.
#[derive(Debug, Default)]
pub(crate) struct WatchSplitter {
    carry: Carry,
    scanner: ValueScanner,
    inside: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

impl WatchSplitter {
    /// Takes one chunk and appends the events that it completes to `frames`.
    ///
    /// # Errors
    /// Something between events that is no JSON object, an event that is not JSON, or one above the
    /// limit. The splitter is of no use afterwards.
    pub(crate) fn feed(&mut self, mut chunk: Bytes, frames: &mut Vec<Frame>) -> Result<(), Error> {
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
                    }
                    _ => return Err(malformed("a watch sent something that is no event")),
                }
            }
            let Some(end) = self.scanner.scan(&chunk) else {
                return self.carry.extend(&chunk, PIECE_BYTES);
            };
            let event = self.carry.complete(chunk.split_to(end), PIECE_BYTES)?;
            self.inside = false;
            frames.push(frame(&event, self.scanner.closed_inside)?);
        }
        Ok(())
    }

    /// Called at the end of the body.
    ///
    /// # Errors
    /// The body ended inside an event.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.inside && self.scanner.is_nested() {
            return Err(Error::new(
                Class::Connection,
                "the watch ended inside an event",
            ));
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

fn frame(event: &Bytes, closed_inside: u32) -> Result<Frame, Error> {
    // With exactly one value closed inside, and that at the end, the object is all the rest.
    if closed_inside == 1 && event.ends_with(b"}}") {
        for (beginning, kind) in BEGINNINGS {
            if event.starts_with(beginning) {
                let bytes = event.slice(beginning.len()..event.len() - 1);
                return Ok(Frame { kind, bytes });
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
    Ok(Frame { kind, bytes })
}
