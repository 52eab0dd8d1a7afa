//! Integration tests of the library. Most tests use the embedded API server inside the test process, with
//! paused time and without a socket.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on says so by panicking"
)]

mod broken;
mod buffers;
mod callbacks;
mod consistency;
mod credentials;
mod derived_index;
mod edges;
mod factory;
mod handlers;
mod hostile;
#[cfg(feature = "http2")]
mod http2;
mod indices;
#[cfg(feature = "kube-runtime")]
mod kube_rs;
mod lazy;
mod lifecycle;
mod lives;
mod logs;
mod metrics;
mod mutations;
mod packed;
mod panics;
mod parallel;
mod plain;
mod process_loop;
mod protobuf;
mod pruned;
mod put_back;
mod queues;
mod read_your_writes;
mod reflector;
mod relist;
mod representations;
mod resync;
mod requests;
mod script;
mod scripted;
mod secrets;
mod setting;
mod status;
mod stops;
mod streaming;
mod transforms;
mod turns;
mod unordered;
mod warm_start;
mod wire;
