//! Shared code of the verification programs: seeds, random choices, shrinking, coverage and reports.
//!
//! The programs are the simulation, the crash test (repeatedly kills and restarts a server), the fuzz runner
//! and the comparison with client-go. Each program defines its own inputs and checks.

pub mod report;
pub mod seeds;
pub mod draw;
pub mod threads;
pub mod shrink;
pub mod coverage;
pub mod planted;
