//! Decodes JSON, finds the end of a JSON value, and estimates the memory of a decoded value.
//!
//! Guarantees: a decoded value equals the value that `serde_json` decodes from the same bytes, and every
//! error is a `serde_json` error. This module imports no other module of the library, and does not depend on
//! Kubernetes.
//!
//! - [`ValueScanner`] finds the end of a JSON value that arrives in chunks.
//! - [`CompactReader`] reads the members of a JSON object without copying them. It supports only
//!   JSON that has no white space between tokens.
//! - [`measured`] decodes a value with `simd-json`, and estimates the heap memory of the value.
//! - [`failed_path`] finds the path of the value at which decoding failed.

mod scanner;
mod compact;
mod path;
mod tape;
mod sizes;

pub(crate) use self::{
    compact::CompactReader,
    path::failed_path,
    scanner::{ValueScanner, parts},
    sizes::{Measured, counted, measured},
};
