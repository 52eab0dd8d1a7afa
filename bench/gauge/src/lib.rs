//! What the Rust programs of the comparison measure themselves with, so that ours and a peer are measured
//! by the same code; the Go program follows it step by step.
//!
//! Guarantees: measuring costs a program an atomic addition per event, and two clock readings and a push
//! where it looks into the object; what a field of the printed [`Line`] means is said there, once.

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
