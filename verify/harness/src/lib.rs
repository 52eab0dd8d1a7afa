//! Common parts of the verification programs.
//!
//! Reports, seeds, drawing, threads, shrinking, coverage and planted bugs.
//!
//! The programs are the simulation, the crash program, the fuzz runner and the comparison with client-go.
//! Each of them owns what it draws and how it judges a run; this crate knows neither.

pub mod report;
pub mod seeds;
pub mod draw;
pub mod threads;
pub mod shrink;
pub mod coverage;
pub mod planted;
