//! Integration tests of the benchmark's object server, with clients over TCP.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on says so by panicking"
)]

mod binary;
mod captures;
mod kube_client;
mod served;
