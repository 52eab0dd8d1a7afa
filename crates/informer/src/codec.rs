//! Splits response bodies into objects, and reads the bytes of each object.
//!
//! [`Encoding`] creates the splitters for the bodies of list and watch responses. [`Codec`] is the encoding
//! of one object. [`Encoded`] contains the bytes of one object, and reads them.
//!
//! Guarantees:
//! - the result for an object depends only on the bytes of the object, and an invalid object does not affect
//!   other objects;
//! - a splitter buffers at most one unfinished object;
//! - no error quotes the value of a field of an object, except the API version and the kind.
//!
//! The module sends no requests, and keeps no state between two response bodies.

mod frame;
mod identity;
mod kind;
mod unfit;
mod json;
mod protobuf;
mod body;

use self::protobuf::Schema;
pub(crate) use self::{
    body::{Encoding, WatchSplitter},
    frame::{Frame, FrameKind, ListEnd, SplitError},
    identity::{Identity, IdentityMetadata, Pairs},
    kind::{Expected, Named},
    unfit::Unfit,
};

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::{json::Measured, pruning::Pruning};

/// The encoding of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Codec {
    #[default]
    Json,
    /// A protobuf message of a built-in kind, with or without the Kubernetes envelope.
    Protobuf(Schema),
}

impl Codec {
    /// Serializes an object as JSON, or returns `None` if this is impossible.
    #[cfg(feature = "packed")]
    pub(crate) fn encode(object: &impl serde::Serialize) -> Option<Vec<u8>> {
        serde_json::to_vec(object).ok()
    }

    /// Returns the encoding of the object in `bytes`.
    ///
    /// The encoding is protobuf if `bytes` is a Kubernetes protobuf envelope that names a kind for which
    /// [`has_protobuf`](Self::has_protobuf) returns true. Otherwise, the encoding is JSON.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        protobuf::schema(bytes).map_or(Self::Json, Self::Protobuf)
    }

    /// Returns whether the library can read objects of the kind `kind` as protobuf.
    pub(crate) fn has_protobuf(api_version: &str, kind: &str) -> bool {
        Schema::of_kind(api_version, kind).is_some()
    }

    /// Returns a reader for the bytes of one object in this encoding.
    pub(crate) fn object(self, bytes: &[u8]) -> Encoded<'_> {
        Encoded { codec: self, bytes }
    }
}

