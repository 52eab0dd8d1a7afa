//! Measurements of the Rust programs of the comparison. Our program and the Rust peers use the same code; the
//! Go program follows the same steps.
//!
//! Guarantees: a measurement adds two atomic operations per event. A handler that reads the objects also
//! reads the clock once and records one latency per update. [`Line`] defines each printed field.
//!
//! This crate does not start an informer: the program does, and calls [`observe()`].

mod flags;
mod latencies;
mod line;
mod process;
mod source;
mod told;
mod observe;

pub use self::{
    flags::{Flags, Handler, List, Server},
    line::Line,
    observe::{SETTLE, Start, observe},
    process::{cpu_time, resident_kib},
    told::Told,
};
