//! [`Frame`] and [`ListEnd`]: the parts of list and watch bodies.
//!
//! Guarantees: every size that a server determines is limited.

use bytes::{Bytes, BytesMut};

use super::{Codec, Encoded};
use crate::limits::{LIST_ENVELOPE_BYTES, Limits};

/// One object or event of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) codec: Codec,
    /// The object; for an event of unknown type, any value.
    pub(crate) bytes: Bytes,
}

impl Frame {
    pub(crate) fn object(&self) -> Encoded<'_> {
        self.codec.object(&self.bytes)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An item of a list.
    Item,
    Added,
    Modified,
    Deleted,
    Bookmark,
    /// A failure that the server reports inside the stream; the bytes are a `Status`.
    Error,
    Unknown(String),
}

impl FrameKind {
    /// Whether the frame carries an object of the kind.
    pub(crate) fn is_of_object(&self) -> bool {
        match self {
            Self::Item | Self::Added | Self::Modified | Self::Deleted => true,
            Self::Bookmark | Self::Error | Self::Unknown(_) => false,
        }
    }
}

/// The metadata of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListEnd {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining_item_count: Option<i64>,
}

/// Why a body can't be split.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    /// The body is not what was requested, or exceeds a limit.
    #[error("{0}")]
    Malformed(String),
    /// The body ended before the list or the event did.
    #[error("{0}")]
    EndedEarly(&'static str),
}

pub(super) fn malformed(what: impl Into<String>) -> SplitError {
    SplitError::Malformed(what.into())
}

/// The limit of a piece of a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// An item of a list, or an event of a watch.
    Object(usize),
    /// A list's own fields.
    Envelope,
}

impl Limit {
    pub(super) fn check(self, bytes: usize) -> Result<(), SplitError> {
        match self {
            Self::Object(limit) if bytes > limit => Err(malformed(format!(
                "an object is larger than {limit} bytes; to allow it, raise Limits::object_bytes"
            ))),
            Self::Envelope if bytes > LIST_ENVELOPE_BYTES => Err(malformed(format!(
                "the response to the list has more than {LIST_ENVELOPE_BYTES} bytes besides its items"
            ))),
            Self::Object(_) | Self::Envelope => Ok(()),
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::Object(Limits::default().object_bytes)
    }
}

/// The unfinished piece at the end of the last chunk.
#[derive(Debug, Default)]
pub(super) struct Carry(BytesMut);

impl Carry {
    /// Returns the whole piece: the carried bytes and `rest`. Copies only if bytes were carried.
    pub(super) fn complete(&mut self, rest: Bytes, limit: Limit) -> Result<Bytes, SplitError> {
        if self.0.is_empty() {
            limit.check(rest.len())?;
            return Ok(rest);
        }
        self.extend(&rest, limit)?;
        Ok(self.0.split().freeze())
    }

    pub(super) fn extend(&mut self, bytes: &[u8], limit: Limit) -> Result<(), SplitError> {
        limit.check(self.0.len() + bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