/// The bytes of one object as a server sent them.
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

    /// Returns the object as JSON text.
    pub(crate) fn json(self) -> Cow<'a, [u8]> {
        match self.codec {
            Codec::Json => Cow::Borrowed(self.bytes),
            Codec::Protobuf(schema) => Cow::Owned(protobuf::json(schema, self.bytes)),
        }
    }

    /// Returns the number of maps and arrays in the JSON at any depth, including the outermost map.
    ///
    /// Returns 0 for protobuf, because the protobuf decoder limits this number itself.
    pub(crate) fn parts(self) -> usize {
        match self.codec {
            Codec::Json => crate::json::parts(self.bytes),
            // The decoder counts the arrays and maps, and has the same limit.
            Codec::Protobuf(_) => 0,
        }
    }

    /// Compares the object's API version and kind with the expected ones.
    pub(crate) fn named(self, expected: &Expected) -> Named {
        match self.codec {
            Codec::Json => json::named(self.bytes, expected),
            Codec::Protobuf(schema) => protobuf::named(schema, self.bytes, expected),
        }
    }

    /// Returns `Some` if the object begins like a list item of a built-in kind, which states no kind.
    ///
    /// In JSON, such an item begins with `{"metadata":`. The number is the byte position of the value of
    /// `metadata`. In protobuf, such an item has no envelope. The number is then 0 and has no meaning.
    pub(crate) fn begins_with_metadata(self) -> Option<usize> {
        match self.codec {
            Codec::Json => json::begins_with_metadata(self.bytes),
            Codec::Protobuf(_) => protobuf::begins_with_metadata(self.bytes),
        }
    }

    /// Returns the bytes with the expected API version and kind added. The object must contain neither an API
    /// version nor a kind.
    pub(crate) fn with_kind(self, expected: &Expected) -> Vec<u8> {
        match self.codec {
            Codec::Json => json::with_kind(self.bytes, expected.stamp()),
            Codec::Protobuf(_) => protobuf::with_kind(self.bytes, expected),
        }
    }

    /// Reads the object's identity: the name, namespace, UID, revision and labels.
    ///
    /// Returns `None` if the object can't be parsed.
    pub(crate) fn identity(self) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => serde_json::from_slice(self.bytes).ok(),
            Codec::Protobuf(_) => protobuf::identity(self.bytes),
        }
    }

    /// Reads the object's identity from `metadata`, whose value begins at byte `at` of a JSON object.
    ///
    /// If `is_quick` is true, metadata fields outside the identity are not validated.
    pub(crate) fn identity_at(self, at: usize, is_quick: bool) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => json::identity_at(self.bytes, at, is_quick),
            Codec::Protobuf(_) => protobuf::identity(self.bytes),
        }
    }

    /// Reads the object's identity from its metadata, even if the rest of the object is invalid.
    pub(crate) fn identity_in_place(self) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => json::identity_in_place(self.bytes),
            Codec::Protobuf(_) => protobuf::identity_in_place(self.bytes),
        }
    }

    /// Returns whether the object is a bookmark that ends the initial events of a watch.
    pub(crate) fn ends_initial_events(self) -> bool {
        match self.codec {
            Codec::Json => json::ends_initial_events(self.bytes),
            Codec::Protobuf(_) => protobuf::ends_initial_events(self.bytes),
        }
    }

    /// Returns the object without the fields that `pruning` drops; an invalid object is unchanged.
    pub(crate) fn cut(self, pruning: &Pruning) -> Cow<'a, [u8]> {
        match self.codec {
            _ if pruning.is_empty() => Cow::Borrowed(self.bytes),
            Codec::Json => json::cut(pruning.members(), self.bytes),
            Codec::Protobuf(schema) => protobuf::cut(pruning.members(), schema, self.bytes),
        }
    }

    /// Like [`Encoded::cut`], but does not search the JSON for the annotations and the managed fields.
    ///
    /// `identity` must be the identity of this object. For JSON, it contains the text of these two fields.
    ///
    /// Returns `None` if the caller must use [`Encoded::cut`]. This happens only for JSON, for three reasons:
    /// - `pruning` can drop fields other than annotations and managed fields;
    /// - `pruning` drops one of the two fields, and the key of this field is escaped;
    /// - `pruning` drops parts of one of the two fields, and the value of this field is invalid JSON.
    pub(crate) fn cut_found(
        self,
        pruning: &Pruning,
        identity: &Identity<'a>,
    ) -> Option<Cow<'a, [u8]>> {
        match self.codec {
            Codec::Json => json::cut_found(pruning.members(), identity.prunable(), self.bytes),
            Codec::Protobuf(_) => Some(self.cut(pruning)),
        }
    }

    /// Decodes the object as a `K`.
    ///
    /// # Errors
    /// Returns an error if the object does not decode. The error contains no values of the object.
    pub(crate) fn decode<K: DeserializeOwned>(self) -> Result<K, Unfit> {
        // Without the estimate, decoding takes 3 % less time, but `K` would be compiled twice as often.
        self.measured().map(|measured| measured.value)
    }

    /// Decodes the object as a `K`, and estimates the heap memory of the result in bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`Encoded::decode`].
    pub(crate) fn measured<K: DeserializeOwned>(self) -> Result<Measured<K>, Unfit> {
        match self.codec {
            Codec::Json => crate::json::measured(self.bytes)
                .map_err(|error| Unfit::of_json(self.bytes, &error)),
            Codec::Protobuf(schema) => protobuf::measured(schema, self.bytes),
        }
    }
}

#[cfg(test)]
mod tests;
