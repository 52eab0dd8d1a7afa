//! Fuzz targets: functions that accept any bytes, and panic if a required property does not hold.
//!
//! Each compares what the code makes of an input with something simpler that must agree with it (a parser of JSON, a map, another implementation of the same grammar, the same bytes in other pieces), so that more is found than panics.
//! Nothing here depends on how the bytes were made: `main.rs` runs the targets with mutations of a corpus on stable Rust, the crate in `libfuzzer` under libFuzzer.

mod asked;
mod planted;
mod target;

pub use planted::Bug;
pub use target::{TARGETS, Target, run};
