//! Defines the results of splitting the body of a list response or a watch response.
//!
//! [`Frame`] is one object or event, and [`ListEnd`] contains the fields of a list other than its items.
//!
//! Guarantees: an item, event or list field that is larger than the [`Limit`] for it is rejected. Therefore a
//! server can't make the client buffer an unlimited number of bytes.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::{Codec, Encoded};
use crate::limits::{CONTINUE_TOKEN_BYTES, LIST_ENVELOPE_BYTES, Limits, REVISION_BYTES, is_fit};

/// An undecoded list item or watch event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) codec: Codec,
    /// Undecoded bytes of the list item, or of the event's field `object`.
    pub(crate) bytes: Bytes,
}

impl Frame {
    pub(crate) fn object(&self) -> Encoded<'_> {
        self.codec.object(&self.bytes)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Item,
    Added,
    Modified,
    Deleted,
    Bookmark,
    /// An `ERROR` event, whose bytes are a `Status`.
    Error,
    Unknown(String),
}

impl FrameKind {
    /// Returns whether the frame contains an object of the informer's kind.
    pub(crate) fn is_of_object(&self) -> bool {
        match self {
            Self::Item | Self::Added | Self::Modified | Self::Deleted => true,
            Self::Bookmark | Self::Error | Self::Unknown(_) => false,
        }
    }
}

/// The fields of a list other than its items: kind, API version and metadata.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListEnd {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining_item_count: Option<i64>,
}

impl ListEnd {
    /// Returns `self` if its fields are valid.
    ///
    /// # Errors
    /// Returns an error if a field is too long, or if the resource version has control characters.
    pub(super) fn checked(self) -> Result<Self, SplitError> {
        if !is_fit(&self.resource_version, REVISION_BYTES) {
            return Err(invalid_list(format!(
                "has a resourceVersion longer than {REVISION_BYTES} bytes or with control characters"
            )));
        }
        let token = self.continue_token.as_deref().unwrap_or_default();
        if token.len() > CONTINUE_TOKEN_BYTES {
            return Err(invalid_list(format!(
                "has a continue token longer than {CONTINUE_TOKEN_BYTES} bytes"
            )));
        }
        Ok(self)
    }
}

/// The reason why a response body can't be split into frames.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    /// The body is malformed, or a part of it is too large.
    #[error("{0}")]
    Malformed(String),
    /// The body ended before the end of the list, or inside an event.
    #[error("{0}")]
    EndedEarly(&'static str),
}

/// Returns a [`SplitError::Malformed`] with the message `the response to the list {what}`.
pub(super) fn invalid_list(what: impl fmt::Display) -> SplitError {
    malformed(format!("the response to the list {what}"))
}

pub(super) fn malformed(what: impl Into<String>) -> SplitError {
    SplitError::Malformed(what.into())
}

/// Limit on the size of one part of a response body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// Maximum number of bytes of one item or event.
    Object(usize),
    /// Maximum total size of all fields of a list except its items: [`LIST_ENVELOPE_BYTES`].
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

/// Buffer for the received bytes of an incomplete item, field or event.
#[derive(Debug, Default)]
pub(super) struct Carry(BytesMut);

impl Carry {
    /// Empties the buffer, and returns the buffered bytes followed by `rest`.
    ///
    /// `rest` is not copied if the buffer is empty. Returns an error if the result exceeds `limit`.
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
