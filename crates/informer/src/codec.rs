//! Splits the body of a list or a watch into objects ([`Codec`]), and reads the bytes of one object
//! ([`Encoded`]).
//!
//! Guarantees: the result of reading an object depends only on the object's bytes, and a failure does not
//! affect other objects. A splitter buffers at most one unfinished object. No error quotes a value of an
//! object.
//!
//! The module sends no requests, and keeps no state between two response bodies.

mod frame;
mod identity;
mod kind;
mod unfit;
mod json;

pub(crate) use self::{
    frame::{Frame, FrameKind, ListEnd, SplitError},
    identity::{Identity, IdentityMetadata, Pairs},
    json::{ListSplitter, WatchSplitter},
    kind::{Expected, Named},
    unfit::Unfit,
};

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::{json::Measured, pruning::Pruning};

/// The encoding in which a server sends objects, lists and watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Codec {
    #[default]
    Json,
}

impl Codec {
    /// Returns the codec for a response with the given content type.
    ///
    /// A response with an unknown content type is read as JSON, because servers and proxies send JSON with
    /// various content types.
    ///
    /// # Errors
    /// The content type names an encoding of the Kubernetes API that the library does not support.
    pub(crate) fn of_content_type(content_type: &str) -> Result<Self, SplitError> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let is = |known: &&&str| media_type.eq_ignore_ascii_case(known);
        match UNSUPPORTED.iter().find(is) {
            Some(known) => Err(SplitError::Malformed(format!(
                "the server responded with {known} instead of application/json"
            ))),
            None => Ok(Self::Json),
        }
    }

    /// Creates a splitter for the body of a list. The splitter rejects items of more than `object_bytes`
    /// bytes.
    pub(crate) fn list_splitter(self, object_bytes: usize) -> ListSplitter {
        match self {
            Self::Json => ListSplitter::new(object_bytes),
        }
    }

    /// Creates a splitter for the body of a watch. The splitter rejects events of more than `object_bytes`
    /// bytes.
    pub(crate) fn watch_splitter(self, object_bytes: usize) -> WatchSplitter {
        match self {
            Self::Json => WatchSplitter::new(object_bytes),
        }
    }

    /// Returns the bytes of an object in this encoding; `None` if the object can't be serialized.
    #[cfg(feature = "packed")]
    pub(crate) fn encode(self, object: &impl serde::Serialize) -> Option<Vec<u8>> {
        match self {
            Self::Json => serde_json::to_vec(object).ok(),
        }
    }

    /// Returns an [`Encoded`], which reads the bytes of one object in this encoding.
    pub(crate) fn object(self, bytes: &[u8]) -> Encoded<'_> {
        Encoded { codec: self, bytes }
    }
}

/// Content types of the Kubernetes API that the library can't read.
const UNSUPPORTED: [&str; 2] = ["application/vnd.kubernetes.protobuf", "application/cbor"];

/// The bytes of one object as a server sent them, with methods that read parts of the object or decode it.
#[derive(Clone, Copy)]
pub(crate) struct Encoded<'a> {
    codec: Codec,
    bytes: &'a [u8],
}

impl<'a> Encoded<'a> {
    pub(crate) fn codec(self) -> Codec {
        self.codec
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the JSON text of the object.
    pub(crate) fn json(self) -> Cow<'a, [u8]> {
        match self.codec {
            Codec::Json => Cow::Borrowed(self.bytes),
        }
    }

    /// Returns the number of arrays and maps in the object.
    pub(crate) fn parts(self) -> usize {
        match self.codec {
            Codec::Json => crate::json::parts(self.bytes),
        }
    }

    /// Compares the API version and kind in the object with those that the informer expects.
    pub(crate) fn named(self, expected: &Expected) -> Named {
        match self.codec {
            Codec::Json => json::named(self.bytes, expected),
        }
    }

    /// Returns the byte position of the value of `metadata`, if `metadata` is the object's first field.
    ///
    /// List items without a kind usually begin with `metadata`.
    pub(crate) fn begins_with_metadata(self) -> Option<usize> {
        match self.codec {
            Codec::Json => json::begins_with_metadata(self.bytes),
        }
    }

    /// Inserts the text `stamp` as the first fields of the object, and returns the resulting bytes.
    ///
    /// `stamp` is the JSON text of an API version and a kind.
    pub(crate) fn with_kind(self, stamp: &str) -> Vec<u8> {
        match self.codec {
            Codec::Json => json::with_kind(self.bytes, stamp),
        }
    }

    /// Parses the whole object and returns its identity; `None` if any part of the object is invalid.
    pub(crate) fn identity(self) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => serde_json::from_slice(self.bytes).ok(),
        }
    }

    /// Reads the object's identity from the value of `metadata`, which begins at byte `at`.
    ///
    /// Returns `None` if the metadata are invalid. If `is_quick` is true, metadata fields outside the
    /// identity are skipped without validation.
    pub(crate) fn identity_at(self, at: usize, is_quick: bool) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => json::identity_at(self.bytes, at, is_quick),
        }
    }

    /// Reads the object's identity from its metadata, even if the rest of the object is invalid.
    ///
    /// Parses the whole object if the metadata can't be located. Returns `None` if the identity can't be
    /// read.
    pub(crate) fn identity_in_place(self) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => json::identity_in_place(self.bytes),
        }
    }

    /// Returns whether the object is the bookmark that ends the initial events of a watch.
    ///
    /// In such a bookmark, the annotation `k8s.io/initial-events-end` is `"true"`.
    pub(crate) fn ends_initial_events(self) -> bool {
        match self.codec {
            Codec::Json => json::ends_initial_events(self.bytes),
        }
    }

    /// Returns the bytes of the object without the fields that `pruning` drops.
    ///
    /// Invalid JSON is returned unchanged.
    pub(crate) fn cut(self, pruning: &Pruning) -> Cow<'a, [u8]> {
        match self.codec {
            _ if pruning.is_empty() => Cow::Borrowed(self.bytes),
            Codec::Json => json::cut(pruning.members(), self.bytes),
        }
    }

    /// Returns the bytes of the object without the fields that `pruning` drops. Does not search for the
    /// fields.
    ///
    /// `identity`, which must have been read from the same bytes, contains the positions of the annotations
    /// and the managed fields. Returns `None` if `pruning` drops any other field. The caller then uses
    /// [`Encoded::cut`].
    pub(crate) fn cut_found(
        self,
        pruning: &Pruning,
        identity: &Identity<'a>,
    ) -> Option<Cow<'a, [u8]>> {
        match self.codec {
            Codec::Json => json::cut_found(pruning.members(), identity.prunable(), self.bytes),
        }
    }

    /// Decodes the object as a `K`.
    ///
    /// # Errors
    /// The object does not decode as a `K`. The error quotes none of the object's values.
    pub(crate) fn decode<K: DeserializeOwned>(self) -> Result<K, Unfit> {
        match self.codec {
            Codec::Json => crate::json::from_slice(self.bytes)
                .map_err(|error| unfit::locate::<K>(self.bytes, &error)),
        }
    }

    /// Decodes the object as a `K`, and estimates the heap memory of the result in bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`Encoded::decode`].
    pub(crate) fn measured<K: DeserializeOwned>(self) -> Result<Measured<K>, Unfit> {
        match self.codec {
            Codec::Json => crate::json::measured(self.bytes)
                .map_err(|error| unfit::locate::<K>(self.bytes, &error)),
        }
    }
}

#[cfg(test)]
mod tests;
