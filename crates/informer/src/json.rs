//! Reads JSON fast: where a value ends, what a value is, and how much memory it takes.
//!
//! Guarantees: a value is the one that `serde_json` makes of the same bytes, and every error is one of
//! `serde_json`'s. It imports nothing of the rest of the library, and knows nothing of Kubernetes.
//!
//! - [`ValueScanner`] follows the structure of a value over any number of chunks, 64 bytes at a time.
//! - [`CompactReader`] reads members in place, of JSON without white space.
//! - [`from_slice`] makes a value of a type, by way of a tape; [`measured`] also counts its memory.

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

/// The value of a text.
///
/// # Errors
/// Those of [`serde_json::from_slice`].
pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    match tape::decode(json) {
        Some(value) => Ok(value),
        None => serde_json::from_slice(json),
    }
}
