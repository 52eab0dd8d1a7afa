//! Decides which request comes next, given what came back; pure, and ignorant of what is listed.
//!
//! The rules, with client-go's name for the fact behind each:
//!
//! | situation | revision asked for |
//! | --- | --- |
//! | first streaming list | `""`: the newest state |
//! | first list | `"0"`: whatever the server's cache has |
//! | any list if pages are wanted ([`InitialList::Pages`]) | `""` |
//! | first of all for a store that was filled | a watch at the revision of its content |
//! | first of all when the kind is served again | the last revision seen |
//! | relist of either kind | the last revision seen (`lastSyncResourceVersion`), so never back in time |
//! | either said Expired or `TooLarge` (`isLastSyncResourceVersionUnavailable`) | `""`, at once, and once |
//! | a watch expired at the revision at which one expired before, or sent what is unreadable or not accepted | `""` |
//! | a watch expired or sent what is unreadable or not accepted, and a LIST follows in pages, which at a revision are of exactly that state | `""` |
//! | watch | the last revision seen |
//!
//! Where the tables below say "a list", it is a streaming one (a watch with `sendInitialEvents`) if
//! that is wanted and the server is not known to refuse it.
//!
//! | a streaming list | is followed by |
//! | --- | --- |
//! | told its end (`k8s.io/initial-events-end`) | the watch that it goes on as |
//! | 429 at open or inside, refused for so many seconds (`Retry-After`), or nobody listens | the same, after a pause |
//! | 410 or `TooLarge`, at open or inside, at a revision | one at `""`, at once |
//! | told an end older than the revision asked for | one at `""`, at once if all was well |
//! | complete without objects, and the cache has some | LIST at `""`, at once, which decides |
//! | refused as not understood (400, 405, 406, 422, …) | LIST, at once; streaming again an hour later |
//! | refused otherwise (401, 403, 404, 5xx), an error inside, something unreadable | LIST, at once |
//! | no new object for [`TimeoutConfig::initial_events`], and no end | LIST, at once; streaming again an hour later |
//! | lasted as long as any watch, without an end | the same |
//! | closed before its end | another one, at once if all was well |
//! | broken, not answered, 410 or `TooLarge` at `""` | another one, after a pause |
//! | one of the last two rows for the third time in a row | LIST, at once; streaming again an hour later |
//! | its objects were not accepted by the store | another one, after a pause |
//! | a relist request before its end, and it has left known objects undecoded (a LIST too) | another one at `""`, at once if all was well |
//!
//! | a watch | is followed by |
//! | --- | --- |
//! | refused with 429 or for so many seconds (`Retry-After`), not answered because the connection broke, or nobody listens | the same watch, after a pause |
//! | refused with 401, 502, 503 or 504 (a list in client-go) | the same watch, after a pause; a list, after a pause, once it has been refused for ten minutes |
//! | without response headers for [`TimeoutConfig::watch_headers`], doubled for each time-out in a row | the same watch, after a pause; a list, after a pause, if the server must have ended it by then |
//! | refused otherwise | a list, after a pause |
//! | ended with 410 inside the stream | a list from the last revision, at once if all was well |
//! | sent an event older than the object in the cache (not noticed by client-go) | a list at `""`, at once if all was well |
//! | sent any other event below the last revision, or such a bookmark | the event is applied, the watch goes on, and a probe is sent beside it: one answered probe until the next list |
//! | ended with 429 inside the stream | the same watch, after a pause |
//! | ended with an internal error, within the budget for these | the same watch, at once if all was well |
//! | broken (reset, cut inside an event, silent for [`TimeoutConfig::silence`]) | the same watch, after a pause |
//! | ended with another error, with something unreadable, or with an event of an unknown type | a list, after a pause |
//! | closed within a second without an event (`VeryShortWatchError`) | a list, after a pause |
//! | closed | the same watch, at once (after a pause if it was the second within a second) |
//! | let go of, because the store took nothing | the same watch, at once |
//! | open when its probe says that the server has gone back, or may have | a list at `""`, at once |
//! | a relist request, because a consistency check found a difference | a list at `""`, at once if all was well |
//!
//! All is well also when the server answers again after it could not be reached: each pause of an
//! outage earns one "at once", for what comes then is another matter.
//!
//! One object is requested, not older than the last revision, before a watch goes on that lost its
//! connection, was closed before its time, found no listener, was refused with 502, 503 or 504, or received
//! no response headers: at most once a minute. A probe that would come earlier is sent beside the open
//! watch when the minute is over. A 401 requires no probe: credentials say nothing about the server's history.
//! No probe is sent if [`RollbackDetection`] is disabled, or if the source need not know what it requests.
//!
//! | the probe | is followed by |
//! | --- | --- |
//! | answered | the watch |
//! | `TooLarge`, or answered at an older revision | a list at `""`, at once |
//! | nobody listens | the same probe, after a pause |
//! | 401, 429, 502, 503, 504, broken, not answered | the watch, after a pause; another probe a minute after that, then two, four, up to an hour |
//! | refused otherwise | the watch, at once |
//! | one beside an open watch fails, but for the second row | the watch goes on; if it ends within the pause, that is waited for |
//!
//! Some of this says that the server has gone back, or may have. Then the next list is believed whatever
//! its revisions are (it is of another [`Epoch`](crate::object::Epoch)), wherever the server has come to by then:
//!
//! | what is noticed | what it says |
//! | --- | --- |
//! | an event older than the object in the cache | it has gone back |
//! | a probe, a list or the end of a streaming list older than the last revision | it has gone back |
//! | any other event, or a bookmark, below the last revision | nothing: an aggregated API server may send old objects late; a probe shows it |
//! | `TooLarge`, whatever was asked | nothing yet: it lags behind, or the list that follows is older |
//! | a relist request, also one that arrives while a list is in progress | it may have, and waits and pending writes go on |
//! | a reflector before this one, which may have noticed any of it | it may have |

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

