//! Measures the time, CPU time and memory of the Rust programs that the benchmarks compare.
//!
//! The informer program of this project and the kube-rs programs use this crate. The client-go program
//! repeats the same measurements in Go.
//!
//! The measured program starts an informer and then calls [`observe()`]. The documentation of [`Line`]
//! defines each printed figure.

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
