//! Decides which request follows each response of the server. The state machine does no I/O, and does not
//! receive objects.
//!
//! Terms in the following tables:
//!
//! - A *LIST* is an ordinary list request, in one page or several. A *streaming list* is a watch with
//!   `sendInitialEvents`.
//! - A *list*, in lower case, is a streaming list if the options request one and the server is not known to
//!   reject it. Otherwise it is a LIST.
//! - The *last revision* is the newest revision that the store has accepted.
//! - *At once if healthy*: without a pause after the first failure in a period, otherwise after a pause. A
//!   period begins at the start, after a server outage, and after `BackoffConfig::reset_after` without
//!   failures.
//! - *Bad data* is unreadable, or was rejected by the store.
//! - A *probe* is a LIST of one object, which shows whether the server still knows the last revision. A
//!   server that was restored from a backup may not know it.
//! - `410` is an HTTP status or an error event, and includes the reasons `Expired` and `Gone`. A watch with
//!   this error *has expired*.
//! - `TooLarge` is the error "too large resource version".
//!
//! # Requested revision
//!
//! | request | revision |
//! | --- | --- |
//! | first LIST | `"0"`: any state in the server's watch cache |
//! | first streaming list | `""`: the newest state |
//! | any list with [`InitialList::Pages`] | `""` |
//! | first request, if the store was loaded from a saved state | the revision of the saved state; the request is a watch |
//! | watch, or any later list | the last revision (client-go: `lastSyncResourceVersion`) |
//! | list after 410 or `TooLarge` in response to a list (client-go: `isLastSyncResourceVersionUnavailable`) | `""` |
//! | list after a watch that has expired, if an earlier watch from the same revision has expired or sent bad data | `""` |
//! | LIST in pages after a watch that has expired or sent bad data | `""`; pages at the last revision would return that same revision, and the next watch from it would fail again |
//!
//! # Streaming lists
//!
//! | a streaming list | is followed by |
//! | --- | --- |
//! | sent its end bookmark (`k8s.io/initial-events-end`) | a watch: the same response continues |
//! | failed with 429, or its connection was refused | the same streaming list, after a pause |
//! | was rejected with 401, 403, 404 or 5xx (except 504), in a response with a `Retry-After` header | the same streaming list, after a pause |
//! | failed with 410 or `TooLarge`, and requested a revision | a streaming list at `""`, at once |
//! | sent an end bookmark older than the last revision | a list at `""`, at once if healthy |
//! | is complete without objects, although the cache has objects | a LIST at `""`, at once; its result is applied |
//! | was rejected as an invalid request (400, 405, 406, 422, …) | a LIST, at once; no streaming list for an hour |
//! | was rejected otherwise (401, 403, 404, 5xx except 504), or sent another error or unreadable data | a LIST, at once |
//! | sent neither a new object nor its end bookmark for `TimeoutConfig::initial_events` | a LIST, at once; no streaming list for an hour |
//! | was closed after five minutes or more, without an end bookmark | a LIST, at once; no streaming list for an hour |
//! | was closed within five minutes, without an end bookmark | another streaming list, at once if healthy |
//! | lost its connection, got no response or 504, or failed with 410 or `TooLarge` at `""` | another streaming list, after a pause |
//! | ended as in one of the two rows above, for the third time in a row | a LIST, at once; no streaming list for an hour |
//! | sent objects that the store rejected | another streaming list, after a pause |
//! | is complete and reused cached objects with unchanged revisions, but a consistency check has meanwhile found a difference (also applies to a LIST) | a list at `""`, at once if healthy; the complete list is not applied |
//!
//! # Watches
//!
//! | a watch | is followed by |
//! | --- | --- |
//! | was rejected with 429, or with a `Retry-After` header and any status except 410 | the same watch, after a pause |
//! | received no response, because its connection was refused or broke | the same watch, after a pause |
//! | was rejected with 401, 502, 503 or 504 | the same watch, after a pause; after ten minutes of such rejections a list, after a pause (client-go always sends a list) |
//! | received no response headers within `TimeoutConfig::watch_headers`. This limit doubles after each such timeout in a row. Its maximum is the timeout that the watch requested plus `WATCH_GRACE` | the same watch, after a pause; if the limit was at its maximum, a list, after a pause |
//! | was rejected otherwise | a list, after a pause |
//! | was rejected with 410, or ended with 410 inside the stream | a list, at once if healthy |
//! | sent an event older than the object in the cache (client-go does not detect this) | a list at `""`, at once if healthy |
//! | sent any other event or bookmark older than the last revision | the event is applied and the watch continues; a probe is sent in parallel, unless such a probe was answered since the last list |
//! | ended with 429 inside the stream | the same watch, after a pause |
//! | ended with an internal error, and the first internal error of the series is at most `internal_error_retry` ago. A series ends after a minute without an internal error. If `internal_error_retry` is zero, this row does not apply | the same watch, at once if healthy |
//! | broke (connection reset, truncated inside an event, silent for `TimeoutConfig::silence`) | the same watch, after a pause |
//! | ended with another error, with bad data, or with an event of an unknown type | a list, after a pause |
//! | was closed within a second without an event (client-go: `VeryShortWatchError`) | a list, after a pause |
//! | was closed otherwise | the same watch, at once (after a pause if it is the second in a row that lasted less than a second) |
//! | was closed by the reflector, because the store did not accept a change in time | the same watch, at once |
//! | was open when its probe failed with `TooLarge`, or returned a revision older than requested | a list at `""`, at once |
//! | was closed by the reflector, because a consistency check found a difference | a list at `""`, at once if healthy |

