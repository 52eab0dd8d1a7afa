//! Fuzz targets for the library and for the embedded server. A target is a function that accepts any bytes,
//! and panics if the code under test has a defect.
//!
//! Most targets also compare the result of the tested code with an independent result, for example with the
//! result of another JSON parser.
//!
//! The bytes come from `main.rs`, which mutates a corpus on stable Rust, or from the libFuzzer entry points
//! in the folder `libfuzzer`.

mod asked;
mod planted;
mod target;

pub use planted::Bug;
pub use target::{TARGETS, Target, run};
