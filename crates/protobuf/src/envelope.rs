//! Reads and writes the envelope of a protobuf object: its API version, its kind, and its message.
//!
//! Does not decode or encode the message.

use std::borrow::Cow;

use crate::{
    wire::{WireError, WireFields},
    write::{put_bytes, put_length},
};

/// The message `runtime.Unknown`, in which Kubernetes wraps every object that it sends as protobuf.
///
/// In a request or response, four bytes precede the envelope ([`Envelope::MAGIC`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// The API version of the object, such as `apps/v1`.
    pub api_version: Cow<'a, str>,
    /// The kind of the object, such as `Deployment`.
    pub kind: Cow<'a, str>,
    /// The encoded message of the object. Its fields depend on the kind.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// The four bytes that precede an envelope in a request or response body.
    pub const MAGIC: [u8; 4] = *b"k8s\0";

    /// The bytes that follow the message: the empty content encoding and content type.
    pub const END: [u8; 4] = [3 << 3 | 2, 0, 4 << 3 | 2, 0];

    /// Returns the bytes that precede a message of `raw_bytes` bytes, beginning with [`Envelope::MAGIC`].
    ///
    /// [`Envelope::END`] must follow the message.
    pub fn head(api_version: &str, kind: &str, raw_bytes: usize) -> Vec<u8> {
        let mut type_meta = Vec::new();
        put_bytes(1, api_version.as_bytes(), &mut type_meta);
        put_bytes(2, kind.as_bytes(), &mut type_meta);
        let mut head = Self::MAGIC.to_vec();
        put_bytes(1, &type_meta, &mut head);
        put_length(2, raw_bytes, &mut head);
        head
    }

    /// Returns the message `raw` in an envelope, beginning with [`Envelope::MAGIC`].
    pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        [&*Self::head(api_version, kind, raw.len()), raw, &Self::END].concat()
    }

    /// Reads an envelope from the bytes that follow [`Envelope::MAGIC`].
    ///
    /// The fields of the envelope are `{1: {1: apiVersion, 2: kind}, 2: raw}`. The function skips all other
    /// fields, such as the content encoding and the content type, which Kubernetes leaves empty.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a protobuf message, or if a field of the envelope is not
    /// length-delimited.
    pub fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut envelope = Self::default();
        for field in WireFields::new(bytes) {
            match field? {
                (1, value) => envelope.read_type_meta(value.bytes()?)?,
                (2, value) => envelope.raw = value.bytes()?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type_meta(&mut self, bytes: &'a [u8]) -> Result<(), WireError> {
        for field in WireFields::new(bytes) {
            let (number, value) = field?;
            let member = match number {
                1 => &mut self.api_version,
                2 => &mut self.kind,
                _ => continue,
            };
            *member = String::from_utf8_lossy(value.bytes()?);
        }
        Ok(())
    }
}
