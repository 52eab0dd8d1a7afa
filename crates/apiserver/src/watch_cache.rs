//! Limits the past events that watches can request, and delivers new events to the open watches.
//!
//! Guarantees:
//! - a watch that starts at or above the revision [`Cache::horizon`] misses no event. A watch that starts at
//!   a lower revision is rejected as too old;
//! - an event causes no work for watchers whose field selector or namespace excludes the event
//!   ([`watchers`]);
//! - every watcher has a bounded queue ([`inbox`]). A watcher whose queue is full is closed without an error
//!   event, and does not delay other watchers;
//! - a watcher receives events, bookmarks and injected bytes in the order in which this module sends them.
//!
//! The module `storage` stores the events. This module does not.

mod inbox;
mod watchers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::request_log::LoggedRequest;
use crate::resource::Resource;
use crate::selector::Selection;
use crate::storage::{Entry, Event, EventType, LOG_EVENTS_MAX};

use inbox::{Refused, Sender};
use watchers::Watchers;

pub(crate) use inbox::{Receiver, inbox};

/// Initial and minimum event capacity of [`WatchCache::Adaptive`]: Kubernetes' `defaultLowerBoundCapacity`.
const ADAPTIVE_EVENTS_MIN: usize = 100;

/// Age up to which [`WatchCache::Adaptive`] tries to keep events: Kubernetes' `DefaultEventFreshDuration`.
const ADAPTIVE_AGE: Duration = Duration::from_secs(75);

/// Maximum number of open watches per server, ten times as many as one server of a large cluster has.
pub(crate) const WATCHES_MAX: usize = 100_000;

/// Determines how many past events of one kind the server keeps for new watches.
///
/// A watch can start at a `resourceVersion` only if the server still keeps all later events of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchCache {
    /// Keeps the events of the last 75 seconds, but at least 100 and at most 102,400 events, as in
    /// Kubernetes.
    #[default]
    Adaptive,
    /// Keeps at most this number of the newest events.
    ///
    /// The server also drops events that are older than 5 minutes, and keeps at most 102,400 events of the
    /// kind.
    ///
    /// `Size(0)` is the same as [`WatchCache::Off`]. Since version 1.19, Kubernetes ignores a size above 0
    /// and behaves like [`WatchCache::Adaptive`]. This server applies the size.
    Size(usize),
    /// No watch cache, as with `--watch-cache=false` or `#0` in `--watch-cache-sizes`.
    ///
    /// Lists and watches are served from storage, with these effects:
    /// - a list at `resourceVersion=0` applies `limit`;
    /// - a watch can start from any event that storage still keeps;
    /// - a list at a future revision is rejected without waiting;
    /// - the only bookmark in a watch is the bookmark that ends the initial events.
    Off,
}

/// The watch cache of one resource: the window of past events that watches can request, and the watchers.
pub(crate) struct Cache {
    policy: WatchCache,
    /// Maximum number of events in the window.
    capacity: usize,
    /// Lowest revision at which a watch can start; the window has only later events.
    horizon: u64,
    watchers: Watchers,
}

/// Number that identifies a watcher within its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatcherId(pub(crate) u64);

/// One open watch, to which the cache sends events and bookmarks.
pub(crate) struct Watcher {
    pub(crate) filter: Filter,
    pub(crate) bookmarks: bool,
    /// Request that opened the watch. An injected fault affects the watch if the fault selects this request.
    pub(crate) request: Arc<LoggedRequest>,
    pub(crate) sender: Sender,
}

/// The conditions that an event must meet for a watch to receive it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Key prefix of the selected objects: `<namespace>/`, or empty for all namespaces.
    pub(crate) prefix: String,
    pub(crate) selection: Selection,
    /// The resource whose fields `selection` compares, if its objects can have another form for other readers.
    pub(crate) reader: Option<Arc<Resource>>,
    /// Revision above which the watch receives events.
    pub(crate) after: u64,
}

/// An item in a watcher's queue: an event, a bookmark, or injected bytes.
#[derive(Debug)]
pub(crate) enum Delivery {
    Event(Arc<Event>, EventType),
    Bookmark(u64),
    /// Bytes injected by a fault.
    Raw(Bytes),
}

