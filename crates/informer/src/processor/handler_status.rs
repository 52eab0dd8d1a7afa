//! [`HandlerStatus`]: a snapshot of the event counters of one handler.

use std::{sync::Arc, time::Duration};

use super::ListenerBuffer;

/// A snapshot of the event counters and the delay of one handler or subscription.
///
/// Every event for the handler is counted once: as `told`, `coalesced` or `discarded`, or it still waits. An
/// object that fails to decode (a broken object) is not delivered, but it counts as discarded if its list is
/// discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Name of the handler, as in logs.
    pub name: Arc<str>,
    /// The policy of the handler's buffer for changes that arrive faster than the handler processes them.
    pub buffer: ListenerBuffer,
    /// Number of waiting notifications, including the one in progress. A list or a resync counts as one; so
    /// do the objects that were in the cache when the handler was registered.
    pub depth: usize,
    /// Age of the oldest waiting notification: the time since its change was applied to the cache, by tokio's
    /// clock. Zero if no notification waits.
    pub lag: Duration,
    /// Number of events delivered to the handler, including the one in progress.
    pub told: u64,
    /// Number of events that were never delivered, because they were merged with a later event of the same
    /// object, or cancelled out by it, while they waited.
    ///
    /// Always zero unless the buffer is [`ListenerBuffer::Coalesce`].
    pub coalesced: u64,
    /// Number of events that were waiting when the handler was removed or the informer stopped.
    pub discarded: u64,
    /// Number of times that the handler panicked.
    pub panics: u64,
    /// Whether the handler has handled the `Synced` event, and thus all objects of its initial state.
    pub synced: bool,
}
