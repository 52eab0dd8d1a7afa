//! The first-level cache: how far back a watch may start, and who is watching.
//!
//! Guarantees:
//! - a watch that starts at or above [`Cache::horizon`] misses nothing; a lower start is too old;
//! - an event costs nothing for watchers whose field selector or namespace rules it out ([`watchers`]);
//! - every watcher has a bounded queue ([`inbox`]); one that does not keep up is closed, without an error event, and holds back nobody;
//! - events, bookmarks and injected bytes reach a watcher in the order in which they were sent.
//!
//! The events themselves are storage's; the cache decides how many of them watches may still ask for.

mod inbox;
mod watchers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::request_log::LoggedRequest;
use crate::selector::Selection;
use crate::storage::{Event, EventType, LOG_EVENTS_MAX};

use inbox::{Refused, Sender};
use watchers::Watchers;

pub(crate) use inbox::{Receiver, inbox};

/// Where an adaptive window starts and what it never falls below (`defaultLowerBoundCapacity` in `watch_cache_history.go`).
const ADAPTIVE_EVENTS_MIN: usize = 100;

/// The age that an adaptive window wants to reach back (`DefaultEventFreshDuration` in `cacher.go`).
const ADAPTIVE_AGE: Duration = Duration::from_secs(75);

/// Open watches per server at most: ten times what a node of a large cluster holds, and memory for their queues only when used.
pub(crate) const WATCHES_MAX: usize = 100_000;

/// How many events of a kind a watch may start behind the present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchCache {
    /// As many as happened in the last 75 seconds, between 100 and 102,400, as in Kubernetes.
    #[default]
    Adaptive,
    /// The last so many, as far as storage remembers them (five minutes, and 102,400); `Size(0)` is [`WatchCache::Off`].
    ///
    /// A Kubernetes API server has not done so since 1.19: there any size but 0 means [`WatchCache::Adaptive`].
    Size(usize),
    /// No watch cache, as with `--watch-cache=false`, or `#0` among `--watch-cache-sizes`: lists and watches are served by storage.
    ///
    /// A list at `"0"` honours `limit`, a watch may start as far back as storage remembers, a revision in the future is refused without waiting for it, and the only bookmark is the one that closes the initial events.
    Off,
}

/// The watch cache of one collection.
pub(crate) struct Cache {
    policy: WatchCache,
    /// How many events the window holds, if it is bounded.
    capacity: usize,
    /// Every event above it may be delivered.
    horizon: u64,
    watchers: Watchers,
}

/// One watcher's number, unique in its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatcherId(pub(crate) u64);

/// One open watch, seen from the side that sends.
pub(crate) struct Watcher {
    pub(crate) filter: Filter,
    /// Whether it asked for bookmarks.
    pub(crate) bookmarks: bool,
    /// What faults know it by.
    pub(crate) request: Arc<LoggedRequest>,
    pub(crate) sender: Sender,
}

/// What a watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// `namespace/`, or empty for all.
    pub(crate) prefix: String,
    pub(crate) selection: Selection,
    /// Events up to this revision are known to the client, or not wanted by it.
    pub(crate) after: u64,
}

/// What a watcher is sent.
#[derive(Debug)]
pub(crate) enum Delivery {
    Event(Arc<Event>, EventType),
    Bookmark(u64),
    /// Bytes that a fault injected.
    Raw(Bytes),
}

// === impl Delivery ===

impl Delivery {
    /// That of an event.
    fn revision(&self) -> Option<u64> {
        match self {
            Delivery::Event(event, _) => Some(event.revision),
            Delivery::Bookmark(_) | Delivery::Raw(_) => None,
        }
    }
}

// === impl WatchCache ===

impl WatchCache {
    pub(crate) fn is_off(self) -> bool {
        matches!(self, WatchCache::Off | WatchCache::Size(0))
    }
}

// === impl Filter ===

impl Filter {
    /// What this watch is told of an event; `None` if it does not concern it.
    pub(crate) fn event_type(&self, event: &Event) -> Option<EventType> {
        if event.revision <= self.after || !event.key().starts_with(&self.prefix) {
            return None;
        }
        let before = event
            .old
            .as_ref()
            .is_some_and(|old| self.selection.matches(old.selectable()));
        let after = event
            .new
            .as_ref()
            .is_some_and(|new| self.selection.matches(new.selectable()));
        match (before, after) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }
}

// === impl Cache ===

