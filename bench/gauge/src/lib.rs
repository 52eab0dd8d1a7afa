//! Measures the time, CPU time and memory of the Rust programs that the benchmarks compare.
//!
//! The program of this project and the Rust peers use this crate. The Go program has its own measurements,
//! which follow the same steps. The fields of [`Line`] define each printed figure.
//!
//! Guarantees: a measurement adds two atomic operations to each event. If the handler reads the objects, each
//! update also adds one reading of the clock and one recorded latency.
//!
//! This crate does not start an informer. The measured program starts the informer and then calls
//! [`observe()`].

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
