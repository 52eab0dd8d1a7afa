//! Decodes JSON, finds the end of a JSON value, and estimates the memory of a decoded value.
//!
//! Guarantees: a decoded value equals the value that `serde_json` decodes from the same bytes, and every
//! error is a `serde_json` error. This module imports no other module of the library, and does not depend on
//! Kubernetes.
//!
//! - [`ValueScanner`] finds the end of a JSON value that arrives in chunks.
//! - [`CompactReader`] reads the members of a JSON object without white space, and does not copy them.
//! - [`from_slice`] decodes a value with `simd-json`. [`measured`] also estimates the heap memory of the
//!   value.

mod scanner;
mod compact;
mod tape;
mod sizes;

pub(crate) use self::{
    compact::CompactReader,
    scanner::{ValueScanner, parts},
    sizes::{Measured, counted, measured},
};

use serde::de::DeserializeOwned;

/// Decodes a complete JSON text.
///
/// # Errors
/// Returns the same errors as [`serde_json::from_slice`].
pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    match tape::decode(json) {
        Some(value) => Ok(value),
        None => serde_json::from_slice(json),
    }
}
