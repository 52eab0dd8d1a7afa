//! What a listener's buffer does with changes that arrive faster than its handler takes them. Only the
//! choice is here; the buffer carries it out.

use std::num::NonZeroUsize;

/// What happens while a handler is slower than the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerBuffer {
    /// The buffer grows, every change is told. It holds at most the changes not yet handled; a list,
    /// a resync or a late join counts as one. A warning is logged from 1,024 on.
    #[default]
    Grow,
    /// What waits is merged per object: at most one notification of each object waits, beside the one
    /// that is being told, however slow the handler is. States in between are not told, and counted
    /// in [`HandlerStatus::coalesced`](super::HandlerStatus::coalesced).
    ///
    /// | waits | comes | is told |
    /// | --- | --- | --- |
    /// | added | updated | added, with the newest state |
    /// | added | deleted | nothing |
    /// | updated | updated | one update, from what was told last to the newest state |
    /// | updated | deleted | deleted |
    /// | deleted | added | both, one after the other, whatever the uids |
    ///
    /// An object's turn is that of its first change that waits, so one that changes all the time is
    /// not put off for ever; between objects the order of their changes is not kept. A merged update
    /// has the cause of its last change that was not a resync, and a resync of what waits anyway adds
    /// nothing. `Synced` keeps its place behind everything that it comes after.
    ///
    /// A list, a late join or a resync counts as one notification while nothing else waits. When
    /// something does, it is unfolded into one notification per object.
    Coalesce,
    /// At most this many notifications wait, beside `Synced`, what a handler that joins late hears
    /// first, and what the informer needs to have synced (first lists, which are one notification for
    /// each object on a [`DeltaFifo`](crate::queue::DeltaFifo)); then the informer waits, with all its
    /// handlers, and in the end the watch. Nothing is dropped.
    Block(NonZeroUsize),
}