use std::time::Duration;

use tokio::time::Instant;

use self::refusals::Refusals;
use super::{
    backoff::Backoff,
    history::{History, not_older},
    options::RequestOptions,
    probe::Probe,
    retry_budget::RetryBudget,
    rollback::RollbackDetection,
    streaming::{InitialList, Stream, Streaming},
};
use crate::{
    codec::{FrameKind, ListEnd},
    limits::RETRY_AFTER_MAX,
    object::ResourceVersion,
    transport::{AfterPage, Class, Error, ListOptions, Pager},
};

/// Default number of objects per page: `defaultPageSize` of client-go's pager.
pub(crate) const PAGE_SIZE: u32 = 500;

/// Minimum server-side timeout that a watch requests: `defaultMinWatchTimeout` of client-go.
pub(crate) const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(5 * 60);

/// Minimum duration of a normal watch. A watch that closes earlier without an event counts as failed.
///
/// A watch that closes earlier but has sent an event does not count as failed. After two or more such watches
/// in a row, the reflector pauses before the next watch.
pub(crate) const VERY_SHORT: Duration = Duration::from_secs(1);

/// The next step of the reflector, which the caller executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Request a page of a list. If `first` is true, drop the objects that an earlier attempt has received.
    List {
        options: ListOptions,
        first: bool,
    },
    /// Send all received objects to the store as a list at this revision, then call [`Machine::replaced`].
    Replace(ResourceVersion),
    /// Drop all objects received so far, and request a streaming list.
    Stream(ListOptions),
    Watch(ListOptions),
    /// Request one object, and call [`Machine::probed`] with the revision of the response.
    Probe(ListOptions),
    /// Wait for this time, then call [`Machine::slept`].
    Sleep(Duration),
}