// === impl Delivery ===

impl Delivery {
    /// Returns the revision of the delivered event, or `None` for other deliveries.
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
    /// Returns the event's type for this watch, or `None` if the watch does not receive the event.
    pub(crate) fn event_type(&self, event: &Event) -> Option<EventType> {
        if event.revision <= self.after || !event.key().starts_with(&self.prefix) {
            return None;
        }
        let before = event.old.as_ref().is_some_and(|old| self.matches(old));
        let after = event.new.as_ref().is_some_and(|new| self.matches(new));
        match (before, after) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }

    /// Returns whether the selection matches an object, as the watch sees it.
    ///
    /// Parses the object if `reader` is set and sees another form of it than is stored.
    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        let view = self.reader.as_ref().and_then(|reader| entry.viewed(reader));
        self.selection
            .matches(view.as_ref().unwrap_or(entry).selectable())
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

    /// Returns whether the queue of any watcher is more than half full.
    pub(crate) fn is_behind(&self) -> bool {
        self.watchers.any(|watcher| watcher.sender.is_behind())
    }

    /// Removes all events up to `revision` from the window.
    pub(crate) fn forget(&mut self, revision: u64) {
        self.horizon = revision;
    }

    /// Removes old events from the window of past events. The window then contains at most `capacity` events,
    /// and only events that are still in `log`.
    ///
    /// `log` contains all events of the resource after the revision `log_horizon`, newest last. If the window
    /// exceeds the capacity, [`WatchCache::Adaptive`] adapts the capacity first.
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

    /// Returns the revision of the newest event to remove, if the window of past events exceeds its capacity.
    fn overflow(&self, log: &VecDeque<Arc<Event>>) -> Option<u64> {
        let revision = nth_newest(log, self.capacity)?.revision;
        (revision > self.horizon).then_some(revision)
    }

    /// Adapts the capacity to the age of the newest events.
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

    /// Delivers an event to every watcher that selects it, and closes the watchers with full queues.
    pub(crate) fn dispatch(&mut self, event: &Arc<Event>) {
        self.watchers.retain_concerned(event, |watcher| {
            watcher.filter.event_type(event).is_none_or(|event_type| {
                watcher.send(Delivery::Event(Arc::clone(event), event_type))
            })
        });
    }

    /// Calls `make` for each watcher whose request satisfies `wanted`, and sends the result to the watcher.
    /// Closes a watcher if its queue is full and the result is not a bookmark.
    pub(crate) fn send_to(
        &mut self,
        wanted: impl Fn(&LoggedRequest) -> bool,
        make: impl Fn() -> Delivery,
    ) {
        self.watchers
            .retain(|watcher| !wanted(&watcher.request) || watcher.send(make()));
    }

    /// Sends a bookmark to one watcher, if the watcher still exists.
    pub(crate) fn bookmark(&mut self, id: WatcherId, revision: u64) {
        self.watchers
            .retain_one(id, |watcher| watcher.send(Delivery::Bookmark(revision)));
    }

    pub(crate) fn open(&mut self, id: WatcherId, watcher: Watcher) {
        self.watchers.insert(id, watcher);
    }

    /// Closes the watchers whose requests satisfy `wanted`, without an error event.
    pub(crate) fn close_wanted(&mut self, wanted: impl Fn(&LoggedRequest) -> bool) {
        self.watchers.retain(|watcher| !wanted(&watcher.request));
    }

    /// Closes every watcher whose queue contains an event at or below `horizon`, and empties the queue.
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
    /// Sends a delivery. Returns false if the caller must remove the watcher, because the watch has ended or
    /// the queue is full.
    ///
    /// For a bookmark, the result is true even if a full queue drops the bookmark.
    fn send(&self, delivery: Delivery) -> bool {
        if let Delivery::Bookmark(revision) = delivery {
            // A bookmark with a revision before the watch's start would move the client back.
            // A full queue drops only the bookmark, and the watch stays open.
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
