//! [`Listener`] and [`Listening`] connect the processor to one listener, which is a handler or a
//! subscription.
//!
//! Each listener has a buffer with two ends. The processor owns the sending end, [`Listener`]. The handler's
//! task, or the subscription, owns the receiving end, [`Listening`].
//!
//! Guarantees:
//!
//! - When the listener is added, the buffer receives the initial events; see [`Delivery`].
//! - When the sending end is dropped, the buffer is closed and the waiting events are discarded. The
//!   handler's status counts the discarded events. The callback in progress runs to its end. If the buffer
//!   was already closed with a deadline, the waiting events are still delivered until the deadline.
//! - When the receiving end is dropped, even before the first poll, the buffer accepts no more events. Tasks
//!   that wait for the end of the listener are woken.

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
    calls::Calls,
    notification::{Events, Expansion, Notification},
};
use crate::{
    event_handler::{Event, EventHandler},
    indexer::{Cause, Change, Snapshot},
};

/// Number that identifies a listener among the listeners of one informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ListenerId(pub(crate) u64);

/// Determines which changes a listener receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The objects in the cache when the listener is added, then each changed object.
    ///
    /// The listener receives the unchanged objects of a list or a resync only if the resync timer has
    /// selected this listener.
    Changes,
    /// Each changed object, and the unchanged objects of each new list. The objects that are already in the
    /// cache when the listener is added are not delivered at that time.
    All,
}

/// The sending end of a listener's buffer, owned by the processor; dropping it closes the buffer.
pub(crate) struct Listener<K> {
    pub(crate) id: ListenerId,
    pub(crate) buffer: Arc<Buffer<K>>,
    /// Resync period that the handler requested; `None` selects the informer's default period.
    pub(crate) resync: Option<Duration>,
    pub(crate) delivery: Delivery,
    /// Whether the listener is a handler with its own task. False for a subscription, which the program
    /// polls.
    pub(crate) has_task: bool,
}

impl<K> Listener<K> {
    /// Adds the initial events to the buffer.
    ///
    /// With [`Delivery::Changes`], the objects of `cache` are added. With [`Delivery::All`], no objects are
    /// added. If `synced` is true, [`Event::Synced`] is added last.
    pub(super) fn join(&self, cache: Snapshot<K>, synced: bool) {
        if cache.told_after(None).is_some() && self.delivery == Delivery::Changes {
            self.buffer.push(Notification::Join(cache));
        }
        if synced {
            self.buffer.push(Notification::One(Event::Synced));
        }
    }

    /// Returns whether the listener receives a list's unchanged objects. `is_due` is true if the listener's
    /// resync is due.
    pub(super) fn hears_unchanged(&self, is_due: bool) -> bool {
        self.delivery == Delivery::All || is_due
    }

    /// Returns the event that the listener receives for a change, if any. `is_due` is true if the listener's
    /// resync is due.
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
        // A drain continues: a subscription delivers the rest while its owner polls.
        if !self.buffer.is_closed() {
            self.buffer.close(Closing::Discard);
        }
    }
}

/// The receiving end of a listener's buffer; dropping it ends the listener.
pub(crate) struct Listening<K, E = Expansion<K>> {
    buffer: Arc<Buffer<K>>,
    /// Undelivered events of the last message that was removed from the buffer.
    events: E,
}

impl<K: Send + Sync + 'static, E: Events<K> + Send> Listening<K, E> {
    pub(crate) fn new(buffer: &Arc<Buffer<K>>, events: E) -> Self {
        Self {
            buffer: Arc::clone(buffer),
            events,
        }
    }

    /// Returns the next event, or `None` if no more events follow.
    ///
    /// The first poll of the future confirms that the previous event was handled.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub(crate) async fn next(&mut self) -> Option<Event<K>> {
        loop {
            match self.events.next() {
                Some(event) if self.buffer.may_tell() => return Some(event),
                Some(_) => {
                    self.buffer.discard(1 + self.events.rest());
                    self.events.begin(Expansion::default());
                }
                None => self.events.begin(self.buffer.next().await?),
            }
        }
    }
}

impl<K, E> Drop for Listening<K, E> {
    fn drop(&mut self) {
        self.buffer.ended();
    }
}

/// Reports to a handler's registration that the handler has handled the `Synced` event.
pub(crate) struct SyncReport {
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

/// Calls a handler with each event of the handler's buffer.
///
/// After the handler has handled the `Synced` event, reports this to the handler's registration.
pub(crate) async fn listen<K, E, H>(
    handler: H,
    listening: Listening<K, E>,
    name: Arc<str>,
    synced: SyncReport,
) where
    K: Send + Sync + 'static,
    E: Events<K> + Send,
    H: EventHandler<K>,
{
    // Declaration order: the handler is dropped before `listening`, which reports its end.
    let mut listening = listening;
    let mut calls = Calls::new(handler, name);
    listening.buffer.listens_here();
    while let Some(event) = listening.next().await {
        let is_synced = matches!(event, Event::Synced);
        calls.call(event, &listening.buffer).await;
        if is_synced {
            // The status is updated before the waiters wake, so that they find it synced.
            listening.buffer.finish();
            synced.handled.store(true, Ordering::Release);
            synced.waiters.send_replace(true);
        }
        // A handler that is always ready must not starve other tasks of the thread.
        tokio::task::coop::consume_budget().await;
    }
}
