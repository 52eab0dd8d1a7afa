//! The server as its clients see it: in process under paused time, and over TCP.

mod ask;
#[cfg(feature = "client")]
mod client;
mod delete;
mod discovery;
mod fault;
mod list;
mod paging;
mod representation;
mod request_log;
mod watch;
mod watch_start;
mod wire;
mod write;
