//! Fuzz targets: functions that accept any bytes, and panic if a required property does not hold.
//!
//! Each compares the result with something simpler that must agree with it, so that more than panics is
//! found: a JSON parser, a map, another implementation of the same grammar, or the same bytes split
//! differently. The targets do not depend on the source of the bytes: `main.rs` mutates a corpus on stable
//! Rust, the crate in `libfuzzer` uses libFuzzer.

mod asked;
mod planted;
mod target;

pub use planted::Bug;
pub use target::{TARGETS, Target, run};
