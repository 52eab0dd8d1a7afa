//! Defines [`SourceStatus`], the state of the reflector of one source.
//!
//! A source is a collection of objects that the informer lists and watches, such as the pods of one
//! namespace.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{object::ResourceVersion, transport};

/// The state of one reflector: its activity, its last revision and its last failure.
///
/// A reflector lists and watches one source: a collection of objects, such as the pods of one namespace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SourceStatus {
    /// Name of the collection that the reflector lists and watches, such as `pods in shop`. The name is the
    /// result of [`ListerWatcher::description`](crate::transport::ListerWatcher::description).
    pub description: Arc<str>,
    /// The reflector's current activity.
    pub activity: Activity,
    /// The newest revision that the reflector has delivered to the queue. The revision is unset before the
    /// first list.
    pub revision: ResourceVersion,
    pub(super) last_event: Option<Instant>,
    pub(super) last_bookmark: Option<Instant>,
    /// The last failure of a list or watch; `None` if none has failed. The failure may be old.
    /// [`SourceStatus::activity`] shows whether the reflector currently waits after a failure.
    pub last_error: Option<Arc<transport::Error>>,
    pub(super) last_failure: Option<Instant>,
    /// Time of the first failure since the last complete list, opened watch or event.
    pub(super) failing: Option<Instant>,
}

/// The current activity of a reflector, such as a list, an open watch or a pause.
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
        /// Number of objects received so far, in all pages of the list.
        objects: usize,
    },
    /// The reflector reads a streaming list: a watch that begins with all current objects.
    Streaming {
        /// Number of objects received so far.
        objects: usize,
    },
    /// The reflector waits for the response to a watch request.
    ///
    /// This state includes a request that the reflector may send before the watch, to check whether the
    /// server has returned to an earlier state, for example after a restore from a backup.
    Opening,
    /// The watch is open, and the reflector waits for events.
    Watching,
    /// The reflector waits until its store accepts a change.
    ///
    /// The state begins after a wait of one second, or of
    /// [`TimeoutConfig::full_store`](crate::reflector::TimeoutConfig::full_store) if that is shorter. In an
    /// informer, the cause is a handler whose
    /// [`Block`](crate::shared_informer::ListenerBuffer::Block) buffer is full. A custom
    /// [`ReflectorStore`](crate::reflector::ReflectorStore) may have other reasons. The reflector reads no
    /// events in this state, so the cache becomes outdated.
    StoreFull,
    /// The reflector waits before the next request.
    BackingOff {
        /// Total length of the pause.
        pause: Duration,
        /// Number of consecutive failures before the pause. Zero if the pause does not follow a failure.
        attempt: u32,
    },
    /// The definition (CRD) of the kind was deleted. The reflector sends no requests until the definition
    /// exists again. This state occurs only in informers of a factory that is configured to watch
    /// definitions.
    NotServed,
    /// The reflector has ended, and does not restart.
    Stopped,
}

impl Activity {
    /// Returns whether `self` and `next` differ at most in the number of received objects.
    ///
    /// Such a change does not wake the tasks that wait for a change of the status.
    pub(super) fn only_counts_on(self, next: Self) -> bool {
        match (self, next) {
            (Self::Listing { page, .. }, Self::Listing { page: next, .. }) => page == next,
            (Self::Streaming { .. }, Self::Streaming { .. }) => true,
            (before, next) => before == next,
        }
    }
}

impl SourceStatus {
    /// Returns the time since the last event, bookmark or complete list; `None` before the first one.
    pub fn since_last_event(&self) -> Option<Duration> {
        self.last_event.map(|at| at.elapsed())
    }

    /// Returns the time since the last bookmark; `None` before the first one.
    pub fn since_last_bookmark(&self) -> Option<Duration> {
        self.last_bookmark.map(|at| at.elapsed())
    }

    /// Returns the time since the last failure of a list or watch; `None` if no list or watch has failed.
    pub fn since_last_error(&self) -> Option<Duration> {
        self.last_failure.map(|at| at.elapsed())
    }

    /// Returns the time since the first failure after the last success. A success is a complete list, an
    /// opened watch or an event. `None` if no failure followed the last success.
    pub fn failing_for(&self) -> Option<Duration> {
        self.failing.map(|at| at.elapsed())
    }

    /// Returns whether the reflector has delivered a list to the queue, or resumed its watch after a [warm
    /// start](crate::warm_start). The cache may not contain the list yet.
    pub fn is_listed(&self) -> bool {
        !self.revision.is_unset()
    }

    /// Returns the rank of the source's activity.
    ///
    /// [`Status::activity`](super::Status::activity) returns the activity of the source with the lowest rank.
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
