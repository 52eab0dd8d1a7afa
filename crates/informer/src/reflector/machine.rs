//! Decides which request comes next, given what came back; pure, and ignorant of what is listed.
//!
//! The rules, with client-go's name for the fact behind each:
//!
//! | situation | revision asked for |
//! | --- | --- |
//! | first streaming list | `""`: the newest state |
//! | first list | `"0"`: whatever the server's cache has |
//! | any list if pages are wanted ([`InitialList::Pages`]) | `""` |
//! | first of all after a warm start | a watch at the saved revision |
//! | first of all when the kind is served again | the last revision seen |
//! | relist of either kind | the last revision seen (`lastSyncResourceVersion`), so never back in time |
//! | either said Expired or `TooLarge` (`isLastSyncResourceVersionUnavailable`) | `""`, at once, and once |
//! | a watch expired at the revision at which one expired before, or told what is unreadable or not accepted | `""` |
//! | a watch expired or told what is unreadable or not accepted, and a LIST follows in pages, which at a revision are of exactly that state | `""` |
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
//! | doubted before its end, and it has left known objects undecoded (a LIST too) | another one at `""`, at once if all was well |
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
//! | doubted, because a consistency check found a difference | a list at `""`, at once if all was well |
//!
//! All is well also when the server answers again after it could not be reached: each pause of an
//! outage earns one "at once", for what comes then is another matter.
//!
//! One object is requested, not older than the last revision, before a watch goes on that lost its
//! connection, was closed before its time, found no listener, was refused with 502, 503 or 504, or received
//! no response headers: at most once a minute. A probe that would come earlier is sent beside the open
//! watch when the minute is over. A 401 owes no probe: credentials say nothing about the server's history.
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
//! its revisions are (it is of another [`Timeline`]), wherever the server has come to by then:
//!
//! | what is noticed | what it says |
//! | --- | --- |
//! | an event older than the object in the cache | it has gone back |
//! | a probe, a list or the end of a streaming list older than the last revision | it has gone back |
//! | any other event, or a bookmark, below the last revision | nothing: an aggregated API server may send old objects late; a probe shows it |
//! | `TooLarge`, whatever was asked | nothing yet: it lags behind, or the list that follows is older |
//! | a doubt, also one that arrives while a list is in progress | it may have, and waits and pending writes go on |
//! | a reflector before this one, which may have noticed any of it | it may have |

use std::{cmp::Ordering, time::Duration};

use tokio::time::Instant;

use self::refusals::Refusals;
use super::{
    backoff::Backoff,
    options::RequestOptions,
    probe::Probe,
    retry_budget::RetryBudget,
    rollback::RollbackDetection,
    streaming::{InitialList, Streaming},
};
use crate::{
    limits::RETRY_AFTER_MAX,
    object::{ResourceVersion, Timeline},
    transport::{AfterPage, Class, Error, FrameKind, ListEnd, ListOptions, Pager},
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
    /// Ask for a list, or its next page. Before the `first` page what was staged is thrown away.
    List { options: ListOptions, first: bool },
    /// Hand the staged list on; once the store has accepted it, report [`Machine::replaced`].
    Replace(ResourceVersion),
    /// Open a watch that begins with everything there is. What was staged is thrown away.
    Stream(ListOptions),
    /// Open a watch.
    Watch(ListOptions),
    /// Ask for one object, only to see whether the server knows the revision; report
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
    /// The body ended in order, so long after the request.
    Closed(Duration),
    /// What it told was found not to be what the server has.
    Doubted,
    /// A streaming list has ended without objects, and the cache has some.
    Unconfirmed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    List,
    Watch,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that hold or don't, each of them independent of the others"
)]
#[derive(Debug)]
pub(crate) struct Machine {
    options: RequestOptions,
    /// The source need not know what a probe requests.
    skips_probes: bool,
    rng: fastrand::Rng,
    backoff: Backoff,
    internal_errors: RetryBudget,
    streaming: Streaming,
    probe: Probe,
    refusals: Refusals,
    /// How long the last watch was asked to last.
    watch_lasts: Duration,
    /// The newest revision that the store has accepted; unset before the first list. It drops with a list
    /// only.
    last: ResourceVersion,
    /// What is heard now. It is another one than that of `last` from when the server is noticed to have
    /// gone back, or may have, until the store has accepted a list.
    timeline: Timeline,
    /// Events below `last` are no reason to ask the server: it has answered since the last list.
    is_unordered: bool,
    /// Before when the server is not to be asked for a watch, though one is open.
    held_until: Option<Instant>,
    /// `last` is of no use to the server any more, so the next list asks for the newest state.
    last_unavailable: bool,
    /// The server said that it has not come so far as the last revision: it has gone back, or is one of
    /// several that lags behind.
    is_behind: bool,
    /// A list at `"0"` once came in pages, which a server without watch cache does: keep paging.
    pages_at_zero: bool,
    /// Where a watch expired last, or told what is of no use. What is listed at that revision may lead
    /// back here for ever.
    stuck_at: Option<ResourceVersion>,
    pager: Option<Pager>,
    /// The one immediate retry at `""` of this attempt has been used.
    retried_unset: bool,
    after_sleep: Next,
    /// Whether the running watch's events advance `last` yet.
    advances: bool,
    /// Whether the server has ever sent a bookmark of its own accord.
    sends_bookmarks: bool,
    /// Whether a watch has been open since the last list, be it in an earlier life.
    has_watched: bool,
    short_closes: u32,
}

