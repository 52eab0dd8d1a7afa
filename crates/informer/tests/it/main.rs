//! The library against the embedded API server: in process, in paused time, without a socket.

mod informer;
