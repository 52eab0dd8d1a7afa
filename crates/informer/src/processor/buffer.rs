//! [`Buffer`] is the queue of notifications between the controller and one listener, which is a handler or a
//! subscription.
//!
//! Guarantees: the listener receives notifications in order. Each event that leaves the queue is counted as
//! delivered, coalesced or discarded. Pushing does not wait for the handler. The buffer does not call the
//! handler.

use std::{
    sync::{Arc, OnceLock},
    thread::{self, ThreadId},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, task, time::Instant};

use super::{
    handler_status::HandlerStatus,
    listener_buffer::ListenerBuffer,
    notification::{Expansion, Notification},
    waiting::Waiting,
};
use crate::{
    event_handler::Event,
    offload::{OFFLOADED_MIN, offload},
};

/// Queue length above which a `Grow` or `Block` buffer logs a warning.
///
/// Equal to client-go's `initialBufferSize`.
const WARN_DEPTH: usize = 1024;

/// Determines what a closed buffer does with its waiting notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Waiting notifications are discarded, but the callback in progress completes.
    Discard,
    /// Waiting notifications are delivered until this deadline, and new ones are rejected.
    Drain(Instant),
}

pub(crate) struct Buffer<K> {
    state: Mutex<State<K>>,
    policy: ListenerBuffer,
    name: Arc<str>,
    /// The task or thread that calls the handler, once started.
    caller: OnceLock<Caller>,
    /// Wakes the listener when a notification was pushed or the buffer was closed.
    ready: Notify,
    /// Wakes tasks that wait until the listener has handled a notification or has ended.
    idle: Notify,
    /// Wakes the controller when a full buffer can accept a notification again.
    room: Arc<Notify>,
}

/// The tokio task that calls a handler, or the thread if no tokio task calls the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Task(task::Id),
    Thread(ThreadId),
}

impl Caller {
    fn here() -> Self {
        task::try_id().map_or_else(|| Self::Thread(thread::current().id()), Self::Task)
    }
}

struct State<K> {
    waiting: Waiting<K>,
    /// Set while another thread has taken the notifications out of `waiting`, to merge new notifications with
    /// them. The listener receives no notification in the meantime.
    unfolding: Option<Unfolding>,
    /// The notification whose events the listener is receiving; `None` between notifications.
    call: Option<CallInProgress>,
    closing: Option<Closing>,
    /// Whether the listener's receiving end (`Listening`) was dropped.
    ended: bool,
    synced: bool,
    told: u64,
    coalesced: u64,
    discarded: u64,
    panics: u64,
    warned: bool,
    /// Number of tasks that wait on `idle`.
    watchers: usize,
}

/// Counts one waiting task in [`State::watchers`] until dropped.
///
/// A task must create this value before it reads the state. Otherwise it could miss a wake-up, because the
/// buffer may skip wake-ups while `watchers` is 0.
struct Watching<'a, K>(&'a Buffer<K>);

impl<'a, K> Watching<'a, K> {
    fn new(buffer: &'a Buffer<K>) -> Self {
        buffer.state.lock().watchers += 1;
        Self(buffer)
    }
}

impl<K> Drop for Watching<'_, K> {
    fn drop(&mut self) {
        self.0.state.lock().watchers -= 1;
    }
}

/// Summary of the notifications that another thread has taken out of [`State::waiting`].
///
/// The buffer uses this summary until the thread has merged the notifications and puts them back.
struct Unfolding {
    messages: usize,
    /// Sequence number of the oldest notification, and the time when the cache applied the notification's
    /// changes.
    oldest: Option<(u64, Instant)>,
    has_resync: bool,
}

struct CallInProgress {
    number: u64,
    since: Instant,
    is_resync: bool,
    is_marker: bool,
}

impl<K> State<K> {
    fn finish(&mut self) {
        if let Some(call) = self.call.take() {
            self.synced |= call.is_marker;
        }
    }

    /// Returns the sequence number and time ([`Unfolding::oldest`]) of the oldest undelivered notification.
    fn oldest(&self) -> Option<(u64, Instant)> {
        let call = self.call.as_ref().map(|call| (call.number, call.since));
        let unfolding = self.unfolding.as_ref();
        call.or_else(|| unfolding.and_then(|unfolding| unfolding.oldest))
            .or_else(|| self.oldest_waiting())
    }

    fn oldest_waiting(&self) -> Option<(u64, Instant)> {
        let oldest = self.waiting.oldest();
        oldest.map(|slot| (slot.number, slot.since))
    }

    fn depth(&self) -> usize {
        let unfolding = self.unfolding.as_ref();
        let away = unfolding.map_or(0, |unfolding| unfolding.messages);
        away + self.waiting.len() + usize::from(self.call.is_some())
    }

    fn lag(&self) -> Duration {
        let now = Instant::now();
        self.oldest().map_or(Duration::ZERO, |(_, since)| {
            now.saturating_duration_since(since)
        })
    }
}

