//! Decides whether the next list is a streaming list, and when a streaming list has missed its deadline.
//!
//! The caller passes the current time. The module sends no requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::{clock, codec::FrameKind, object::ResourceVersion};

/// Number of consecutive incomplete streaming lists after which the reflector sends a LIST.
const ATTEMPTS: u32 = 3;

/// Time for which the reflector sends LISTs instead of streaming lists, after [`Streaming::refused`].
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(3600);

/// The kind of request with which a reflector lists all objects, at the start and when a watch can't be
/// resumed.
#[doc(alias = "WatchListClient")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialList {
    /// A streaming list (`sendInitialEvents`): one watch sends all objects, then their changes.
    ///
    /// The API server sends the objects from its watch cache, one at a time. If the server does not support
    /// streaming lists, the reflector sends a LIST instead, without a pause. The reflector also sends a LIST
    /// if three streaming lists in a row are incomplete.
    ///
    /// Servers support streaming lists since Kubernetes 1.27, by default since 1.34. If the feature is
    /// disabled, they respond with 422 `sendInitialEvents is forbidden for watch`. Servers from 1.19 to 1.26
    /// respond with 422 `resourceVersionMatch is forbidden for watch`. Servers before 1.19 ignore
    /// `sendInitialEvents` and `resourceVersionMatch`, and never send the end bookmark.
    Streaming,
    /// A LIST with `resourceVersion=0`, which the server may answer with any state of its watch cache. A
    /// watch from the revision of the list follows.
    ///
    /// Later LISTs request a state that is at least as new as the last revision that the reflector received.
    ///
    /// The server builds the whole response in memory, separately for each client that lists at the same
    /// time. A LIST needs about half the CPU time of a streaming list.
    List,
    /// A LIST of the newest state in pages, then a watch from the revision of that state.
    ///
    /// A page has 500 objects, or the number set with `page_size`.
    ///
    /// The server needs as little CPU time as for [`List`](Self::List), and as little memory as for
    /// [`Streaming`](Self::Streaming).
    ///
    /// Servers read pages from their watch cache by default since Kubernetes 1.34 (`ListFromCacheSnapshot`).
    /// Earlier servers read them from etcd.
    #[default]
    Pages,
}

/// Decides from the configuration and earlier failures whether the next list is a streaming list.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    wanted: bool,
    /// Number of consecutive streaming lists that ended before their end bookmark.
    failed: u32,
    /// Time before which no streaming list is requested.
    refused_until: Option<Instant>,
}

impl Streaming {
    pub(super) fn new(initial_list: InitialList) -> Self {
        Self {
            wanted: initial_list == InitialList::Streaming,
            ..Self::default()
        }
    }

    /// Returns whether a list requested at the time `now` must be a streaming list.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.wanted && self.refused_until.is_none_or(|until| now >= until)
    }

    pub(super) fn succeeded(&mut self) {
        self.failed = 0;
    }

    /// Records an incomplete streaming list, and returns whether a LIST must follow.
    pub(super) fn broke_off(&mut self, now: Instant) -> bool {
        self.failed += 1;
        if self.failed < ATTEMPTS {
            return false;
        }
        self.refused(now);
        true
    }

    /// Suspends streaming lists for [`ASKED_AGAIN_AFTER`].
    ///
    /// The reflector calls this method in each of these cases:
    /// - The server rejected a streaming list as an invalid request.
    /// - A streaming list was too slow, or the store did not accept it in time.
    /// - The server closed a streaming list after five minutes or more, without an end bookmark.
    /// - [`ATTEMPTS`] consecutive streaming lists were incomplete.
    ///
    /// A rejection for a different reason, such as 403, does not suspend streaming lists.
    pub(super) fn refused(&mut self, now: Instant) {
        self.failed = 0;
        self.refused_until = Some(clock::after(now, ASKED_AGAIN_AFTER));
    }
}

/// State of a streaming list in progress.
#[derive(Debug)]
pub(super) struct Stream {
    /// Server-side timeout (`timeoutSeconds`) of the streaming list together with the watch that follows.
    lasts: Duration,
    /// Time of the last progress: when the request was sent, when its response began, or when a new initial
    /// object arrived. An object that arrives a second time is no progress.
    progress: Instant,
    /// Revision of the first event that reports a change instead of an existing object.
    live_from: Option<ResourceVersion>,
}

impl Stream {
    pub(super) fn new(lasts: Duration, now: Instant) -> Self {
        Self {
            lasts,
            progress: now,
            live_from: None,
        }
    }

    pub(super) fn opened(&mut self, now: Instant) {
        self.progress = now;
    }

    pub(super) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// Records an event of the streaming list.
    ///
    /// Only an event with a new initial object extends the deadline of the list. `is_new` is true if the list
    /// does not contain the event's object yet.
    pub(super) fn event(
        &mut self,
        kind: &FrameKind,
        revision: Option<&ResourceVersion>,
        is_new: bool,
        now: Instant,
    ) {
        let live = &mut self.live_from;
        if live.is_none() && *kind != FrameKind::Added {
            *live = revision.cloned();
        }
        // Changes do not extend the deadline: a server that ignores `sendInitialEvents` sends changes
        // forever, but no end bookmark.
        let is_live = matches!((&*live, revision), (Some(live), Some(at)) if at >= live);
        if is_new && !is_live {
            self.progress = now;
        }
    }

    /// Returns the time by which the stream must send another initial object or the end bookmark.
    pub(super) fn deadline(&self, allowed: Duration) -> Instant {
        clock::after(self.progress, allowed)
    }
}
