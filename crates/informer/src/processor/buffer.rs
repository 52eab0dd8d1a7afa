//! The buffer between the controller and one listener.

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

/// Above this many waiting notifications a listener's lag is logged: client-go's
/// `initialBufferSize`.
const WARN_DEPTH: usize = 1024;

/// How a listener ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The callback in progress ends, the rest is discarded.
    Discard,
    /// The rest is told, until the deadline.
    Drain(Instant),
}

pub(crate) struct Buffer<K> {
    state: Mutex<State<K>>,
    policy: ListenerBuffer,
    name: Arc<str>,
    /// Where the handler is called, once it listens.
    caller: OnceLock<Caller>,
    /// Wakes the listener.
    ready: Notify,
    /// Wakes whoever waits for it to be idle.
    idle: Notify,
    /// Wakes the controller.
    room: Arc<Notify>,
}

/// A task, or a thread that runs none.
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
    /// What waits is with another thread, which unfolds a list in it. Nothing can be taken meanwhile.
    unfolding: Option<Unfolding>,
    /// What the listener has taken and not told whole.
    telling: Option<Telling>,
    closing: Option<Closing>,
    /// Whether the listener has ended.
    ended: bool,
    synced: bool,
    told: u64,
    coalesced: u64,
    discarded: u64,
    panics: u64,
    warned: bool,
    /// How many tasks wait until something is handled. While there are none, nobody is told so.
    watchers: usize,
}

/// Counts a task that waits until something is handled, for as long as it lives. It is counted before
/// it looks, so whoever changes something while none is counted has nobody to wake.
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

/// What is said of messages while another thread has them.
struct Unfolding {
    messages: usize,
    /// The number and the time of the oldest.
    oldest: Option<(u64, Instant)>,
    has_resync: bool,
}

struct Telling {
    number: u64,
    since: Instant,
    is_resync: bool,
    is_marker: bool,
}

impl<K> State<K> {
    /// The listener has told what it took.
    fn finish(&mut self) {
        if let Some(told) = self.telling.take() {
            self.synced |= told.is_marker;
        }
    }

    /// The number and the time of the oldest message that has not been told whole.
    fn oldest(&self) -> Option<(u64, Instant)> {
        let telling = self.telling.as_ref().map(|told| (told.number, told.since));
        let unfolding = self.unfolding.as_ref();
        telling
            .or_else(|| unfolding.and_then(|unfolding| unfolding.oldest))
            .or_else(|| self.oldest_waiting())
    }

    fn oldest_waiting(&self) -> Option<(u64, Instant)> {
        let oldest = self.waiting.oldest();
        oldest.map(|slot| (slot.number, slot.since))
    }

    fn depth(&self) -> usize {
        let unfolding = self.unfolding.as_ref();
        let away = unfolding.map_or(0, |unfolding| unfolding.messages);
        away + self.waiting.len() + usize::from(self.telling.is_some())
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
                telling: None,
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

    /// Takes what has changed at one moment, in order. The listener is woken once, when all of it is
    /// there.
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
        // What somebody waits to be handled may have come to nothing.
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

    /// Takes what has changed at one moment, as [`push_all`](Self::push_all) does, in order. If a long list has
    /// to be unfolded for it, a thread of the pool for blocking work does that, without the lock.
    ///
    /// # Cancel safety
    /// Dropping the future loses what was to be pushed, if its unfolding has not begun. Nothing may be pushed
    /// until that is done.
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

    /// The handler is called where this is called.
    pub(crate) fn listens_here(&self) {
        // A listener says so once.
        let _ = self.caller.set(Caller::here());
    }

    /// Whether this is called by the handler itself.
    pub(crate) fn is_told_here(&self) -> bool {
        self.caller.get() == Some(&Caller::here())
    }

    /// How many more notifications fit.
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

    /// The next notification, once there is one; `None` when the listener shall end. What was taken
    /// before has been told then.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing.
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
                    state.telling = Some(Telling {
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
                // What a burst took is given back once all of it has been told.
                state.waiting.shrink_to(WARN_DEPTH);
                state.watchers > 0
            };
            if watched {
                self.idle.notify_waiters();
            }
            ready.await;
        }
    }

    /// Whether the next event of what was taken may be told, which is then counted as told; no if the
    /// rest shall be discarded.
    pub(crate) fn may_tell(&self) -> bool {
        let mut state = self.state.lock();
        let may = state.closing != Some(Closing::Discard);
        state.told += u64::from(may);
        may
    }

    /// What was taken has been told.
    pub(crate) fn finish(&self) {
        self.state.lock().finish();
        self.idle.notify_waiters();
    }

    pub(crate) fn panicked(&self) {
        self.state.lock().panics += 1;
    }

    /// Whether the rest of what is being told shall be discarded.
    pub(crate) fn is_discarding(&self) -> bool {
        self.state.lock().closing == Some(Closing::Discard)
    }

    /// Counts the rest of a notification that nobody will be told of.
    pub(crate) fn discard(&self, events: u64) {
        self.state.lock().discarded += events;
    }

    /// Whether it was closed, to be drained perhaps.
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

    /// The listener has ended; nobody need wait for it.
    pub(crate) fn ended(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.finish();
        drop(state);
        self.idle.notify_waiters();
        self.room.notify_one();
    }

    /// How many notifications wait or are being told.
    pub(crate) fn depth(&self) -> usize {
        self.state.lock().depth()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Everything at one moment.
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

    /// Whether the handler has not heard all of its last resync.
    pub(crate) fn is_resyncing(&self) -> bool {
        let state = self.state.lock();
        let unfolding = state.unfolding.as_ref();
        unfolding.is_some_and(|unfolding| unfolding.has_resync)
            || state.waiting.has_resync()
            || state.telling.as_ref().is_some_and(|told| told.is_resync)
    }

    /// Waits until all that has been pushed so far has been handled, or the listener has ended.
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

    /// Waits until the listener has ended.
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

    /// Waits until the listener shall end without telling the rest.
    pub(crate) async fn until_discarding(&self) {
        while !self.is_discarding() {
            self.ready.notified().await;
        }
        // The permit may have been meant for `next`, which looks for itself.
        self.ready.notify_one();
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.state.lock().waiting.capacity()
    }
}
