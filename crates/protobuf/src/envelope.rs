//! [`Envelope`]: the wrapper that names the kind of a message.

use std::borrow::Cow;

use crate::wire::{WireError, WireFields};

/// The wrapper of every object that Kubernetes sends as protobuf: `runtime.Unknown`, behind four bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// The group and version, such as `apps/v1`.
    pub api_version: Cow<'a, str>,
    /// The kind, such as `Deployment`.
    pub kind: Cow<'a, str>,
    /// The bytes of the message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// The four bytes before the wrapper.
    pub const MAGIC: [u8; 4] = *b"k8s\0";

    /// Reads `{1: {1: apiVersion, 2: kind}, 2: raw}`, the bytes behind [`Envelope::MAGIC`]. The fields for a
    /// content encoding and a content type are empty where Kubernetes sends objects, and are skipped.
    ///
    /// # Errors
    /// The bytes are not a message, or one of the three fields has another wire type.
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
