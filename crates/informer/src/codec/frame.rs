//! Defines the parts into which the body of a list or a watch is split.
//!
//! [`Frame`] is one object or event, and [`ListEnd`] contains the fields of a list besides its items.
//!
//! Guarantees: a part of a body that is larger than its [`Limit`] is rejected, so a server can't make the
//! client buffer more.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::{Codec, Encoded};
use crate::limits::{CONTINUE_TOKEN_BYTES, LIST_ENVELOPE_BYTES, Limits, REVISION_BYTES, is_fit};

/// One object of a list, or one event of a watch, split from a response body and not decoded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) codec: Codec,
    /// Undecoded bytes of the list item or of the event's `object`. They can be any JSON value.
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
    /// An ERROR event, which reports a failure of the watch; the frame's bytes are a `Status`.
    Error,
    Unknown(String),
}

impl FrameKind {
    /// Returns whether the frame contains an object of the informer's kind.
    ///
    /// Returns false for bookmarks, errors and unknown events.
    pub(crate) fn is_of_object(&self) -> bool {
        match self {
            Self::Item | Self::Added | Self::Modified | Self::Deleted => true,
            Self::Bookmark | Self::Error | Self::Unknown(_) => false,
        }
    }
}

/// The fields of a list besides its items: kind, API version and metadata.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListEnd {
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) resource_version: String,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining_item_count: Option<i64>,
}

impl ListEnd {
    /// Returns these fields if the resource version and the continue token can be used.
    ///
    /// # Errors
    /// The resource version or the continue token is too long, or the resource version has control characters.
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

/// The reason why the body of a list or a watch can't be split into frames.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    /// The body is not a list or a watch in the requested format, or exceeds a limit.
    #[error("{0}")]
    Malformed(String),
    /// The body ended before the end of the list, or inside an event.
    #[error("{0}")]
    EndedEarly(&'static str),
}

/// Returns the error for an invalid response to a list; `what` continues the sentence.
pub(super) fn invalid_list(what: impl fmt::Display) -> SplitError {
    malformed(format!("the response to the list {what}"))
}

pub(super) fn malformed(what: impl Into<String>) -> SplitError {
    SplitError::Malformed(what.into())
}

/// Limit on the size of one part of a response body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// Maximum number of bytes of an item of a list, or of an event of a watch.
    Object(usize),
    /// Maximum total size of all fields of a list besides its items: [`LIST_ENVELOPE_BYTES`] bytes.
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

/// Buffer for an item, field or event that began in an earlier chunk of the body and has not ended yet.
#[derive(Debug, Default)]
pub(super) struct Carry(BytesMut);

impl Carry {
    /// Returns all bytes of an item, field or event that ends with `rest`, and empties the buffer.
    ///
    /// `rest` is not copied if the buffer is empty. Returns an error if the bytes exceed `limit`.
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
