//! [`HandlerStatus`]: the progress of one handler, as a value.

use std::{sync::Arc, time::Duration};

use super::ListenerBuffer;

/// The progress of one handler or subscription at one moment.
///
/// Every event of a handler is counted: the total is the sum of `told`, `coalesced`, `discarded` and the
/// events that still wait. Broken objects are not delivered, but those of a discarded list count as
/// discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Name of the handler, as in logs.
    pub name: Arc<str>,
    /// The behavior of the buffer while the handler is slower than the changes.
    pub buffer: ListenerBuffer,
    /// Number of waiting notifications, including the one in progress. A list, a resync or the initial
    /// state of a late registration counts as one.
    pub depth: usize,
    /// Time since the cache change of the oldest waiting notification, by tokio's clock; zero if none
    /// waits.
    pub lag: Duration,
    /// Number of delivered events, including the one in progress.
    pub told: u64,
    /// Number of events that were merged with another event or cancelled out while they waited.
    ///
    /// Always zero unless the buffer is [`ListenerBuffer::Coalesce`].
    pub coalesced: u64,
    /// Number of events that were waiting when the handler was removed or the informer stopped.
    pub discarded: u64,
    /// Number of panics of the handler.
    pub panics: u64,
    /// Whether the handler has handled its entire initial state.
    pub synced: bool,
}
