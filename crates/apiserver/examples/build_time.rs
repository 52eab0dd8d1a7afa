//! How long it takes to make a server, as a test does: without a socket, with all kinds of Kubernetes.
//!
//! Prints the median and the longest of a hundred, in the profile it was built with.
//!
//! `cargo run --release -p kube-informer-apiserver --example build_time`

#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::time::Duration;

use kube_informer_apiserver::Server;
use tokio::time::Instant;

/// Servers made; enough for a median, and for the first, which finds nothing in any cache.
const SERVERS: usize = 100;

fn main() {
    let build = |_| {
        let began = Instant::now();
        let server = Server::builder().build();
        let took = began.elapsed();
        assert_eq!(server.revision(), 1);
        took
    };
    let mut took: Vec<Duration> = (0..SERVERS).map(build).collect();
    let first = took[0];
    took.sort_unstable();
    let (median, longest) = (took[SERVERS / 2], took[SERVERS - 1]);
    println!("{SERVERS} servers: median {median:.0?}, longest {longest:.0?}, first {first:.0?}");
}