impl<K> Buffer<K> {
    pub(crate) fn new(policy: ListenerBuffer, name: Arc<str>, room: Arc<Notify>) -> Self {
        let waiting = match policy {
            ListenerBuffer::Grow | ListenerBuffer::Block(_) => Waiting::each(),
            ListenerBuffer::Coalesce => Waiting::merged(),
        };
        Self {
            state: Mutex::new(State {
                waiting,
                unfolding: None,
                call: None,
                closing: None,
                ended: false,
                synced: false,
                told: 0,
                coalesced: 0,
                discarded: 0,
                panics: 0,
                warned: false,
                watchers: 0,
            }),
            policy,
            name,
            caller: OnceLock::new(),
            ready: Notify::new(),
            idle: Notify::new(),
            room,
        }
    }

    pub(crate) fn push(&self, notification: Notification<K>) {
        self.push_all([notification], Instant::now());
    }

    /// Appends notifications, whose changes were applied to the cache at `since`.
    pub(super) fn push_all(
        &self,
        notifications: impl IntoIterator<Item = Notification<K>>,
        since: Instant,
    ) {
        let mut state = self.state.lock();
        if state.closing.is_some() || state.ended {
            return;
        }
        let before = (state.waiting.pushed(), state.coalesced);
        for notification in notifications {
            state.coalesced += state.waiting.push(notification, since);
        }
        if state.waiting.pushed() == before.0 {
            return;
        }
        // Merging may have removed a message that a watcher waits for.
        let handled = state.coalesced > before.1 && state.watchers > 0;
        let depth = state.waiting.len();
        let warn = self.policy != ListenerBuffer::Coalesce
            && depth > WARN_DEPTH
            && !std::mem::replace(&mut state.warned, true);
        drop(state);
        if handled {
            self.idle.notify_waiters();
        }
        self.ready.notify_one();
        if warn {
            tracing::warn!(handler = %self.name, depth, "a handler is slower than its events");
        }
    }

    /// Appends notifications, whose changes were applied to the cache at `since`.
    ///
    /// In a `Coalesce` buffer, another thread merges the notifications if many single events must be
    /// processed. The caller must not push other notifications until the future completes.
    ///
    /// # Cancel safety
    /// If the future is dropped before the merge starts, the notifications are lost. A merge that has started
    /// completes, and the notifications are appended.
    pub(super) async fn deliver(
        self: &Arc<Self>,
        notifications: impl IntoIterator<Item = Notification<K>>,
        since: Instant,
    ) where
        K: Send + Sync + 'static,
    {
        if self.policy != ListenerBuffer::Coalesce {
            self.push_all(notifications, since);
            return;
        }
        let notifications: Vec<_> = notifications.into_iter().collect();
        let unfolded = |state: &State<K>| {
            let each = notifications.iter();
            let each = each.map(|pushed| state.waiting.unfolded_by(pushed));
            each.max().unwrap_or_default()
        };
        if unfolded(&self.state.lock()) < OFFLOADED_MIN {
            self.push_all(notifications, since);
            return;
        }
        let buffer = Arc::clone(self);
        offload(move || buffer.unfold(notifications, since)).await;
    }

    fn unfold(&self, notifications: Vec<Notification<K>>, since: Instant) {
        let mut state = self.state.lock();
        if state.closing.is_some() || state.ended {
            return;
        }
        state.unfolding = Some(Unfolding {
            messages: state.waiting.len(),
            oldest: state.oldest_waiting(),
            has_resync: state.waiting.has_resync(),
        });
        let mut waiting = state.waiting.take();
        drop(state);
        let mut never_told = 0;
        for notification in notifications {
            never_told += waiting.push(notification, since);
        }
        let mut state = self.state.lock();
        state.unfolding = None;
        state.coalesced += never_told;
        if state.closing == Some(Closing::Discard) || state.ended {
            state.discarded += waiting.events();
        } else {
            std::mem::swap(&mut state.waiting, &mut waiting);
        }
        drop(state);
        self.idle.notify_waiters();
        self.ready.notify_one();
    }

    /// Records the current task or thread as the one that calls the handler.
    pub(crate) fn listens_here(&self) {
        // Set only once per buffer.
        let _ = self.caller.set(Caller::here());
    }

    /// Returns whether the current task or thread calls this buffer's handler. If so, a wait for the handler
    /// would deadlock.
    pub(crate) fn is_told_here(&self) -> bool {
        self.caller.get() == Some(&Caller::here())
    }

    /// Returns how many notifications the buffer can still accept; `usize::MAX` if unlimited.
    pub(crate) fn room(&self) -> usize {
        match self.policy {
            ListenerBuffer::Grow | ListenerBuffer::Coalesce => usize::MAX,
            ListenerBuffer::Block(capacity) => {
                let state = self.state.lock();
                if state.closing.is_some() || state.ended {
                    return usize::MAX;
                }
                capacity.get().saturating_sub(state.waiting.len())
            }
        }
    }

