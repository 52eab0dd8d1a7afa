//! The buffer between the controller and one listener.

use std::{collections::VecDeque, num::NonZeroUsize, sync::Arc};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::notification::{Expansion, Notification};

/// Above this many waiting notifications a listener's lag is logged: client-go's
/// `initialBufferSize`.
const WARN_DEPTH: usize = 1024;

/// What happens while a handler is slower than the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenerBuffer {
    /// The buffer grows, every change is told. It holds at most the changes not yet handled; a list,
    /// a resync or a late join counts as one. A warning is logged from 1,024 on.
    #[default]
    Grow,
    /// At most this many notifications wait; then the informer waits, with all its handlers, and in
    /// the end the watch. Nothing is dropped.
    Block(NonZeroUsize),
}

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
    /// Wakes the listener.
    ready: Notify,
    /// Wakes whoever waits for it to be idle.
    idle: Notify,
    /// Wakes the controller.
    room: Arc<Notify>,
}

struct State<K> {
    waiting: VecDeque<Notification<K>>,
    /// What the listener is telling.
    telling: Telling,
    /// Notifications of a resync that wait or are being told.
    resyncs: usize,
    closing: Option<Closing>,
    /// Whether the listener has ended.
    ended: bool,
    discarded: u64,
    warned: bool,
    /// How many notifications were pushed, and how many of them were told; for whoever waits.
    pushed: u64,
    finished: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Telling {
    Nothing,
    News,
    Resync,
}

impl<K> State<K> {
    /// The listener has told what it took.
    fn told(&mut self) {
        let told = std::mem::replace(&mut self.telling, Telling::Nothing);
        self.resyncs -= usize::from(told == Telling::Resync);
        self.finished += u64::from(told != Telling::Nothing);
    }
}

impl<K> Buffer<K> {
    pub(crate) fn new(policy: ListenerBuffer, name: Arc<str>, room: Arc<Notify>) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                telling: Telling::Nothing,
                resyncs: 0,
                closing: None,
                ended: false,
                discarded: 0,
                warned: false,
                pushed: 0,
                finished: 0,
            }),
            policy,
            name,
            ready: Notify::new(),
            idle: Notify::new(),
            room,
        }
    }

    pub(crate) fn push(&self, notification: Notification<K>) {
        let mut state = self.state.lock();
        if state.closing.is_some() || state.ended {
            return;
        }
        state.resyncs += usize::from(notification.is_resync());
        state.waiting.push_back(notification);
        state.pushed += 1;
        let depth = state.waiting.len();
        let warn = depth > WARN_DEPTH && !std::mem::replace(&mut state.warned, true);
        drop(state);
        self.ready.notify_one();
        if warn {
            tracing::warn!(handler = %self.name, depth, "a handler is slower than its events");
        }
    }

    /// How many more notifications fit.
    pub(crate) fn room(&self) -> usize {
        match self.policy {
            ListenerBuffer::Grow => usize::MAX,
            ListenerBuffer::Block(capacity) => {
                let state = self.state.lock();
                if state.closing.is_some() || state.ended {
                    return usize::MAX;
                }
                capacity.get().saturating_sub(state.waiting.len())
            }
        }
    }

    /// The next notification, once there is one; `None` when the listener shall end.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing.
    pub(crate) async fn next(&self) -> Option<Expansion<K>> {
        loop {
            let ready = self.ready.notified();
            {
                let mut state = self.state.lock();
                state.told();
                if state.closing == Some(Closing::Discard) {
                    return None;
                }
                if let Some(notification) = state.waiting.pop_front() {
                    state.telling = if notification.is_resync() {
                        Telling::Resync
                    } else {
                        Telling::News
                    };
                    state.warned &= state.waiting.len() > WARN_DEPTH / 2;
                    drop(state);
                    self.idle.notify_waiters();
                    if matches!(self.policy, ListenerBuffer::Block(_)) {
                        self.room.notify_one();
                    }
                    return Some(Expansion::new(notification));
                }
                if state.closing.is_some() {
                    return None;
                }
                // What a burst took is given back once all of it has been told.
                state.waiting.shrink_to(WARN_DEPTH);
            }
            self.idle.notify_waiters();
            ready.await;
        }
    }

    /// Whether the rest of what is being told shall be discarded.
    pub(crate) fn is_discarding(&self) -> bool {
        self.state.lock().closing == Some(Closing::Discard)
    }

    /// Counts the rest of a notification that nobody will be told of.
    pub(crate) fn discard(&self, events: u64) {
        self.state.lock().discarded += events;
    }

    pub(crate) fn close(&self, closing: Closing) {
        let mut state = self.state.lock();
        if state.closing != Some(Closing::Discard) {
            state.closing = Some(closing);
        }
        if closing == Closing::Discard {
            let rest = std::mem::take(&mut state.waiting);
            drop(state);
            let events = rest
                .into_iter()
                .map(|waiting| Expansion::new(waiting).rest())
                .sum();
            self.discard(events);
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
        state.told();
        drop(state);
        self.idle.notify_waiters();
        self.room.notify_one();
    }

    pub(crate) fn discarded(&self) -> u64 {
        self.state.lock().discarded
    }

    /// How many notifications wait or are being told.
    pub(crate) fn depth(&self) -> usize {
        let state = self.state.lock();
        state.waiting.len() + usize::from(state.telling != Telling::Nothing)
    }

    /// Whether the handler has not heard all of its last resync.
    pub(crate) fn is_resyncing(&self) -> bool {
        self.state.lock().resyncs > 0
    }

    /// Waits until all that has been pushed so far has been handled, or the listener has ended.
    pub(crate) async fn until_idle(&self) {
        let pushed = self.state.lock().pushed;
        loop {
            let idle = self.idle.notified();
            {
                let state = self.state.lock();
                if state.ended || state.finished >= pushed {
                    return;
                }
            }
            idle.await;
        }
    }

    /// Waits until the listener has ended.
    pub(crate) async fn until_ended(&self) {
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
}