impl Cache {
    pub(crate) fn new(policy: WatchCache) -> Cache {
        let capacity = match policy {
            WatchCache::Adaptive => ADAPTIVE_EVENTS_MIN,
            WatchCache::Size(size) => size,
            WatchCache::Off => 0,
        };
        Cache {
            policy,
            capacity,
            horizon: 0,
            watchers: Watchers::default(),
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.policy.is_off()
    }

    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    pub(crate) fn watchers(&self) -> usize {
        self.watchers.len()
    }

    /// Forgets all events up to a revision.
    pub(crate) fn forget(&mut self, revision: u64) {
        self.horizon = revision;
    }

    /// Lets the window follow a new event: `log` is storage's, newest last, and reaches back to `log_horizon`.
    pub(crate) fn advance(&mut self, log: &VecDeque<Arc<Event>>, log_horizon: u64) {
        self.horizon = self.horizon.max(log_horizon);
        if self.is_off() {
            return;
        }
        if self.policy == WatchCache::Adaptive && self.overflow(log).is_some() {
            self.adapt(log);
        }
        if let Some(revision) = self.overflow(log) {
            self.horizon = revision;
        }
    }

    /// The revision of the newest event for which the window has no room, if there is one still in it.
    fn overflow(&self, log: &VecDeque<Arc<Event>>) -> Option<u64> {
        let revision = nth_newest(log, self.capacity)?.revision;
        (revision > self.horizon).then_some(revision)
    }

    /// Grows a full window whose oldest event is young, shrinks one whose newest quarter is old.
    fn adapt(&mut self, log: &VecDeque<Arc<Event>>) {
        let Some(newest) = log.back() else { return };
        let age = |event: &Arc<Event>| newest.at.saturating_duration_since(event.at);
        if nth_newest(log, self.capacity - 1).is_some_and(|oldest| age(oldest) < ADAPTIVE_AGE) {
            self.capacity = (self.capacity * 2).min(LOG_EVENTS_MAX);
        } else if nth_newest(log, self.capacity / 4).is_some_and(|event| age(event) > ADAPTIVE_AGE)
        {
            self.capacity = (self.capacity / 2).max(ADAPTIVE_EVENTS_MIN);
        }
    }

    /// Tells every watcher that an event concerns.
    pub(crate) fn dispatch(&mut self, event: &Arc<Event>) {
        self.watchers.retain_concerned(event, |watcher| {
            watcher.filter.event_type(event).is_none_or(|event_type| {
                watcher.send(Delivery::Event(Arc::clone(event), event_type))
            })
        });
    }

    /// Sends every watcher of the wanted requests something of the same kind; bookmarks only to those that asked for them.
    pub(crate) fn send_to(
        &mut self,
        wanted: impl Fn(&LoggedRequest) -> bool,
        make: impl Fn() -> Delivery,
    ) {
        self.watchers
            .retain(|watcher| !wanted(&watcher.request) || watcher.send(make()));
    }

    /// Sends one watcher a bookmark, if it is still there.
    pub(crate) fn bookmark(&mut self, id: WatcherId, revision: u64) {
        self.watchers
            .retain_one(id, |watcher| watcher.send(Delivery::Bookmark(revision)));
    }

    pub(crate) fn open(&mut self, id: WatcherId, watcher: Watcher) {
        self.watchers.insert(id, watcher);
    }

    /// Closes the watchers of the wanted requests, as one that is too slow is closed.
    pub(crate) fn close_wanted(&mut self, wanted: impl Fn(&LoggedRequest) -> bool) {
        self.watchers.retain(|watcher| !wanted(&watcher.request));
    }

    /// Closes the watchers that have not read an event up to this revision, and takes from them what they have not read.
    pub(crate) fn close_behind(&mut self, horizon: u64) {
        self.watchers.retain(|watcher| {
            let is_behind = watcher.sender.waits_since(horizon);
            if is_behind {
                watcher.sender.abandon();
            }
            !is_behind
        });
    }

    pub(crate) fn close(&mut self, id: WatcherId) {
        self.watchers.remove(id);
    }
}

// === impl Watcher ===

impl Watcher {
    /// Whether the watcher is kept: one whose queue is full or that is not read any more is not.
    fn send(&self, delivery: Delivery) -> bool {
        if let Delivery::Bookmark(revision) = delivery {
            // One from before the watch's start would lead its reader back; and no bookmark is worth a watch, so one that is full is skipped.
            return !self.bookmarks
                || revision < self.filter.after
                || self.sender.send(delivery) != Err(Refused::Gone);
        }
        self.sender.send(delivery).is_ok()
    }
}

fn nth_newest(log: &VecDeque<Arc<Event>>, back: usize) -> Option<&Arc<Event>> {
    log.get(log.len().checked_sub(back + 1)?)
}

#[cfg(test)]
mod tests;
