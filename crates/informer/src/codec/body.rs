//! Determines the encoding of a response body ([`Encoding`]), and selects a splitter for it.
//!
//! A splitter splits a list response into items, or a watch response into events, while the body is received.
//! The module does not decode the objects.

use bytes::Bytes;

use super::{
    frame::{Frame, ListEnd, SplitError},
    json, protobuf,
};

/// The encoding of the body of a list response or a watch response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    /// Protobuf in the envelope of the Kubernetes API (`runtime.Unknown`).
    Protobuf,
}

/// Content type of a response in protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Content type of CBOR responses, which the library can't read.
const CBOR: &str = "application/cbor";

impl Encoding {
    /// Returns the encoding of a response with the content type `content_type`.
    ///
    /// An unknown content type counts as JSON, because servers and proxies use several types for JSON.
    ///
    /// # Errors
    /// Returns an error if the content type is that of CBOR.
    pub(crate) fn of_content_type(content_type: &str) -> Result<Self, SplitError> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case(CBOR) {
            return Err(SplitError::Malformed(format!(
                "the server responded with {CBOR} instead of application/json"
            )));
        }
        let is_protobuf = media_type.eq_ignore_ascii_case(PROTOBUF);
        Ok(if is_protobuf {
            Self::Protobuf
        } else {
            Self::Json
        })
    }

    /// Creates a splitter for a list response. The splitter rejects items above `object_bytes` bytes.
    pub(crate) fn list_splitter(self, object_bytes: usize) -> ListSplitter {
        match self {
            Self::Json => ListSplitter::Json(json::ListSplitter::new(object_bytes)),
            Self::Protobuf => ListSplitter::Protobuf(protobuf::ListSplitter::new(object_bytes)),
        }
    }

    /// Creates a splitter for a watch response. The splitter rejects events above `object_bytes` bytes.
    pub(crate) fn watch_splitter(self, object_bytes: usize) -> WatchSplitter {
        match self {
            Self::Json => WatchSplitter::Json(json::WatchSplitter::new(object_bytes)),
            Self::Protobuf => WatchSplitter::Protobuf(protobuf::WatchSplitter::new(object_bytes)),
        }
    }
}

/// Splits the body of a list response into its items, chunk by chunk.
#[derive(Debug)]
pub(crate) enum ListSplitter {
    Json(json::ListSplitter),
    Protobuf(protobuf::ListSplitter),
}

impl ListSplitter {
    /// Reads one chunk of the body, and appends the items that end in the chunk to `items`.
    ///
    /// # Errors
    /// Returns an error if the body is not a list, or if an item or another field of the list is too large.
    /// The splitter is then unusable.
    pub(crate) fn feed(&mut self, chunk: Bytes, items: &mut Vec<Frame>) -> Result<(), SplitError> {
        match self {
            Self::Json(splitter) => splitter.feed(chunk, items),
            Self::Protobuf(splitter) => splitter.feed(chunk, items),
        }
    }

    /// Returns the fields of the list other than its items. Must be called after the last chunk.
    ///
    /// # Errors
    /// Returns an error if the list is incomplete or invalid. The caller must then discard all items.
    pub(crate) fn finish(self) -> Result<ListEnd, SplitError> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Protobuf(splitter) => splitter.finish(),
        }
    }
}

/// Splits the body of a watch response into its events, chunk by chunk.
#[derive(Debug)]
pub(crate) enum WatchSplitter {
    Json(json::WatchSplitter),
    Protobuf(protobuf::WatchSplitter),
}

impl WatchSplitter {
    /// Reads one chunk of the body, and appends the events that end in the chunk to `frames`.
    ///
    /// # Errors
    /// Returns an error if an event is invalid or too large. The splitter is then unusable.
    pub(crate) fn feed(&mut self, chunk: Bytes, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        match self {
            Self::Json(splitter) => splitter.feed(chunk, frames),
            Self::Protobuf(splitter) => splitter.feed(chunk, frames),
        }
    }

    /// Checks at the end of the body that the last event is complete.
    ///
    /// # Errors
    /// Returns an error if the body has ended inside an event.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Protobuf(splitter) => splitter.finish(),
        }
    }
}
