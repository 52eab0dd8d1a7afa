//! Writes the generated objects of one template.
//!
//! A template contains the bytes that its objects share, and placeholders for the values that differ. Each
//! such value is a [`Slot`]. Writing an object copies the bytes and overwrites the placeholders.
//!
//! Guarantees: the JSON encoding and, if the kind supports it, the protobuf encoding of a template come from
//! one JSON object. Each encoding contains every slot at least once.

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;
use serde_json::Value;

use crate::kind::Kind;
use crate::protobuf;
use crate::slot::{Encoding, Identity, Slot, Slots};

/// The bytes that all objects of the template have in common, in each encoding.
#[derive(Debug)]
pub(crate) struct Template {
    json: Pattern,
    protobuf: Option<Pattern>,
}

/// Objects in one encoding: their common bytes, and the offsets of the values that differ.
#[derive(Debug)]
pub(crate) struct Pattern {
    bytes: Box<[u8]>,
    /// Slots and the offsets in `bytes` at which their values are written; equal slots are consecutive.
    holes: Box<[(Slot, usize)]>,
}

// === impl Template ===

impl Template {
    /// Creates a template from `object`, which must contain the placeholder of each slot in `slots`.
    ///
    /// # Errors
    ///
    /// Returns an error if `object` is not of `kind`, or if a placeholder is missing.
    pub(crate) fn new(kind: &Kind, object: &Value, slots: &Slots) -> Result<Template> {
        let name = kind.api_version_and_kind();
        if !kind.has_protobuf {
            let text = object.to_string();
            let members = text.strip_prefix(&kind.json_start());
            let members = members.context("apiVersion and kind are the first members")?;
            let json = Pattern::new(members.as_bytes(), slots.marks(Encoding::Json))?;
            return Ok(Template {
                json,
                protobuf: None,
            });
        }
        let members = protobuf::ordered_json(&name, object)?;
        let message = protobuf::encode(&name, object)?;
        Ok(Template {
            json: Pattern::new(members.as_bytes(), slots.marks(Encoding::Json))?,
            protobuf: Some(Pattern::new(&message, slots.marks(Encoding::Protobuf))?),
        })
    }

    /// Returns the bytes that all objects of the template share in `encoding`, with the offsets of the
    /// placeholders.
    ///
    /// Returns `None` if the kind of the objects does not support `encoding`.
    pub(crate) fn pattern(&self, encoding: Encoding) -> Option<&Pattern> {
        match encoding {
            Encoding::Json => Some(&self.json),
            Encoding::Protobuf => self.protobuf.as_ref(),
        }
    }
}

// === impl Pattern ===

impl Pattern {
    fn new(bytes: &[u8], marks: impl Iterator<Item = (Slot, Vec<u8>)>) -> Result<Pattern> {
        let mut holes = Vec::new();
        for (slot, mark) in marks {
            let before = holes.len();
            holes.extend(memmem::find_iter(bytes, &mark).map(|at| (slot, at)));
            ensure!(holes.len() > before, "{slot:?} has no place");
        }
        Ok(Pattern {
            bytes: bytes.into(),
            holes: holes.into(),
        })
    }

    /// Returns the length of one encoded object in bytes, which is the same for all objects of the template.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends one object to the buffer `out`.
    ///
    /// The parameter `of` identifies the object. `scratch` is a temporary buffer, whose content is
    /// overwritten.
    pub(crate) fn write(
        &self,
        of: &Identity,
        encoding: Encoding,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let object = &mut out[start..];
        let mut written = None;
        for &(slot, at) in &self.holes {
            if written != Some(slot) {
                slot.write(of, encoding, scratch);
                written = Some(slot);
            }
            object[at..at + scratch.len()].copy_from_slice(scratch);
        }
    }
}
