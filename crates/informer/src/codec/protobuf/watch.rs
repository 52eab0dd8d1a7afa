//! Splits the body of a watch response into its events ([`WatchSplitter`]).
//!
//! Guarantees:
//! - the splitter buffers at most one event;
//! - an event that is too large is rejected as soon as its length is received.
//!
//! The module does not decode the objects in the events.

use bytes::{Buf, Bytes};
use kube_informer_protobuf::{Envelope, WireError, WireFields};

use super::{
    super::{
        Codec, Frame, FrameKind, SplitError,
        frame::{Carry, Limit, malformed},
    },
    Schema,
};
use crate::limits::one_line;

/// Size in bytes of the length prefix of each event.
const LENGTH_BYTES: usize = 4;

/// Maximum length of an unknown event type, and of an unsupported kind in an error message.
///
/// An event type is truncated to this number of characters. An API version and kind together are truncated to
/// this number of bytes.
const NAME_BYTES: usize = 64;

/// Splits the body of a watch response into its events, chunk by chunk.
#[derive(Debug, Default)]
pub(crate) struct WatchSplitter {
    carry: Carry,
    /// Length of the current event in bytes, once received.
    length: Option<usize>,
    limit: Limit,
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
    /// Returns an error if an event is invalid, unsupported or too large. The splitter is then unusable.
    pub(crate) fn feed(
        &mut self,
        mut chunk: Bytes,
        frames: &mut Vec<Frame>,
    ) -> Result<(), SplitError> {
        while !chunk.is_empty() {
            let length = self.length.unwrap_or(LENGTH_BYTES);
            let missing = length - self.carry.bytes().len();
            if chunk.len() < missing {
                self.carry.extend(&chunk, self.limit)?;
                return Ok(());
            }
            let whole = self.carry.complete(chunk.split_to(missing), self.limit)?;
            if self.length.take().is_some() {
                frames.push(frame(&whole)?);
            } else {
                let length = usize::try_from((&whole[..]).get_u32()).unwrap_or(usize::MAX);
                self.limit.check(length)?;
                self.length = Some(length);
                // An empty event has no bytes to wait for.
                if length == 0 {
                    return Err(malformed("the watch sent an empty event"));
                }
            }
        }
        Ok(())
    }

    /// Checks at the end of the body that the last event is complete.
    ///
    /// # Errors
    /// Returns an error if the body has ended inside an event.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        if self.length.is_some() || !self.carry.is_empty() {
            return Err(SplitError::EndedEarly(
                "the watch ended in the middle of an event",
            ));
        }
        Ok(())
    }
}

/// Converts one event, the message `{1: type, 2: {1: object}}`, to a [`Frame`].
fn frame(event: &Bytes) -> Result<Frame, SplitError> {
    let parts = parts(event).map_err(|error| {
        malformed(format!(
            "the watch sent an event that is not protobuf: {error}"
        ))
    })?;
    let (name, object) = parts;
    let kind = match name {
        b"ADDED" => FrameKind::Added,
        b"MODIFIED" => FrameKind::Modified,
        b"DELETED" => FrameKind::Deleted,
        b"BOOKMARK" => FrameKind::Bookmark,
        b"ERROR" => FrameKind::Error,
        other => FrameKind::Unknown(
            String::from_utf8_lossy(other)
                .chars()
                .take(NAME_BYTES)
                .collect(),
        ),
    };
    let envelope = object.strip_prefix(&Envelope::MAGIC).map(Envelope::read);
    let Some(Ok(envelope)) = envelope else {
        return Err(malformed(
            "the watch sent an object without an envelope of protobuf",
        ));
    };
    let schema = Schema::of_kind(&envelope.api_version, &envelope.kind).ok_or_else(|| {
        let kind = format!("{} {}", envelope.api_version, envelope.kind);
        let kind = one_line(&kind, NAME_BYTES);
        malformed(format!(
            "the watch sent protobuf of the kind {kind:?}, which the library knows only as JSON"
        ))
    })?;
    Ok(Frame {
        kind,
        codec: Codec::Protobuf(schema),
        bytes: event.slice_ref(object),
    })
}

fn parts(event: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut name, mut object) = (&[][..], &[][..]);
    for field in WireFields::new(event) {
        match field? {
            (1, value) => name = value.bytes()?,
            (2, value) => {
                for field in WireFields::new(value.bytes()?) {
                    if let (1, value) = field? {
                        object = value.bytes()?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, object))
}
