//! Fuzz targets for the library and for the embedded server. A target is a function that accepts any bytes,
//! and panics if the code under test has a defect.
//!
//! A target detects more than panics of the tested code, because it compares the result of the code with an
//! independent result. The independent result comes from a JSON parser, a map, another implementation of the
//! same grammar, or another split of the same bytes.
//!
//! The targets do not depend on the source of the bytes. `main.rs` mutates a corpus on stable Rust, and the
//! crate in `libfuzzer` uses libFuzzer.

mod asked;
mod planted;
mod target;

pub use planted::Bug;
pub use target::{TARGETS, Target, run};
