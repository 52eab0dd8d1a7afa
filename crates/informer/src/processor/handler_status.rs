//! [`HandlerStatus`]: how one handler is getting on, as a value.

use std::{sync::Arc, time::Duration};

use super::ListenerBuffer;

/// How one handler or subscription is getting on, at one moment.
///
/// An event is told or is counted: those that the informer had for a handler are the sum of `told`,
/// `coalesced`, `discarded` and what still waits. (Of a list that is discarded, broken objects count
/// too, which are not told.)
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Its name, as in logs.
    pub name: Arc<str>,
    /// What happens while it is slower than the changes.
    pub buffer: ListenerBuffer,
    /// How many notifications wait for it, with the one it is hearing; a list, a resync or a late join
    /// counts as one.
    pub depth: usize,
    /// For how long the oldest of them has been waiting, since the cache changed, by tokio's clock;
    /// zero if there is none.
    pub lag: Duration,
    /// How many events it was told, with the one it is hearing.
    pub told: u64,
    /// How many events came to nothing, or to one with another, while they waited; only
    /// [`ListenerBuffer::Coalesce`] does that.
    pub coalesced: u64,
    /// How many events were waiting when it was removed, or when the informer stopped.
    pub discarded: u64,
    /// How often it panicked.
    pub panics: u64,
    /// Whether it has handled everything that was there when it began.
    pub synced: bool,
}
