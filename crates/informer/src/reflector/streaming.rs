//! When a reflector streams its list, when it gives up waiting for the end, and when it lists
//! instead; pure, told the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::{clock, codec::FrameKind, object::ResourceVersion};

/// So many streams in a row that end before their end bookmark, and everything is listed. One is what
/// any restart of a server costs, two are bad luck.
const ATTEMPTS: u32 = 3;

/// A server that does not stream lists is asked again after so long. A control plane is upgraded
/// within the hour, and what is asked in vain costs a refusal, or
/// [`TimeoutConfig::initial_events`](super::TimeoutConfig::initial_events), of the few relists that a
/// reflector ever makes.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(3600);

/// How a reflector asks for everything: first of all, and whenever watching can't bring it there.
#[doc(alias = "WatchListClient")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialList {
    /// With a watch that begins with everything there is (`sendInitialEvents`), and goes on as the
    /// watch: one request, which the server answers out of its watch cache, object by object. What
    /// it refuses, does not finish or does not understand is listed in the same attempt.
    ///
    /// Servers stream lists by default since Kubernetes 1.34, and not before 1.27. Those that don't
    /// answer 422, as 1.27 and later with the feature off (`sendInitialEvents is forbidden for
    /// watch`) and those before 1.27 (`resourceVersionMatch is forbidden for watch`); or they know
    /// neither parameter, as before 1.19, and never send the end.
    Streaming,
    /// With LIST of any state that the server's watch cache has (`resourceVersion=0`, and later the last
    /// revision seen), and then a watch from its revision. The server makes its answer as a whole: it takes
    /// about half the CPU time of a streaming list, and as much memory as all objects for each client that
    /// lists at the same time.
    List,
    /// With LIST of the newest state in pages of 500, or of what `page_size` says, and then a watch from the
    /// revision of all pages. It takes the server as little CPU time as [`List`](Self::List), and as little
    /// memory as [`Streaming`](Self::Streaming).
    ///
    /// Servers answer pages out of their watch cache by default since Kubernetes 1.34
    /// (`ListFromCacheSnapshot`). Earlier ones read them from etcd, as they do for kube-rs.
    #[default]
    Pages,
}

/// What is remembered of the streaming lists before.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    wanted: bool,
    /// Streams in a row that ended before their end bookmark.
    failed: u32,
    /// Until when the server counts as one that does not stream lists.
    refused_until: Option<Instant>,
}

impl Streaming {
    pub(super) fn new(initial_list: InitialList) -> Self {
        Self {
            wanted: initial_list == InitialList::Streaming,
            ..Self::default()
        }
    }

    /// Whether the next list shall be streamed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.wanted && self.refused_until.is_none_or(|until| now >= until)
    }

    /// The end bookmark has come, and the store has accepted everything.
    pub(super) fn succeeded(&mut self) {
        self.failed = 0;
    }

    /// The stream has ended before its end bookmark; whether it was one too many.
    pub(super) fn broke_off(&mut self, now: Instant) -> bool {
        self.failed += 1;
        if self.failed < ATTEMPTS {
            return false;
        }
        self.refused(now);
        true
    }

    /// The server does not stream lists.
    pub(super) fn refused(&mut self, now: Instant) {
        self.failed = 0;
        self.refused_until = Some(clock::after(now, ASKED_AGAIN_AFTER));
    }
}

/// A streaming list under way.
#[derive(Debug)]
pub(super) struct Stream {
    /// How long the server was asked to let the watch last that it goes on as.
    lasts: Duration,
    /// When the last new object came; at first, when the server was asked or has answered.
    progress: Instant,
    /// The revision of the first event that told of a change instead of what there is. What is newer
    /// need not be part of the list.
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

    /// The server has answered.
    pub(super) fn opened(&mut self, now: Instant) {
        self.progress = now;
    }

    /// How long the server was asked to let the watch last that it goes on as.
    pub(super) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// An event has come; `is_new` if it brought an object that the stream had not brought before.
    ///
    /// A server that ignores what it was asked for sends what there is, as it should, and then
    /// changes for ever: so a new object counts only if it is not newer than the first change.
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

    /// When the end is no longer waited for.
    pub(super) fn deadline(&self, allowed: Duration) -> Instant {
        clock::after(self.progress, allowed)
    }
}
