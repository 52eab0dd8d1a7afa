//! [`SourceStatus`]: what one reflector of an informer is doing.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{object::ResourceVersion, transport};

/// What the reflector of one source is doing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SourceStatus {
    /// What it lists and watches, as its
    /// [`ListerWatcher`](crate::transport::ListerWatcher::description) says it: `pods in shop`.
    pub description: Arc<str>,
    /// What it does right now.
    pub activity: Activity,
    /// The newest revision it has handed on; unset before the first list.
    pub revision: ResourceVersion,
    pub(super) last_event: Option<Instant>,
    pub(super) last_bookmark: Option<Instant>,
    /// The last failure, which may be long past: [`SourceStatus::activity`] says what is now.
    pub last_error: Option<Arc<transport::Error>>,
    pub(super) last_failure: Option<Instant>,
    /// The first failure since something worked.
    pub(super) failing: Option<Instant>,
}

/// What a reflector does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Not started yet.
    #[default]
    Idle,
    /// A list is on its way.
    Listing {
        /// The page that is being read, from 1.
        page: u32,
        /// Objects received so far.
        objects: usize,
    },
    /// A streaming list is on its way: a watch that begins with everything there is.
    Streaming {
        /// Objects received so far.
        objects: usize,
    },
    /// A watch was asked for and is not open yet.
    Opening,
    /// A watch is open.
    Watching,
    /// What a list or a watch has brought has been waiting for a second or longer to be taken by the
    /// store, which is full: a handler with a full
    /// [`Block`](crate::shared_informer::ListenerBuffer::Block) buffer holds it up, or a store of one's
    /// own. Nothing is read meanwhile, so the cache is behind the server.
    StoreFull,
    /// Waiting after a failure.
    BackingOff {
        /// How long it waits altogether.
        pause: Duration,
        /// Failures in a row.
        attempt: u32,
    },
    /// The definition of the kind was deleted, and nothing is requested until it exists again. Only of
    /// informers of a factory that follows definitions.
    NotServed,
    /// It has ended and won't come back.
    Stopped,
}

impl Activity {
    /// Whether the next one is the same but for the number of objects.
    pub(super) fn only_counts_on(self, next: Self) -> bool {
        match (self, next) {
            (Self::Listing { page, .. }, Self::Listing { page: next, .. }) => page == next,
            (Self::Streaming { .. }, Self::Streaming { .. }) => true,
            (before, next) => before == next,
        }
    }
}

impl SourceStatus {
    /// How long ago the last event came (a bookmark is one), or the last list was complete.
    pub fn since_last_event(&self) -> Option<Duration> {
        self.last_event.map(|at| at.elapsed())
    }

    /// How long ago the last bookmark came.
    pub fn since_last_bookmark(&self) -> Option<Duration> {
        self.last_bookmark.map(|at| at.elapsed())
    }

    /// How long ago the last failure was.
    pub fn since_last_error(&self) -> Option<Duration> {
        self.last_failure.map(|at| at.elapsed())
    }

    /// For how long every request has failed; `None` once a list is complete, a watch is open or an
    /// event has come.
    pub fn failing_for(&self) -> Option<Duration> {
        self.failing.map(|at| at.elapsed())
    }

    /// Whether it has handed on a list, or goes on from a saved one. What is listed may not be in the
    /// cache yet: that takes its time, and if it is not the first list, a handler with a full
    /// [`Block`](crate::shared_informer::ListenerBuffer::Block) buffer holds it up.
    pub fn is_listed(&self) -> bool {
        !self.revision.is_unset()
    }

    /// Less for what is further from watching.
    pub(super) fn rank(&self) -> u8 {
        match self.activity {
            Activity::Stopped => 0,
            Activity::BackingOff { .. } | Activity::NotServed => 1,
            Activity::Idle => 2,
            Activity::Listing { .. } | Activity::Streaming { .. } => 3,
            Activity::Opening => 4,
            Activity::StoreFull => 5,
            Activity::Watching => 6,
        }
    }
}
