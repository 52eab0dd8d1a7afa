//! The policies for changes that arrive faster than a handler processes them.
//!
//! This module defines only the choice; `buffer` implements it.

use std::num::NonZeroUsize;

/// The behavior of a handler's buffer while the handler is slower than the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerBuffer {
    /// The buffer grows, and every change is delivered.
    ///
    /// The buffer contains the changes that the handler has not handled yet. A list, a resync or the
    /// initial state of a late registration counts as one. A warning is logged above 1,024.
    #[default]
    Grow,
    /// Waiting notifications are merged per object.
    ///
    /// At most one notification per object waits, in addition to the one in progress. Intermediate states
    /// are not delivered; they count in [`HandlerStatus::coalesced`](super::HandlerStatus::coalesced).
    ///
    /// | waiting | new | delivered |
    /// | --- | --- | --- |
    /// | added | updated | added, with the newest state |
    /// | added | deleted | nothing |
    /// | updated | updated | one update, from the last delivered state to the newest state |
    /// | updated | deleted | deleted |
    /// | deleted | added | both, in this order, with any uids |
    ///
    /// An object keeps the position of its first waiting change, so an object that changes constantly is
    /// not delayed indefinitely. The order of changes of different objects is not preserved. A merged
    /// update has the cause of its last change that was not a resync. A resync of an object that already
    /// waits has no effect. `Synced` is delivered after all notifications that precede it.
    ///
    /// A list, the initial state of a late registration or a resync counts as one notification while
    /// nothing else waits. Otherwise it is expanded into one notification per object.
    Coalesce,
    /// At most this many notifications wait; a full buffer blocks the informer. Nothing is dropped.
    ///
    /// While the buffer is full, the informer applies no changes, which delays all its handlers and
    /// eventually the watch. The limit excludes `Synced`, the initial state of a late registration, and
    /// the notifications that the informer needs to become synced: the first lists, which are one
    /// notification per object on a [`DeltaFifo`](crate::queue::DeltaFifo).
    Block(NonZeroUsize),
}
