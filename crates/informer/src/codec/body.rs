//! [`Encoding`]: how the body of a list or a watch is encoded, and the splitters of both encodings.

use bytes::Bytes;

use super::{
    frame::{Frame, ListEnd, SplitError},
    json, protobuf,
};

/// The encoding of the body of a list or a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Json,
    /// Protobuf; the objects in the body state their kinds.
    Protobuf,
}

/// Content type of the encoding in protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Content type of an encoding of the Kubernetes API that the library can't read.
const CBOR: &str = "application/cbor";

impl Encoding {
    /// Returns the encoding of a response with the given content type.
    ///
    /// A response with an unknown content type is read as JSON, because servers and proxies label JSON in
    /// many ways.
    ///
    /// # Errors
    /// The content type names an encoding of the Kubernetes API that the library does not support.
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

    /// Creates a splitter for the body of a list; an item with more than `object_bytes` bytes is an error.
    pub(crate) fn list_splitter(self, object_bytes: usize) -> ListSplitter {
        match self {
            Self::Json => ListSplitter::Json(json::ListSplitter::new(object_bytes)),
            Self::Protobuf => ListSplitter::Protobuf(protobuf::ListSplitter::new(object_bytes)),
        }
    }

    /// Creates a splitter for the body of a watch; an event with more than `object_bytes` bytes is an error.
    pub(crate) fn watch_splitter(self, object_bytes: usize) -> WatchSplitter {
        match self {
            Self::Json => WatchSplitter::Json(json::WatchSplitter::new(object_bytes)),
            Self::Protobuf => WatchSplitter::Protobuf(protobuf::WatchSplitter::new(object_bytes)),
        }
    }
}

/// Splits the body of a list into its items while the body is received.
#[derive(Debug)]
pub(crate) enum ListSplitter {
    Json(json::ListSplitter),
    Protobuf(protobuf::ListSplitter),
}

impl ListSplitter {
    /// Reads one chunk of the body, and appends the items that end in the chunk to `items`.
    ///
    /// # Errors
    /// The body is not a list, or an item or a field of the list exceeds its limit. The splitter can't be used
    /// afterwards.
    pub(crate) fn feed(&mut self, chunk: Bytes, items: &mut Vec<Frame>) -> Result<(), SplitError> {
        match self {
            Self::Json(splitter) => splitter.feed(chunk, items),
            Self::Protobuf(splitter) => splitter.feed(chunk, items),
        }
    }

    /// Returns the list's fields other than its items. The caller must call this method at the end of the body.
    ///
    /// # Errors
    /// The body ended before the end of the list, or the list's fields are invalid. The caller must not use the
    /// items of the body.
    pub(crate) fn finish(self) -> Result<ListEnd, SplitError> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Protobuf(splitter) => splitter.finish(),
        }
    }
}

/// Splits the body of a watch into events, and returns each event once all bytes of the event are received.
#[derive(Debug)]
pub(crate) enum WatchSplitter {
    Json(json::WatchSplitter),
    Protobuf(protobuf::WatchSplitter),
}

impl WatchSplitter {
    /// Reads one chunk of the body, and appends the events that end in the chunk to `frames`.
    ///
    /// # Errors
    /// The body contains something other than events, or an event exceeds the limit. The splitter can't be used
    /// afterwards.
    pub(crate) fn feed(&mut self, chunk: Bytes, frames: &mut Vec<Frame>) -> Result<(), SplitError> {
        match self {
            Self::Json(splitter) => splitter.feed(chunk, frames),
            Self::Protobuf(splitter) => splitter.feed(chunk, frames),
        }
    }

    /// Checks that the body did not end inside an event. The caller must call this method at the end of the
    /// body.
    ///
    /// # Errors
    /// The body ended inside an event.
    pub(crate) fn finish(&self) -> Result<(), SplitError> {
        match self {
            Self::Json(splitter) => splitter.finish(),
            Self::Protobuf(splitter) => splitter.finish(),
        }
    }
}
