//! [`Listener`]: one handler or subscription, from its registration to its end.
//!
//! Its buffer has two ends. The processor has the filling end, [`Listener`]; the handler's task, or the
//! subscription, has the reading end, [`Listening`]. Dropping either ends the other:
//!
//! | what happens | the buffer |
//! | --- | --- |
//! | it joins | begins with what the cache has, and `Synced` if that is complete |
//! | a batch was applied | gets what the listener hears of it |
//! | the listener is removed, or never joins, or the informer is gone | is closed: the callback in progress ends, the rest is discarded and counted |
//! | the informer stops with a deadline | is drained: what it has is told until then |
//! | the reading end is dropped, also before its first poll | has ended: nothing waits for it, and it takes nothing more |

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{
    Buffer, Closing,
    notification::{Expansion, Notification},
    prefetch::Prefetch,
    telling::Telling,
};
use crate::{
    event_handler::{Event, EventHandler},
    indexer::{Cause, Change, Snapshot},
};

/// Identifies the listeners of one informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListenerId(pub(crate) u64);

/// Of which changes a listener hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Of objects that changed; of one that a list or a resync brings back as it was, only when its resync is
    /// due. It hears the cache when it joins.
    Changes,
    /// Also of every object of a list and every resync. It hears nothing when it joins: it knew before what
    /// the cache has then.
    All,
}

/// The filling end.
pub(crate) struct Listener<K> {
    pub(crate) id: ListenerId,
    pub(crate) buffer: Arc<Buffer<K>>,
    /// The resync period it asks for; `None` for the informer's default.
    pub(crate) resync: Option<Duration>,
    pub(crate) delivery: Delivery,
    /// Whether a task of the informer reads the buffer; that of a subscription is read by its owner.
    pub(crate) has_task: bool,
}

impl<K> Listener<K> {
    /// Fills the buffer with what it hears first.
    pub(super) fn join(&self, cache: Snapshot<K>, synced: bool) {
        if cache.told_after(None).is_some() && self.delivery == Delivery::Changes {
            self.buffer.push(Notification::Join(cache));
        }
        if synced {
            self.buffer.push(Notification::One(Event::Synced));
        }
    }

    /// Whether it hears of objects that a list brings back as they were.
    pub(super) fn hears_unchanged(&self, is_due: bool) -> bool {
        self.delivery == Delivery::All || is_due
    }

    /// What it hears of a change of one object, if it hears of it.
    pub(super) fn event(&self, change: &Change<K>, is_due: bool) -> Option<Event<K>> {
        match change {
            Change::Added {
                object,
                in_initial_list,
            } => Some(Event::Added {
                object: object.clone(),
                in_initial_list: *in_initial_list,
            }),
            Change::Updated { old, new, cause } => {
                let hears = match cause {
                    Cause::Resync => is_due,
                    Cause::Relist if old.is_unchanged(new) => self.hears_unchanged(is_due),
                    Cause::Relist | Cause::Watch => true,
                };
                hears.then(|| Event::Updated {
                    old: old.clone(),
                    new: new.clone(),
                    cause: *cause,
                })
            }
            Change::Deleted(deleted) => Some(Event::Deleted(deleted.clone())),
            Change::Replaced { .. } | Change::Resync(_) | Change::Listed(_) => None,
        }
    }
}

impl<K> Drop for Listener<K> {
    fn drop(&mut self) {
        // What is being drained is told to its end: a subscription for as long as its owner polls.
        if !self.buffer.is_closed() {
            self.buffer.close(Closing::Discard);
        }
    }
}

/// The reading end.
pub(crate) struct Listening<K> {
    buffer: Arc<Buffer<K>>,
    /// What was taken and is not told whole.
    taken: Option<Expansion<K>>,
    prefetch: Prefetch<K>,
}

impl<K: Send + Sync + 'static> Listening<K> {
    pub(crate) fn new(buffer: &Arc<Buffer<K>>) -> Self {
        Self {
            buffer: Arc::clone(buffer),
            taken: None,
            prefetch: Prefetch::default(),
        }
    }

    /// The next event, once there is one; `None` when the listener shall end. The one before has been
    /// handled then.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing.
    pub(crate) async fn next(&mut self) -> Option<Event<K>> {
        loop {
            if self.taken.is_none() {
                let taken = self.taken.insert(self.buffer.next().await?);
                self.prefetch.begin(taken);
            }
            let Some(taken) = &mut self.taken else {
                continue;
            };
            match self.prefetch.next(taken) {
                Some(event) if self.buffer.may_tell() => return Some(event),
                Some(_) => {
                    let rest = self.prefetch.rest() + taken.rest();
                    self.buffer.discard(1 + rest);
                    self.taken = None;
                }
                None => self.taken = None,
            }
        }
    }
}

impl<K> Drop for Listening<K> {
    fn drop(&mut self) {
        self.buffer.ended();
    }
}

/// Where a listener reports that its handler has handled what was in the cache at the beginning.
pub(crate) struct SyncReport {
    /// For readers that take no lock.
    handled: Arc<AtomicBool>,
    waiters: watch::Sender<bool>,
}

impl SyncReport {
    pub(crate) fn new() -> (Self, Arc<AtomicBool>, watch::Receiver<bool>) {
        let (handled, (waiters, synced)) = (Arc::default(), watch::channel(false));
        let report = Self {
            handled: Arc::clone(&handled),
            waiters,
        };
        (report, handled, synced)
    }
}

/// Tells a handler everything that comes into its buffer, until that is closed.
pub(crate) async fn listen<K, H>(
    handler: H,
    listening: Listening<K>,
    name: Arc<str>,
    synced: SyncReport,
) where
    K: Send + Sync + 'static,
    H: EventHandler<K>,
{
    // In this order the handler is dropped before its end is reported, however it ends.
    let mut listening = listening;
    listening.prefetch = Prefetch::here();
    let mut telling = Telling::new(handler, name);
    listening.buffer.listens_here();
    while let Some(event) = listening.next().await {
        let is_synced = matches!(event, Event::Synced);
        telling.tell(event, &listening.buffer).await;
        if is_synced {
            // First, so that a task woken by the other finds it in the status too.
            listening.buffer.finish();
            synced.handled.store(true, Ordering::Release);
            synced.waiters.send_replace(true);
        }
        // A handler that never waits must not keep the thread from all other tasks.
        tokio::task::coop::consume_budget().await;
    }
}