/// `defaultPageSize` of client-go's pager.
pub(crate) const PAGE_SIZE: u32 = 500;

/// `defaultMinWatchTimeout`; a watch is asked to end after one to two times this.
pub(crate) const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(5 * 60);

/// A watch that ends sooner than this without an event is very short.
pub(crate) const VERY_SHORT: Duration = Duration::from_secs(1);

/// What the shell shall do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Request a list, or its next page. Before the `first` page what was staged is thrown away.
    List { options: ListOptions, first: bool },
    /// Hand the staged list on; once the store has accepted it, report [`Machine::replaced`].
    Replace(ResourceVersion),
    /// Open a watch that begins with everything there is. What was staged is thrown away.
    Stream(ListOptions),
    /// Open a watch.
    Watch(ListOptions),
    /// Request one object, only to see whether the server knows the revision; report
    /// [`Machine::probed`].
    Probe(ListOptions),
    /// Wait, then report [`Machine::slept`].
    Sleep(Duration),
}

/// How a watch ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchEnd<'a> {
    /// It was not opened.
    Refused(&'a Error),
    /// Its response headers did not arrive within [`Machine::headers_allowed`].
    Unanswered(&'a Error),
    /// Server or transport said why, inside the stream; what was sent can't be read, or was not
    /// accepted.
    Error(&'a Error),
    /// The connection broke, or is as good as broken.
    Broken(&'a Error),
    /// The end of the initial events was not waited for any longer.
    Overdue(&'a Error),
    /// The store took nothing for so long that it was given up.
    LetGo,
    /// The body ended in order, this long after the request.
    Closed(Duration),
    /// A list was requested, because what the watch sent is not what the server has.
    RelistRequested,
    /// A streaming list has ended without objects, and the cache has some.
    Unconfirmed,
}

/// What follows a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    List,
    Watch,
}

/// What is under way, with all that ends with it.
#[derive(Debug)]
enum State {
    /// Nothing has been requested.
    Idle,
    /// A list, until the store has accepted it.
    Listing(Box<Listing>),
    /// A streaming list, until the store has accepted it.
    Streaming(Stream),
    /// A watch, from its request on.
    Watching(Watch),
    /// A probe before a watch. (One beside an open watch belongs to no state.)
    Probing,
    /// A pause.
    Pausing(Next),
}

#[derive(Debug)]
struct Listing {
    pager: Pager,
    /// The one immediate retry at `""` of this attempt has been used.
    retried_unset: bool,
}

#[derive(Debug)]
struct Watch {
    /// How long the server was asked to let it last.
    lasts: Duration,
    /// Whether its events advance the last revision yet.
    advances: bool,
}

/// What the server has shown of itself.
#[derive(Debug, Default)]
struct Server {
    /// A list at `"0"` once came in pages, which a server without watch cache does: keep paging.
    pages_at_zero: bool,
    /// It has sent a bookmark of its own accord.
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
    /// Before when no watch is to be requested, though one is open.
    held_until: Option<Instant>,
    /// Whether a watch has been open since the last list, perhaps one of an earlier reflector.
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

    /// The first request of all.
    pub(crate) fn start(&mut self, now: Instant) -> Action {
        if self.has_watched {
            return self.watch();
        }
        self.everything(now)
    }

    /// The newest revision seen.
    pub(crate) fn last_revision(&self) -> &ResourceVersion {
        self.history.last()
    }

    /// Pages received of the list under way.
    pub(crate) fn pages(&self) -> u32 {
        match &self.state {
            State::Listing(listing) => listing.pager.pages(),
            _ => 0,
        }
    }

    /// A page has come, whole.
    ///
    /// # Errors
    /// The server repeats itself; to be reported, and passed to [`Machine::list_failed`].
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
                "the server sends the same continue token again and again",
            )),
            AfterPage::Done(revision) => {
                if pager.is_paginated() && pager.first_request().resource_version.is_zero() {
                    self.server.pages_at_zero = true;
                }
                Ok(Action::Replace(revision))
            }
        }
    }

    /// The store has accepted the list of this revision.
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

    /// A list, or one of its pages, failed.
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

    /// The server has accepted the watch. (A streaming list is a success only with its end.)
    pub(crate) fn watch_opened(&mut self, now: Instant) {
        if let State::Streaming(stream) = &mut self.state {
            stream.opened(now);
        } else {
            self.has_watched = true;
            self.refusals.watch_opened();
            self.backoff.succeeded(now);
        }
    }

    /// How long a watch may be silent; `None` while it is not known that the server sends bookmarks.
    pub(crate) fn silence_allowed(&self) -> Option<Duration> {
        let silence = self.options.timeouts().silence;
        self.server.sends_bookmarks.then_some(silence)
    }

    /// How long an open watch waits for the store.
    pub(crate) fn full_store_allowed(&self) -> Duration {
        self.options.timeouts().full_store
    }

    /// The store has accepted an event, with its revision if it could be read.
    ///
    /// The revision never drops: what is below it says nothing about how far the watch has come. A watch
    /// from `""` or `"0"` begins with existing objects in no order of revision, so there nothing counts
    /// before the first event of another type than Added.
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

    /// The pause is over.
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

    /// Nothing may be wrong with the server, so the first such end after health costs no pause.
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

    /// Everything there is, in the way that is wanted and that the server allows.
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
        // Pages of a revision are of exactly that, and no watch gets on from this one.
        let in_pages = own_size.is_some() || self.server.pages_at_zero;
        if in_pages && self.history.is_stuck_at(&resource_version) {
            resource_version = ResourceVersion::UNSET;
        }
        let from_storage_or_any = resource_version.is_unset() || resource_version.is_zero();
        // A page size with another revision would bypass the server's watch cache.
        let default_size = (self.server.pages_at_zero || from_storage_or_any).then_some(PAGE_SIZE);
        let options = ListOptions {
            limit: own_size.or(default_size),
            resource_version,
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

    /// What every watch is asked with, and for how long.
    fn watch_options(&mut self) -> (Duration, ListOptions) {
        let min = self.options.watch_timeout_min().max(WATCH_TIMEOUT_MIN);
        let min = min.as_secs();
        let seconds = self.rng.u64(min..=min.saturating_mul(2));
        let options = ListOptions {
            timeout_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)),
            allow_watch_bookmarks: true,
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
