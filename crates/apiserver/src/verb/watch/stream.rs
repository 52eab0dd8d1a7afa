//! Streams the body of a watch: initial events, live events, bookmarks, and the end at the deadline.
//!
//! Guarantees:
//! - the body contains the initial events first, then the bookmark that ends the initial events, then live
//!   events;
//! - a bookmark is sent after all events up to the bookmark's revision;
//! - all timers belong to the stream, so a watch needs no background task.
//!
//! The caller wraps the body to apply injected faults. This module does not apply them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Instant, Sleep};

use super::frame::Framer;
use crate::body::{BoxError, CHUNK_BYTES, next_piece};
use crate::resource::CollectionId;
use crate::response_budget::{Reserved, ResponseBudget};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::{Entry, Event, EventType};
use crate::watch_cache::{Delivery, Filter, Receiver, WatcherId};

/// Interval between bookmarks (`defaultBookmarkFrequency` in Kubernetes' `cacher.go`).
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// Time from the final bookmark of a watch to the deadline of the watch.
///
/// The value is the same as in the function `nextBookmarkTime` of Kubernetes' `cache_watcher.go`.
const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

/// Keeps a watcher registered in the watch cache until dropped.
pub(super) struct Registration {
    shared: Arc<Shared>,
    collection: CollectionId,
    id: WatcherId,
}

/// The initial events of a watch: current objects, or past events.
pub(super) enum Backlog {
    Objects {
        entries: std::vec::IntoIter<Arc<Entry>>,
        /// The unsent part of a chunk that is too large to be sent at once; otherwise empty.
        rest: Bytes,
        /// Revision of the bookmark that ends the initial events. `None` if no such bookmark remains to be
        /// sent.
        end: Option<u64>,
    },
    Events(std::vec::IntoIter<(Arc<Event>, EventType)>),
}

/// The timers of one watch, for the deadline and for bookmarks.
pub(super) struct Timers {
    deadline: Instant,
    /// Time of the next periodic bookmark, if there is one before the deadline.
    bookmark: Option<Instant>,
    sleep: Pin<Box<Sleep>>,
}

enum Due {
    Bookmark,
    Deadline,
}

/// The event source of one open watch.
pub(super) struct WatchStream {
    registration: Registration,
    receiver: Receiver,
}

/// State of the response body of one open watch.
struct Running {
    watch: WatchStream,
    /// Initial events that are not sent yet.
    backlog: Option<Reserved<Backlog>>,
    framer: Framer,
    timers: Timers,
    /// Whether encoding an object has failed, after which the body ends.
    failed: bool,
}

// === impl Registration ===

impl Registration {
    pub(super) fn new(
        shared: &Arc<Shared>,
        collection: CollectionId,
        id: WatcherId,
    ) -> Registration {
        Registration {
            shared: Arc::clone(shared),
            collection,
            id,
        }
    }

    /// Appends a bookmark with the storage's current revision to the watcher's queue.
    fn request_bookmark(&self) {
        let mut state = self.shared.lock();
        let revision = state.storage.revision();
        state.caches[self.collection.0].bookmark(self.id, revision);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.lock().caches[self.collection.0].close(self.id);
    }
}

// === impl Backlog ===

impl Backlog {
    pub(super) fn objects(entries: Vec<Arc<Entry>>, end: Option<u64>) -> Backlog {
        Backlog::Objects {
            entries: entries.into_iter(),
            rest: Bytes::new(),
            end,
        }
    }

    pub(super) fn events(events: Vec<Arc<Event>>, filter: &Filter) -> Backlog {
        let told: Vec<_> = events
            .into_iter()
            .filter_map(|event| {
                filter
                    .event_type(&event)
                    .map(|event_type| (event, event_type))
            })
            .collect();
        Backlog::Events(told.into_iter())
    }

