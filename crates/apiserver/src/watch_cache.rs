//! The watch cache: the start window of watches, and the open watchers.
//!
//! Guarantees:
//! - a watch that starts at or above [`Cache::horizon`] misses no event; a lower start is rejected as too old;
//! - an event costs nothing for watchers whose field selector or namespace excludes it ([`watchers`]);
//! - every watcher has a bounded queue ([`inbox`]); a watcher that lags behind is closed without an error event, and
//!   does not delay others;
//! - events, bookmarks and injected bytes reach a watcher in the order in which they are sent.
//!
//! It does not store events: storage does. The cache limits how many of them watches can request.

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

/// Initial and minimum number of events in an adaptive window (`defaultLowerBoundCapacity` in
/// `watch_cache_history.go`).
const ADAPTIVE_EVENTS_MIN: usize = 100;

/// Age of events that an adaptive window tries to cover (`DefaultEventFreshDuration` in `cacher.go`).
const ADAPTIVE_AGE: Duration = Duration::from_secs(75);

/// Maximum number of open watches per server.
///
/// It is ten times the number in a large cluster per API server; queues use memory only when they have entries.
pub(crate) const WATCHES_MAX: usize = 100_000;

/// How many past events of a kind a watch can start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchCache {
    /// The events of the last 75 seconds, between 100 and 102,400, as in Kubernetes.
    #[default]
    Adaptive,
    /// This number of events, as far as storage keeps them (5 minutes and 102,400 events).
    ///
    /// `Size(0)` is the same as [`WatchCache::Off`].
    ///
    /// Kubernetes has not supported this since 1.19, where any size except 0 means [`WatchCache::Adaptive`].
    Size(usize),
    /// No watch cache, as with `--watch-cache=false` or `#0` in `--watch-cache-sizes`.
    ///
    /// Lists and watches are served from storage.
    ///
    /// A list at `"0"` honours `limit`, and a watch can start as far back as storage keeps events.
    /// A future revision is rejected without waiting, and the only bookmark is the one that ends the initial events.
    Off,
}

/// The watch cache of one collection.
pub(crate) struct Cache {
    policy: WatchCache,
    /// Number of events in the window, if it is limited.
    capacity: usize,
    /// Revision above which a watch receives every event; watches can't start below it.
    horizon: u64,
    watchers: Watchers,
}

/// Number of a watcher, unique in its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatcherId(pub(crate) u64);

/// One open watch, to which the cache sends deliveries.
pub(crate) struct Watcher {
    pub(crate) filter: Filter,
    /// Whether the watch requested bookmarks.
    pub(crate) bookmarks: bool,
    /// The request that faults match.
    pub(crate) request: Arc<LoggedRequest>,
    pub(crate) sender: Sender,
}

/// The conditions that an event must meet for a watch to receive it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// `namespace/`, or empty for all namespaces.
    pub(crate) prefix: String,
    pub(crate) selection: Selection,
    /// Events up to this revision are not delivered.
    pub(crate) after: u64,
}

/// What a watcher receives: an event, a bookmark, or injected bytes.
#[derive(Debug)]
pub(crate) enum Delivery {
    Event(Arc<Event>, EventType),
    Bookmark(u64),
    /// Bytes injected by a fault.
    Raw(Bytes),
}

// === impl Delivery ===

impl Delivery {
    /// Returns the revision of the delivered event; `None` for other deliveries.
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
    /// Returns the type of an event for this watch; `None` if the watch excludes the event.
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

    /// Drops all events up to a revision.
    pub(crate) fn forget(&mut self, revision: u64) {
        self.horizon = revision;
    }

    /// Adjusts the window to a new event.
    ///
    /// `log` is storage's log, newest last, and reaches back to `log_horizon`.
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

    /// The revision of the newest event that exceeds the window's capacity, if any.
    fn overflow(&self, log: &VecDeque<Arc<Event>>) -> Option<u64> {
        let revision = nth_newest(log, self.capacity)?.revision;
        (revision > self.horizon).then_some(revision)
    }

    /// Grows a full window whose oldest event is young; shrinks a window whose newest quarter is old.
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

    /// Delivers an event to every watcher that may select it.
    pub(crate) fn dispatch(&mut self, event: &Arc<Event>) {
        self.watchers.retain_concerned(event, |watcher| {
            watcher.filter.event_type(event).is_none_or(|event_type| {
                watcher.send(Delivery::Event(Arc::clone(event), event_type))
            })
        });
    }

    /// Sends a delivery to the watchers of the selected requests.
    ///
    /// Bookmarks are sent only to watchers that requested them.
    pub(crate) fn send_to(
        &mut self,
        wanted: impl Fn(&LoggedRequest) -> bool,
        make: impl Fn() -> Delivery,
    ) {
        self.watchers
            .retain(|watcher| !wanted(&watcher.request) || watcher.send(make()));
    }

    /// Sends a bookmark to one watcher, if it still exists.
    pub(crate) fn bookmark(&mut self, id: WatcherId, revision: u64) {
        self.watchers
            .retain_one(id, |watcher| watcher.send(Delivery::Bookmark(revision)));
    }

    pub(crate) fn open(&mut self, id: WatcherId, watcher: Watcher) {
        self.watchers.insert(id, watcher);
    }

    /// Closes the watchers of the selected requests, in the same way as a slow watcher.
    pub(crate) fn close_wanted(&mut self, wanted: impl Fn(&LoggedRequest) -> bool) {
        self.watchers.retain(|watcher| !wanted(&watcher.request));
    }

    /// Closes the watchers with an unread event at or below this revision, and drops their unread events.
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
    /// Sends a delivery; returns whether to keep the watcher.
    ///
    /// A watcher whose queue is full or whose watch is closed must be removed.
    fn send(&self, delivery: Delivery) -> bool {
        if let Delivery::Bookmark(revision) = delivery {
            // A bookmark from before the watch's start would move its client back.
            // A full queue drops the bookmark instead of the watch.
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
