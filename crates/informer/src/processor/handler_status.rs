//! [`HandlerStatus`] is a snapshot of the event counters of one handler or subscription.
//!
//! The module only defines the type. The handler's buffer counts the events.

use std::{sync::Arc, time::Duration};

use super::ListenerBuffer;

/// A snapshot of the event counters and the lag of one handler or subscription.
///
/// Each event for the handler is either waiting or counted in exactly one of `told`, `coalesced` and
/// `discarded`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Name of the handler, as it appears in logs.
    pub name: Arc<str>,
    /// Policy of the handler's buffer for changes that arrive faster than the handler processes them.
    pub buffer: ListenerBuffer,
    /// Number of notifications that are waiting or in progress. A notification is one change, one list or one
    /// resync. All objects that were in the cache when the handler was registered are also one notification.
    pub depth: usize,
    /// Age of the oldest notification that is not completely handled. Zero if there is none.
    ///
    /// The age is the time since the notification's change was applied to the cache, measured with tokio's
    /// clock.
    pub lag: Duration,
    /// Number of events that were delivered to the handler, including the event in progress.
    pub told: u64,
    /// Number of events that another event of the same object replaced or cancelled in the buffer. These
    /// events are not delivered. Zero unless the buffer is [`ListenerBuffer::Coalesce`].
    pub coalesced: u64,
    /// Number of waiting events that were dropped when the handler was removed or the informer stopped.
    ///
    /// The number can be too high, because it may include objects that failed to decode. The handler receives
    /// no events for these objects.
    pub discarded: u64,
    /// Number of times that the handler panicked.
    pub panics: u64,
    /// Whether the handler has processed the `Synced` event, which follows all events of the handler's
    /// initial list.
    pub synced: bool,
}