    /// Returns the memory to reserve for the initial events, in slots of [`ResponseBudget::SLOT_BYTES`]
    /// bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Backlog::Objects { entries, end, .. } => {
                ResponseBudget::slots(entries.as_slice().iter()) + usize::from(end.is_some())
            }
            Backlog::Events(events) => 2 * events.len(),
        }
    }

    /// Returns the next chunk of the initial events, or `None` after the last chunk.
    fn next(&mut self, framer: &mut Framer) -> Option<Result<Bytes, ApiError>> {
        match self {
            Backlog::Events(events) => {
                let (event, event_type) = events.next()?;
                Some(framer.event(&event, event_type))
            }
            Backlog::Objects { rest, .. } if !rest.is_empty() => Some(Ok(next_piece(rest))),
            Backlog::Objects { entries, end, rest } => {
                let mut chunk = Vec::new();
                while chunk.len() < CHUNK_BYTES
                    && let Some(entry) = entries.next()
                {
                    if let Err(cause) = framer.write_initial(&entry, &mut chunk) {
                        return Some(Err(cause));
                    }
                }
                if chunk.len() > 2 * CHUNK_BYTES {
                    *rest = chunk.into();
                    return Some(Ok(next_piece(rest)));
                }
                if !chunk.is_empty() {
                    return Some(Ok(chunk.into()));
                }
                end.take()
                    .map(|revision| Ok(framer.bookmark(revision, true)))
            }
        }
    }
}

// === impl Timers ===

impl Timers {
    pub(super) fn new(timeout: Duration, bookmarks: bool) -> Timers {
        let now = Instant::now();
        let deadline = now + timeout;
        let mut timers = Timers {
            deadline,
            bookmark: None,
            sleep: Box::pin(tokio::time::sleep_until(deadline)),
        };
        if bookmarks {
            timers.plan_bookmark(now);
        }
        timers
    }

    fn plan_bookmark(&mut self, now: Instant) {
        let last = self.deadline - BOOKMARK_BEFORE_DEADLINE.min(self.deadline - now);
        let next = (now + BOOKMARK_PERIOD).min(last);
        self.bookmark = (next > now).then_some(next);
        self.sleep
            .as_mut()
            .reset(self.bookmark.unwrap_or(self.deadline));
    }

    /// Returns whether the deadline or a bookmark is due. If a bookmark is due, also schedules the next one.
    fn due(&mut self) -> Option<Due> {
        let now = Instant::now();
        if now >= self.deadline {
            return Some(Due::Deadline);
        }
        if self.bookmark.is_some_and(|bookmark| now >= bookmark) {
            self.plan_bookmark(now);
            return Some(Due::Bookmark);
        }
        None
    }
}

// === impl WatchStream ===

impl WatchStream {
    pub(super) fn new(registration: Registration, receiver: Receiver) -> WatchStream {
        WatchStream {
            registration,
            receiver,
        }
    }

    /// Returns the response body, which starts with the initial events in `backlog`.
    pub(super) fn run(
        self,
        backlog: Option<Reserved<Backlog>>,
        framer: Framer,
        timers: Timers,
    ) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static {
        Running {
            watch: self,
            backlog,
            framer,
            timers,
            failed: false,
        }
    }
}

impl Stream for Running {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let running = self.get_mut();
        if running.failed {
            return Poll::Ready(None);
        }
        if let Some(backlog) = &running.backlog {
            match backlog.with(|backlog| backlog.next(&mut running.framer)) {
                Ok(Some(chunk)) => return Poll::Ready(Some(Ok(running.or_error(chunk)))),
                Ok(None) => running.backlog = None,
                Err(evicted) => return Poll::Ready(Some(Err(evicted.into()))),
            }
        }
        while running.timers.sleep.as_mut().poll(cx).is_ready() {
            match running.timers.due() {
                Some(Due::Deadline) => return Poll::Ready(None),
                Some(Due::Bookmark) => running.watch.registration.request_bookmark(),
                None => {}
            }
        }
        let delivery = ready!(running.watch.receiver.poll_next(cx));
        Poll::Ready(delivery.map(|delivery| Ok(running.encode(&delivery))))
    }
}

impl Running {
    /// Returns the chunk, or the final ERROR event if an object can't be encoded.
    fn or_error(&mut self, chunk: Result<Bytes, ApiError>) -> Bytes {
        chunk.unwrap_or_else(|cause| {
            self.failed = true;
            self.framer.error(&cause)
        })
    }

    fn encode(&mut self, delivery: &Delivery) -> Bytes {
        match delivery {
            Delivery::Event(event, event_type) => {
                let frame = self.framer.event(event, *event_type);
                self.or_error(frame)
            }
            Delivery::Bookmark(revision) => self.framer.bookmark(*revision, false),
            Delivery::Raw(bytes) => bytes.clone(),
        }
    }
}
