//! Decides whether the next list is a streaming list, and when to stop waiting for its end.
//!
//! The caller passes the current time; the module sends nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::{clock, codec::FrameKind, object::ResourceVersion};

/// Maximum number of consecutive streaming lists that end before their end bookmark; a LIST follows. A server
/// restart explains one.
const ATTEMPTS: u32 = 3;

/// Interval between requests for a streaming list to a server without support. It is longer than a control plane
/// upgrade. A failed attempt costs a rejected request, or the wait of
/// [`TimeoutConfig::initial_events`](super::TimeoutConfig::initial_events).
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(3600);

/// How a reflector requests all objects: at the start, and when a watch can't be resumed.
#[doc(alias = "WatchListClient")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialList {
    /// A streaming list (`sendInitialEvents`): one watch sends all objects, then their changes.
    ///
    /// The API server sends it from its watch cache, one object at a time. If the server rejects it, does not
    /// complete it or does not support it, a LIST follows in the same attempt.
    ///
    /// Servers support streaming lists since Kubernetes 1.27, by default since 1.34. Other servers respond with
    /// 422: `sendInitialEvents is forbidden for watch` if the feature is disabled, `resourceVersionMatch is
    /// forbidden for watch` before 1.27. Servers before 1.19 know neither parameter, and never send the end
    /// bookmark.
    Streaming,
    /// A LIST of any state in the server's watch cache, then a watch from its revision.
    ///
    /// The first request has `resourceVersion=0`, later ones the last revision seen.
    ///
    /// The server builds the whole response in memory: as much as all objects, for each client that lists at the
    /// same time. It needs about half the CPU time of a streaming list.
    List,
    /// A LIST of the newest state in pages, then a watch from their revision.
    ///
    /// A page has 500 objects, or `page_size`.
    ///
    /// The server needs as little CPU time as for [`List`](Self::List), and as little memory as for
    /// [`Streaming`](Self::Streaming).
    ///
    /// Servers read pages from their watch cache by default since Kubernetes 1.34 (`ListFromCacheSnapshot`).
    /// Earlier servers read them from etcd.
    #[default]
    Pages,
}

/// Results of earlier streaming lists.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    wanted: bool,
    /// Number of consecutive streaming lists that ended before their end bookmark.
    failed: u32,
    /// Time until which no streaming list is requested.
    refused_until: Option<Instant>,
}

impl Streaming {
    pub(super) fn new(initial_list: InitialList) -> Self {
        Self {
            wanted: initial_list == InitialList::Streaming,
            ..Self::default()
        }
    }

    /// Returns whether the next list is a streaming list.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.wanted && self.refused_until.is_none_or(|until| now >= until)
    }

    /// Records that the store has accepted a complete streaming list.
    pub(super) fn succeeded(&mut self) {
        self.failed = 0;
    }

    /// Records a streaming list that ended before its end bookmark. Returns whether a LIST must follow.
    pub(super) fn broke_off(&mut self, now: Instant) -> bool {
        self.failed += 1;
        if self.failed < ATTEMPTS {
            return false;
        }
        self.refused(now);
        true
    }

    /// Records that the server does not support streaming lists.
    pub(super) fn refused(&mut self, now: Instant) {
        self.failed = 0;
        self.refused_until = Some(clock::after(now, ASKED_AGAIN_AFTER));
    }
}

/// A streaming list in progress.
#[derive(Debug)]
pub(super) struct Stream {
    /// The requested timeout of the stream, including the watch that it continues as.
    lasts: Duration,
    /// Time of the last new object; before the first one, of the request or of the response headers.
    progress: Instant,
    /// Revision of the first event that is a change and not an existing object. Objects from this revision on need
    /// not be part of the list.
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

    /// Records the response headers.
    pub(super) fn opened(&mut self, now: Instant) {
        self.progress = now;
    }

    /// The requested timeout of the stream, including the watch that it continues as.
    pub(super) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// Records an event. `is_new` is set for an object that the stream has not sent before.
    ///
    /// A server that ignores `sendInitialEvents` sends the existing objects, then changes without end. A new
    /// object therefore counts as progress only before the first change, or if it is older.
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
        let is_live = matches!((&*live, revision), (Some(live), Some(at)) if at >= live);
        if is_new && !is_live {
            self.progress = now;
        }
    }

    /// Returns the deadline of the end bookmark, unless another new object arrives before.
    pub(super) fn deadline(&self, allowed: Duration) -> Instant {
        clock::after(self.progress, allowed)
    }
}
