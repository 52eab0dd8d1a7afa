//! Integration tests of the API server.
//!
//! Most tests send requests to the server in process, with paused time. Some tests use TCP connections
//! instead.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are test code too, which the lint does not detect"
)]

mod access;
mod account_tokens;
mod approval;
mod ask;
#[cfg(feature = "client")]
mod client;
mod definitions;
mod delete;
mod direct;
mod discovery;
mod eviction;
mod fault;
mod fault_endpoint;
mod fault_plan;
mod fault_wire;
mod field_validation;
mod garbage_collection;
mod hostile;
mod impersonation;
mod kube_runtime;
mod list;
mod long_writes;
mod namespace;
mod openapi;
mod ownership;
mod page_chains;
mod paging;
#[cfg(feature = "persistence")]
mod persistence;
mod pod_log;
mod pod_subresources;
mod protobuf;
mod protobuf_response;
mod representation;
mod rbac;
mod replay;
mod request_log;
mod secrets;
mod services;
mod shared_bytes;
mod snapshot;
mod strategic;
mod system_objects;
mod unauthorised;
mod versions;
mod wake_ups;
mod watch;
mod watch_cache;
mod watch_start;
mod web_socket;
mod wire;
mod wire_gzip;
mod wire_http2;
mod wire_log;
#[cfg(feature = "tls")]
mod wire_tls;
mod write;
