//! [`ListenerBuffer`] selects the policy for changes that arrive faster than a handler processes them.
//!
//! This module only defines the policies. The module `buffer` implements them.

use std::num::NonZeroUsize;

/// The policy of a handler's buffer for changes that arrive faster than the handler processes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerBuffer {
    /// The buffer grows without limit, and every change is delivered. A warning is logged when more than
    /// 1,024 notifications are waiting.
    ///
    /// A list or a resync is one notification. All objects that were in the cache when the handler was
    /// registered are also one notification.
    #[default]
    Grow,
    /// Waiting notifications are merged per object.
    ///
    /// At most one notification per object is waiting, in addition to the notification in progress. A
    /// deletion and the addition that follows it wait as one notification. Intermediate states are not
    /// delivered. They are counted in [`HandlerStatus::coalesced`](super::HandlerStatus::coalesced).
    ///
    /// | waiting | new | delivered |
    /// | --- | --- | --- |
    /// | added | updated | added, with the newest state |
    /// | added | deleted | nothing |
    /// | updated | updated | one update, from the last delivered state to the newest state |
    /// | updated | deleted | deleted |
    /// | deleted | added | both, in this order, even if the uids are equal |
    ///
    /// - An object keeps the position of its first waiting change. The order of changes of different objects
    ///   is not preserved.
    /// - A resync of an object that already has a waiting change has no effect.
    /// - A merged update has the [`Cause`](crate::indexer::Cause) of its newest change that was not a resync.
    /// - `Synced` is delivered after all notifications that were added before it.
    /// - A list is one notification if no other notification is waiting. Otherwise, the list is expanded into
    ///   one notification per object. Resyncs, and the objects that were in the cache at registration, are
    ///   treated like a list.
    Coalesce,
    /// The buffer holds at most this number of waiting notifications. A full buffer blocks the informer, and
    /// no change is dropped.
    ///
    /// While the buffer is full, the informer applies no changes. All handlers of the informer are then
    /// delayed, and eventually the watch.
    ///
    /// The limit does not apply to `Synced`, or to the objects that were in the cache at registration. The
    /// limit also does not apply to the first list of each reflector, because the informer needs these lists
    /// to become synced. With a [`DeltaFifo`](crate::queue::DeltaFifo), a first list has one notification per
    /// object.
    Block(NonZeroUsize),
}
