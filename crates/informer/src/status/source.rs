//! [`SourceStatus`]: the state of one reflector of an informer.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{object::ResourceVersion, transport};

/// The state of the reflector of one source.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SourceStatus {
    /// The collection that the reflector lists and watches, such as `pods in shop`, from
    /// [`ListerWatcher::description`](crate::transport::ListerWatcher::description).
    pub description: Arc<str>,
    /// The reflector's current activity.
    pub activity: Activity,
    /// The newest revision that the reflector has delivered to the queue; unset before the first list.
    pub revision: ResourceVersion,
    pub(super) last_event: Option<Instant>,
    pub(super) last_bookmark: Option<Instant>,
    /// The last failure of a list or watch, which may be long past; see [`SourceStatus::activity`] for the
    /// current state.
    pub last_error: Option<Arc<transport::Error>>,
    pub(super) last_failure: Option<Instant>,
    /// Time of the first failure since the last success.
    pub(super) failing: Option<Instant>,
}

/// The activity of a reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// The reflector has not started yet.
    #[default]
    Idle,
    /// The reflector reads a list in pages.
    Listing {
        /// The page that the reflector is reading, counted from 1.
        page: u32,
        /// Number of objects received so far.
        objects: usize,
    },
    /// The reflector reads a streaming list: a watch that begins with all current objects.
    Streaming {
        /// Number of objects received so far.
        objects: usize,
    },
    /// The reflector has requested a watch that is not open yet.
    Opening,
    /// The watch is open.
    Watching,
    /// The store has been full for at least one second, and does not accept what the list or watch delivered.
    ///
    /// The reason is a handler with a full [`Block`](crate::shared_informer::ListenerBuffer::Block) buffer, or a
    /// custom store. The reflector reads nothing in this state, so the cache is behind the server.
    StoreFull,
    /// The reflector waits before the next request.
    BackingOff {
        /// Total length of the pause.
        pause: Duration,
        /// Number of consecutive failures.
        attempt: u32,
    },
    /// The definition of the kind was deleted, and the reflector sends no requests until it exists again.
    /// Only informers of a factory that follows definitions have this state.
    NotServed,
    /// The reflector has ended, and does not restart.
    Stopped,
}

impl Activity {
    /// Returns whether `next` differs from this activity at most in the number of objects.
    pub(super) fn only_counts_on(self, next: Self) -> bool {
        match (self, next) {
            (Self::Listing { page, .. }, Self::Listing { page: next, .. }) => page == next,
            (Self::Streaming { .. }, Self::Streaming { .. }) => true,
            (before, next) => before == next,
        }
    }
}

impl SourceStatus {
    /// Returns the time since the last event, including bookmarks, or the last complete list.
    pub fn since_last_event(&self) -> Option<Duration> {
        self.last_event.map(|at| at.elapsed())
    }

    /// Returns the time since the last bookmark.
    pub fn since_last_bookmark(&self) -> Option<Duration> {
        self.last_bookmark.map(|at| at.elapsed())
    }

    /// Returns the time since the last failure.
    pub fn since_last_error(&self) -> Option<Duration> {
        self.last_failure.map(|at| at.elapsed())
    }

    /// Returns how long all requests have failed; `None` since the last complete list, opened watch, or
    /// event.
    pub fn failing_for(&self) -> Option<Duration> {
        self.failing.map(|at| at.elapsed())
    }

    /// Returns whether the reflector has delivered a list, or resumed from a saved store.
    ///
    /// The list may not be in the cache yet. Unless it is the first list, a handler with a full
    /// [`Block`](crate::shared_informer::ListenerBuffer::Block) buffer can delay it.
    pub fn is_listed(&self) -> bool {
        !self.revision.is_unset()
    }

    /// Returns the rank of the activity; a lower rank is further from watching.
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
