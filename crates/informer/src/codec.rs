//! [`Codec`]: the one way from bytes to what they say. It splits the body of a list or a watch, and [`Encoded`]
//! reads one object: its kind, its identity, its fields to cut, and the object itself.
//!
//! Guarantees: what is read of an object depends on its bytes alone, and no function fails for more than the one
//! object that it reads. A splitter holds one unfinished object at most. No error quotes a value of an object.
//!
//! It makes no requests, knows no informer, and keeps nothing. A content type that is not known is JSON.

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

/// How objects, lists and watches are written as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Codec {
    #[default]
    Json,
}

impl Codec {
    /// The codec of a response. Servers and proxies label JSON in many ways, so it is what everything is that is
    /// not known to be something else.
    ///
    /// # Errors
    /// A content type that is known, and not supported.
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

    /// Splits the body of a list, whose items may have up to this many bytes.
    pub(crate) fn list_splitter(self, object_bytes: usize) -> ListSplitter {
        match self {
            Self::Json => ListSplitter::new(object_bytes),
        }
    }

    /// Splits the body of a watch, whose events may have up to this many bytes.
    pub(crate) fn watch_splitter(self, object_bytes: usize) -> WatchSplitter {
        match self {
            Self::Json => WatchSplitter::new(object_bytes),
        }
    }

    /// Writes an object; `None` if its type can't be written.
    #[cfg(feature = "packed")]
    pub(crate) fn encode(self, object: &impl serde::Serialize) -> Option<Vec<u8>> {
        match self {
            Self::Json => serde_json::to_vec(object).ok(),
        }
    }

    /// These bytes as one object.
    pub(crate) fn object(self, bytes: &[u8]) -> Encoded<'_> {
        Encoded { codec: self, bytes }
    }
}

/// Encodings of the Kubernetes API that are not read.
const UNSUPPORTED: [&str; 2] = ["application/vnd.kubernetes.protobuf", "application/cbor"];

/// The bytes of one object.
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

    /// The object as JSON.
    pub(crate) fn json(self) -> Cow<'a, [u8]> {
        match self.codec {
            Codec::Json => Cow::Borrowed(self.bytes),
        }
    }

    /// How many arrays and maps it consists of.
    pub(crate) fn parts(self) -> usize {
        match self.codec {
            Codec::Json => crate::json::parts(self.bytes),
        }
    }

    /// What it says of its kind.
    pub(crate) fn named(self, expected: &Expected) -> Named {
        match self.codec {
            Codec::Json => json::named(self.bytes, expected),
        }
    }

    /// Where its metadata begin, if it is an item of a list that begins with them, and so names no kind before.
    pub(crate) fn begins_with_metadata(self) -> Option<usize> {
        match self.codec {
            Codec::Json => json::begins_with_metadata(self.bytes),
        }
    }

    /// The same object with its kind written into it.
    pub(crate) fn with_kind(self, stamp: &str) -> Vec<u8> {
        match self.codec {
            Codec::Json => json::with_kind(self.bytes, stamp),
        }
    }

    /// What identifies it; `None` if that or anything else in it can't be read.
    pub(crate) fn identity(self) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => serde_json::from_slice(self.bytes).ok(),
        }
    }

    /// What identifies it, read from the metadata alone, which begin there. With `is_quick` what is left out of the
    /// identity is passed over by its structure.
    pub(crate) fn identity_at(self, at: usize, is_quick: bool) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => json::identity_at(self.bytes, at, is_quick),
        }
    }

    /// What identifies it, read from its metadata alone if they can be found; whatever else is in it may be
    /// unreadable.
    pub(crate) fn identity_in_place(self) -> Option<Identity<'a>> {
        match self.codec {
            Codec::Json => json::identity_in_place(self.bytes),
        }
    }

    /// Whether it is the bookmark that ends the initial events of a watch: only the annotation `"true"` says so.
    pub(crate) fn ends_initial_events(self) -> bool {
        match self.codec {
            Codec::Json => json::ends_initial_events(self.bytes),
        }
    }

    /// The bytes without what is cut; as they are if they can't be read.
    pub(crate) fn cut(self, pruning: &Pruning) -> Cow<'a, [u8]> {
        match self.codec {
            _ if pruning.is_empty() => Cow::Borrowed(self.bytes),
            Codec::Json => json::cut(pruning.members(), self.bytes),
        }
    }

    /// The same, of an object whose identity was read from these very bytes; `None` if more is to be cut than what
    /// the identity has found.
    pub(crate) fn cut_found(
        self,
        pruning: &Pruning,
        identity: &Identity<'a>,
    ) -> Option<Cow<'a, [u8]>> {
        match self.codec {
            Codec::Json => json::cut_found(pruning.members(), identity.prunable(), self.bytes),
        }
    }

    /// The object.
    ///
    /// # Errors
    /// It does not fit the type. The error quotes nothing of it.
    pub(crate) fn decode<K: DeserializeOwned>(self) -> Result<K, Unfit> {
        match self.codec {
            Codec::Json => crate::json::from_slice(self.bytes)
                .map_err(|error| unfit::locate::<K>(self.bytes, &error)),
        }
    }

    /// The object, and about how many bytes of heap it takes beyond itself.
    ///
    /// # Errors
    /// As [`Encoded::decode`].
    pub(crate) fn measured<K: DeserializeOwned>(self) -> Result<Measured<K>, Unfit> {
        match self.codec {
            Codec::Json => crate::json::measured(self.bytes)
                .map_err(|error| unfit::locate::<K>(self.bytes, &error)),
        }
    }
}

#[cfg(test)]
mod tests;
