//! Reads JSON fast: finds where a value ends, decodes it, and measures the memory of the decoded value.
//!
//! Guarantees: a decoded value equals the one that `serde_json` decodes from the same bytes, and every error
//! is a `serde_json` error. The module imports no other module of the library, and does not depend on
//! Kubernetes.
//!
//! - [`ValueScanner`] follows the structure of a value over any number of chunks, 64 bytes at a time.
//! - [`CompactReader`] reads the members of an object in place, from JSON without white space.
//! - [`from_slice`] decodes a value with `simd-json`; [`measured`] also counts its heap memory.

mod scanner;
mod compact;
mod tape;
mod sizes;

pub(crate) use self::{
    compact::CompactReader,
    scanner::{ValueScanner, parts},
    sizes::{Measured, measured},
};

use serde::de::DeserializeOwned;

/// Decodes a value from a whole JSON text.
///
/// # Errors
/// The same errors as [`serde_json::from_slice`].
pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    match tape::decode(json) {
        Some(value) => Ok(value),
        None => serde_json::from_slice(json),
    }
}