impl Machine {
    pub(crate) fn new(options: RequestOptions, rng: fastrand::Rng) -> Self {
        Self {
            backoff: Backoff::new(options.backoff()),
            internal_errors: RetryBudget::new(options.internal_error_retry()),
            streaming: Streaming::new(options.initial_list()),
            probe: Probe::default(),
            refusals: Refusals::default(),
            watch_lasts: Duration::ZERO,
            options,
            skips_probes: false,
            rng,
            last: ResourceVersion::UNSET,
            timeline: Timeline::FIRST,
            is_unordered: false,
            held_until: None,
            last_unavailable: false,
            is_behind: false,
            pages_at_zero: false,
            stuck_at: None,
            pager: None,
            retried_unset: false,
            after_sleep: Next::List,
            advances: true,
            sends_bookmarks: false,
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
        &self.last
    }

    /// Pages received of the list under way.
    pub(crate) fn pages(&self) -> u32 {
        self.pager.as_ref().map_or(0, Pager::pages)
    }

    /// A page has come, whole.
    ///
    /// # Errors
    /// The server repeats itself; to be reported, and passed to [`Machine::list_failed`].
    pub(crate) fn page(&mut self, end: &ListEnd) -> Result<Action, Error> {
        let Some(pager) = &mut self.pager else {
            return Ok(self.list());
        };
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
                    self.pages_at_zero = true;
                }
                Ok(Action::Replace(revision))
            }
        }
    }

    /// The store has accepted the list of this revision.
    pub(crate) fn replaced(&mut self, revision: ResourceVersion, now: Instant) -> Action {
        self.pager = None;
        self.accepted(revision, now);
        self.watch()
    }

    fn accepted(&mut self, revision: ResourceVersion, now: Instant) {
        self.last = revision.on(self.timeline);
        self.last_unavailable = false;
        self.is_behind = false;
        self.has_watched = false;
        self.is_unordered = false;
        self.held_until = None;
        self.probe.listed();
        self.refusals.listed();
        self.backoff.succeeded(now);
    }

    /// A list, or one of its pages, failed.
    pub(crate) fn list_failed(&mut self, error: &Error, now: Instant) -> Action {
        let class = error.class();
        self.note(class);
        if let Some(pager) = &mut self.pager
            && pager.restarts_after(class)
        {
            return Action::List {
                options: pager.request().clone(),
                first: true,
            };
        }
        if matches!(class, Class::Expired | Class::TooLargeResourceVersion) {
            self.last_unavailable = true;
            if !std::mem::replace(&mut self.retried_unset, true) {
                return self.list_request();
            }
        }
        self.pause(error, now, Next::List)
    }

    /// The server has accepted the watch. (A streaming list is a success only with its end.)
    pub(crate) fn watch_opened(&mut self, now: Instant) {
        if self.is_streaming() {
            self.streaming.begin(now);
        } else {
            self.has_watched = true;
            self.refusals.watch_opened();
            self.backoff.succeeded(now);
        }
    }

    /// How long a watch may be silent; `None` while it is not known that the server sends bookmarks.
    pub(crate) fn silence_allowed(&self) -> Option<Duration> {
        self.sends_bookmarks
            .then_some(self.options.timeouts().silence)
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
        self.advances |= *kind != FrameKind::Added;
        self.sends_bookmarks |= *kind == FrameKind::Bookmark;
        if let Some(revision) = revision
            && self.advances
            && !revision.is_unset()
            && revision.partial_cmp(&self.last) != Some(Ordering::Less)
        {
            self.last = revision.on(self.timeline);
        }
    }

    /// The pause is over.
    pub(crate) fn slept(&mut self, now: Instant) -> Action {
        self.go_on(now)
    }

    fn go_on(&mut self, now: Instant) -> Action {
        match self.after_sleep {
            Next::List => self.everything(now),
            Next::Watch => self.resume(now),
        }
    }

    /// Nothing may be wrong with the server, so the first such end after health costs no pause.
    fn at_once_after_health(&mut self, now: Instant, next: Next) -> Action {
        self.after_sleep = next;
        let pause = self.backoff.first_is_free(now, &mut self.rng);
        if pause.is_zero() {
            return self.go_on(now);
        }
        Action::Sleep(pause)
    }

    fn pause(&mut self, error: &Error, now: Instant, next: Next) -> Action {
        self.after_sleep = next;
        let pause = if error.is_outage() {
            self.backoff.out(now, &mut self.rng)
        } else {
            self.backoff.failed(now, &mut self.rng)
        };
        let asked_for = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
        Action::Sleep(pause.max(asked_for))
    }

    /// Everything there is, in the way that is wanted and that the server allows.
    fn everything(&mut self, now: Instant) -> Action {
        if self.streaming.is_due(now) {
            return self.stream(now);
        }
        self.list()
    }

    /// What everything there is must not be older than.
    fn revision_of_everything(&self) -> ResourceVersion {
        if self.last_unavailable {
            return ResourceVersion::UNSET;
        }
        self.last.clone()
    }

    fn list(&mut self) -> Action {
        self.retried_unset = false;
        self.list_request()
    }

    fn list_request(&mut self) -> Action {
        let is_newest = self.options.initial_list() == InitialList::Pages;
        let mut resource_version = self.revision_of_everything();
        if is_newest {
            resource_version = ResourceVersion::UNSET;
        } else if resource_version.is_unset() && !self.last_unavailable {
            resource_version = ResourceVersion::ZERO;
        }
        let own_size = Some(self.options.page_size()).filter(|size| *size > 0);
        // Pages of a revision are of exactly that, and no watch gets on from this one.
        let in_pages = own_size.is_some() || self.pages_at_zero;
        if in_pages && self.stuck_at.as_ref() == Some(&resource_version) {
            resource_version = ResourceVersion::UNSET;
        }
        let from_storage_or_any = resource_version.is_unset() || resource_version.is_zero();
        // A page size with another revision would bypass the server's watch cache.
        let default_size = (self.pages_at_zero || from_storage_or_any).then_some(PAGE_SIZE);
        let options = ListOptions {
            limit: own_size.or(default_size),
            resource_version,
            ..ListOptions::default()
        };
        self.pager = Some(Pager::new(options.clone()));
        Action::List {
            options,
            first: true,
        }
    }

    /// Whether `last` is a place in the server's history.
    fn is_ordered(&self) -> bool {
        !(self.last.is_unset() || self.last.is_zero())
    }

    fn watch(&mut self) -> Action {
        self.advances = self.is_ordered();
        Action::Watch(ListOptions {
            resource_version: self.last.clone(),
            ..self.watch_options()
        })
    }

    /// What every watch is asked with.
    fn watch_options(&mut self) -> ListOptions {
        let min = self
            .options
            .watch_timeout_min()
            .max(WATCH_TIMEOUT_MIN)
            .as_secs();
        let seconds = self.rng.u64(min..=min.saturating_mul(2));
        self.watch_lasts = Duration::from_secs(seconds);
        ListOptions {
            timeout_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)),
            allow_watch_bookmarks: true,
            ..ListOptions::default()
        }
    }
}

mod ends;
mod history;
mod probing;
mod refusals;
mod stream;
#[cfg(test)]
mod tests;
