//! The library against the embedded API server: in process, in paused time, without a socket.

mod broken;
mod factory;
mod handlers;
mod queues;
mod relist;
mod resync;
mod setting;
mod types;
mod wire;