/// The reason why a watch or a streaming list ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchEnd<'a> {
    /// The request was rejected, or the connection failed before the response.
    Refused(&'a Error),
    /// The response headers did not arrive within [`Machine::headers_allowed`].
    Unanswered(&'a Error),
    /// The open watch sent an error or unreadable data, or the store rejected a change.
    Error(&'a Error),
    /// The connection broke, or counts as broken after a timeout.
    Broken(&'a Error),
    /// The end bookmark of a streaming list did not arrive in time.
    Overdue(&'a Error),
    /// The reflector closed the watch, because the store did not accept a change in time.
    StoreFull,
    /// The server ended the response without an error, this long after the request.
    Closed(Duration),
    /// A consistency check requested a list, because the store differs from the server.
    RelistRequested,
    /// A streaming list is complete without objects, although the cache contains objects.
    Unconfirmed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    List,
    Watch,
}

/// The current operation of the reflector, with the data that the operation needs.
#[derive(Debug)]
enum State {
    Idle,
    /// A LIST, from its first request until the store has accepted the list.
    Listing(Box<Listing>),
    /// A streaming list, from its request until the store has accepted the list.
    Streaming(Stream),
    /// A watch, from its request until it ends.
    Watching(Watch),
    /// A request for one object before a watch, to detect a server that was restored from a backup.
    ///
    /// During a probe in parallel to an open watch, the state is `Watching`.
    Probing,
    Pausing(Next),
}

#[derive(Debug)]
struct Listing {
    pager: Pager,
    /// Whether this LIST uses revision `""` because the previous LIST failed with 410 or `TooLarge`.
    retried_unset: bool,
}

#[derive(Debug)]
struct Watch {
    /// Server-side timeout that the watch requested.
    lasts: Duration,
    /// Whether the events of this watch increase the newest accepted revision; see [`Machine::observe`].
    advances: bool,
}

/// Properties of the server, known from earlier responses.
#[derive(Debug, Default)]
struct Server {
    /// Whether the server has returned a list with `resourceVersion=0` in several pages.
    ///
    /// If so, the reflector requests all later lists in pages.
    pages_at_zero: bool,
    sends_bookmarks: bool,
}

#[derive(Debug)]
pub(crate) struct Machine {
    options: RequestOptions,
    rng: fastrand::Rng,
    state: State,
    history: History,
    server: Server,
    backoff: Backoff,
    internal_errors: RetryBudget,
    streaming: Streaming,
    probe: Probe,
    refusals: Refusals,
    /// Earliest time of the next watch request. Set if a [`Probe`] request fails with a temporary error while
    /// a watch is open.
    held_until: Option<Instant>,
    /// Whether a watch was opened since the last list.
    ///
    /// Also true at the start if the store was loaded from a saved state. The first request is then a watch.
    has_watched: bool,
    short_closes: u32,
}

impl Machine {
    pub(crate) fn new(options: RequestOptions, rng: fastrand::Rng) -> Self {
        Self {
            rng,
            state: State::Idle,
            history: History::default(),
            server: Server::default(),
            backoff: Backoff::new(options.backoff()),
            internal_errors: RetryBudget::new(options.internal_error_retry()),
            streaming: Streaming::new(options.initial_list()),
            probe: Probe::new(options.rollback_detection()),
            refusals: Refusals::default(),
            options,
            held_until: None,
            has_watched: false,
            short_closes: 0,
        }
    }

    pub(crate) fn start(&mut self, now: Instant) -> Action {
        if self.has_watched {
            return self.watch();
        }
        self.everything(now)
    }

    pub(crate) fn last_revision(&self) -> &ResourceVersion {
        self.history.last()
    }

    /// Returns the number of pages received for the current list.
    pub(crate) fn pages(&self) -> u32 {
        match &self.state {
            State::Listing(listing) => listing.pager.pages(),
            _ => 0,
        }
    }

    /// Returns the action after a page: request the next page, or deliver the complete list.
    ///
    /// # Errors
    /// Returns an error, which the caller must pass to [`Machine::list_failed`], if the server repeats a
    /// continue token.
    pub(crate) fn page(&mut self, end: &ListEnd) -> Result<Action, Error> {
        let State::Listing(listing) = &mut self.state else {
            return Ok(self.list());
        };
        let pager = &mut listing.pager;
        match pager.page(end) {
            AfterPage::More => Ok(Action::List {
                options: pager.request().clone(),
                first: false,
            }),
            AfterPage::Endless => Err(Error::new(
                Class::Protocol,
                "the server repeats a continue token, so the list has no end",
            )),
            AfterPage::Done(revision) => {
                if pager.is_paginated() && pager.first_request().resource_version.is_zero() {
                    self.server.pages_at_zero = true;
                }
                Ok(Action::Replace(revision))
            }
        }
    }

    /// Records that the store has accepted the list, and returns the watch that follows.
    pub(crate) fn replaced(&mut self, revision: ResourceVersion, now: Instant) -> Action {
        self.accepted(revision, now);
        self.watch()
    }

    fn accepted(&mut self, revision: ResourceVersion, now: Instant) {
        self.history.accepted(revision);
        self.has_watched = false;
        self.held_until = None;
        self.probe.listed();
        self.refusals.listed();
        self.backoff.succeeded(now);
    }

    /// Returns the action after a failed request for a list or a page.
    pub(crate) fn list_failed(&mut self, error: &Error, now: Instant) -> Action {
        let class = error.class();
        self.history.note(class);
        let State::Listing(listing) = &mut self.state else {
            return self.pause(error, now, Next::List);
        };
        if listing.pager.restarts_after(class) {
            return Action::List {
                options: listing.pager.request().clone(),
                first: true,
            };
        }
        let retries_unset = !listing.retried_unset;
        if matches!(class, Class::Expired | Class::TooLargeResourceVersion) {
            self.history.unavailable();
            if retries_unset {
                return self.list_request(true);
            }
        }
        self.pause(error, now, Next::List)
    }

    /// Records that the server has accepted the request for a watch or a streaming list.
    pub(crate) fn watch_opened(&mut self, now: Instant) {
        if let State::Streaming(stream) = &mut self.state {
            stream.opened(now);
        } else {
            self.has_watched = true;
            self.refusals.watch_opened();
            self.backoff.succeeded(now);
        }
    }

    /// Returns the time without an event or bookmark after which a watch counts as broken.
    ///
    /// `None` until the server has sent a bookmark.
    pub(crate) fn silence_allowed(&self) -> Option<Duration> {
        let silence = self.options.timeouts().silence;
        self.server.sends_bookmarks.then_some(silence)
    }

    /// Returns the maximum time that a watch waits for the store to accept a change.
    pub(crate) fn full_store_allowed(&self) -> Duration {
        self.options.timeouts().full_store
    }

    /// Records that the store has accepted an event of the watch.
    ///
    /// `revision` is the revision of the event, or `None` if the revision is unreadable.
    ///
    /// A watch from `""` or `"0"` starts with `ADDED` events, which are not ordered by revision. These events
    /// do not change the newest accepted revision.
    pub(crate) fn observe(&mut self, kind: &FrameKind, revision: Option<ResourceVersion>) {
        self.server.sends_bookmarks |= *kind == FrameKind::Bookmark;
        let State::Watching(watch) = &mut self.state else {
            return;
        };
        watch.advances |= *kind != FrameKind::Added;
        if watch.advances
            && let Some(revision) = revision.filter(|revision| !revision.is_unset())
        {
            self.history.observed(revision);
        }
    }

    pub(crate) fn slept(&mut self, now: Instant) -> Action {
        let next = match self.state {
            State::Pausing(next) => next,
            _ => Next::List,
        };
        self.go_on(next, now)
    }

    fn go_on(&mut self, next: Next, now: Instant) -> Action {
        match next {
            Next::List => self.everything(now),
            Next::Watch => self.resume(now),
        }
    }

    /// Records a failure. Returns either the request for `next`, or a pause before this request.
    ///
    /// There is no pause if there was no earlier failure, or if a server outage caused the previous failure.
    /// There is also no pause after a period of `BackoffConfig::reset_after` without failures.
    fn at_once_after_health(&mut self, now: Instant, next: Next) -> Action {
        let pause = self.backoff.first_is_free(now, &mut self.rng);
        if pause.is_zero() {
            return self.go_on(next, now);
        }
        self.sleep(pause, next)
    }

    fn pause(&mut self, error: &Error, now: Instant, next: Next) -> Action {
        let pause = self.pause_after(error, now);
        self.sleep(pause, next)
    }

    fn sleep(&mut self, pause: Duration, next: Next) -> Action {
        self.state = State::Pausing(next);
        Action::Sleep(pause)
    }

    fn pause_after(&mut self, error: &Error, now: Instant) -> Duration {
        let pause = if error.is_outage() {
            self.backoff.out(now, &mut self.rng)
        } else {
            self.backoff.failed(now, &mut self.rng)
        };
        let asked_for = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
        pause.max(asked_for)
    }

    /// Returns the request for all objects: a streaming list if it is enabled and not known to fail,
    /// otherwise a LIST.
    fn everything(&mut self, now: Instant) -> Action {
        if self.streaming.is_due(now) {
            return self.stream(now);
        }
        self.list()
    }

    fn list(&mut self) -> Action {
        self.list_request(false)
    }

    fn list_request(&mut self, retried_unset: bool) -> Action {
        let is_newest = self.options.initial_list() == InitialList::Pages;
        let mut resource_version = self.history.not_older_than();
        if is_newest {
            resource_version = ResourceVersion::UNSET;
        } else if resource_version.is_unset() && !self.history.is_unavailable() {
            resource_version = ResourceVersion::ZERO;
        }
        let own_size = Some(self.options.page_size()).filter(|size| *size > 0);
        // A list in pages returns exactly the state at its revision, and a watch from `stuck_at` fails again.
        let in_pages = own_size.is_some() || self.server.pages_at_zero;
        if in_pages && self.history.is_stuck_at(&resource_version) {
            resource_version = ResourceVersion::UNSET;
        }
        let from_storage_or_any = resource_version.is_unset() || resource_version.is_zero();
        // A page size at any other revision would bypass the server's watch cache.
        let default_size = (self.server.pages_at_zero || from_storage_or_any).then_some(PAGE_SIZE);
        let options = ListOptions {
            limit: own_size.or(default_size),
            resource_version,
            encoding: self.options.encoding(),
            ..ListOptions::default()
        };
        self.state = State::Listing(Box::new(Listing {
            pager: Pager::new(options.clone()),
            retried_unset,
        }));
        Action::List {
            options,
            first: true,
        }
    }

    fn watch(&mut self) -> Action {
        let (lasts, options) = self.watch_options();
        self.state = State::Watching(Watch {
            lasts,
            advances: self.history.can_resume(),
        });
        Action::Watch(ListOptions {
            resource_version: self.last_revision().clone(),
            ..options
        })
    }

    /// Returns a random server-side timeout for a watch, and request options with this timeout.
    fn watch_options(&mut self) -> (Duration, ListOptions) {
        let min = self.options.watch_timeout_min().max(WATCH_TIMEOUT_MIN);
        let min = min.as_secs();
        let seconds = self.rng.u64(min..=min.saturating_mul(2));
        let options = ListOptions {
            timeout_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)),
            allow_watch_bookmarks: true,
            encoding: self.options.encoding(),
            ..ListOptions::default()
        };
        (Duration::from_secs(seconds), options)
    }
}

mod ends;
mod history;
mod probing;
mod refusals;
mod stream;
#[cfg(test)]
mod tests;