    /// Waits for the next notification and returns its events, or `None` if the listener must end.
    ///
    /// Each call also records that the previous notification has been delivered.
    ///
    /// # Cancel safety
    /// This method is cancel safe: no notification is lost.
    pub(crate) async fn next(&self) -> Option<Expansion<K>> {
        loop {
            let ready = self.ready.notified();
            let watched = {
                let mut state = self.state.lock();
                state.finish();
                if state.closing == Some(Closing::Discard) {
                    return None;
                }
                if let Some(slot) = state.waiting.pop() {
                    state.call = Some(CallInProgress {
                        number: slot.number,
                        since: slot.since,
                        is_resync: slot.notification.is_resync(),
                        is_marker: matches!(slot.notification, Notification::One(Event::Synced)),
                    });
                    state.warned &= state.waiting.len() > WARN_DEPTH / 2;
                    let watched = state.watchers > 0;
                    drop(state);
                    if watched {
                        self.idle.notify_waiters();
                    }
                    if matches!(self.policy, ListenerBuffer::Block(_)) {
                        self.room.notify_one();
                    }
                    return Some(Expansion::new(slot.notification));
                }
                if state.closing.is_some() && state.unfolding.is_none() {
                    return None;
                }
                // Frees the memory of a burst once all of it has been delivered.
                state.waiting.shrink_to(WARN_DEPTH);
                state.watchers > 0
            };
            if watched {
                self.idle.notify_waiters();
            }
            ready.await;
        }
    }

    /// Returns whether the listener may deliver its next event. If so, counts the event as delivered.
    ///
    /// Returns false after the buffer was closed with [`Closing::Discard`]. The listener must then discard
    /// the undelivered events of its current notification.
    pub(crate) fn may_tell(&self) -> bool {
        let mut state = self.state.lock();
        let may = state.closing != Some(Closing::Discard);
        state.told += u64::from(may);
        may
    }

    /// Records that the current notification has been delivered, and wakes the waiting tasks.
    pub(crate) fn finish(&self) {
        self.state.lock().finish();
        self.idle.notify_waiters();
    }

    pub(crate) fn panicked(&self) {
        self.state.lock().panics += 1;
    }

    pub(crate) fn is_discarding(&self) -> bool {
        self.state.lock().closing == Some(Closing::Discard)
    }

    pub(crate) fn discard(&self, events: u64) {
        self.state.lock().discarded += events;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closing.is_some()
    }

    pub(crate) fn close(&self, closing: Closing) {
        let mut state = self.state.lock();
        if state.closing != Some(Closing::Discard) {
            state.closing = Some(closing);
        }
        if closing == Closing::Discard {
            let rest = state.waiting.take();
            state.discarded += rest.events();
            drop(state);
        } else {
            drop(state);
        }
        self.ready.notify_one();
        self.room.notify_one();
    }

    /// Records that the listener has ended, and wakes the waiting tasks.
    pub(crate) fn ended(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.finish();
        drop(state);
        self.idle.notify_waiters();
        self.room.notify_one();
    }

    /// Returns the number of undelivered notifications, including the one in progress.
    pub(crate) fn depth(&self) -> usize {
        self.state.lock().depth()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Returns all counters of the buffer, read at the same time.
    pub(crate) fn status(&self) -> HandlerStatus {
        let state = self.state.lock();
        HandlerStatus {
            name: Arc::clone(&self.name),
            buffer: self.policy,
            depth: state.depth(),
            lag: state.lag(),
            told: state.told,
            coalesced: state.coalesced,
            discarded: state.discarded,
            panics: state.panics,
            synced: state.synced,
        }
    }

    /// Returns whether a resync is waiting in the buffer or is being delivered.
    pub(crate) fn is_resyncing(&self) -> bool {
        let state = self.state.lock();
        let unfolding = state.unfolding.as_ref();
        unfolding.is_some_and(|unfolding| unfolding.has_resync)
            || state.waiting.has_resync()
            || state.call.as_ref().is_some_and(|call| call.is_resync)
    }

    /// Waits until the listener has ended or has handled all notifications pushed before this call.
    pub(crate) async fn until_idle(&self) {
        let _watching = Watching::new(self);
        let pushed = self.state.lock().waiting.pushed();
        loop {
            let idle = self.idle.notified();
            {
                let state = self.state.lock();
                let handled = state.oldest().is_none_or(|(number, _)| number >= pushed);
                if state.ended || handled {
                    return;
                }
            }
            idle.await;
        }
    }

    pub(crate) async fn until_ended(&self) {
        let _watching = Watching::new(self);
        loop {
            let idle = self.idle.notified();
            if self.state.lock().ended {
                return;
            }
            idle.await;
        }
    }

    pub(crate) async fn until_discarding(&self) {
        while !self.is_discarding() {
            self.ready.notified().await;
        }
        // Passes the wake-up on to `next`, because it may have been intended for that method.
        self.ready.notify_one();
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.state.lock().waiting.capacity()
    }
}
