//! Tests the `kubectl-informer` binary as a user runs it: its output, its exit code and its requests.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step fails the test; clippy's exemption does not reach helpers"
)]

mod binary;
mod data_dir;
mod demo;
mod messages;
mod refusals;
mod serve;
mod watch_caches;
