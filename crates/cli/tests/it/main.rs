//! The program as a user runs it: the binary, its output and its exit code.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step fails the test; clippy's exemption does not reach helpers"
)]

mod binary;
mod data_dir;
mod demo;
mod refusals;
mod serve;
mod watch_caches;
