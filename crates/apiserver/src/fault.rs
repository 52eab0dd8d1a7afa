//! Failures on demand.
//!
//! Guarantees:
//! - a fault takes effect at once and exactly as often as asked, in the order in which faults were added;
//! - faults touch requests and open watches, never the store: [`crate::Server::get`] and its siblings always tell the truth;
//! - calls are synchronous, so a sequence of faults and writes without an `.await` between them is one moment for every client.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::request_log::LoggedRequest;
use crate::route::Verb;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::watch_cache::Delivery;

/// The switchboard of a server's faults; cheap to clone.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

/// Which requests a fault is for; every condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    verb: Option<Verb>,
    resource: Option<String>,
    user_agent: Option<String>,
    name: Option<String>,
}

/// A planned answer, to be refined; it is in force from the call that made it, also if this is dropped.
#[derive(Clone)]
pub struct Answer {
    shared: Arc<Shared>,
    id: u64,
}

/// What open watches and listeners obey.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Orders {
    /// Watches opened before this count of cuts are over.
    pub(crate) cuts: u64,
    /// Whether the last cut was an error instead of an end.
    pub(crate) broken: bool,
    pub(crate) frozen: bool,
    pub(crate) refusing: bool,
}

/// The faults in force.
pub(crate) struct FaultPlan {
    orders: watch::Sender<Orders>,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    last: u64,
    planned: BTreeMap<u64, Planned>,
}

struct Planned {
    matches: Match,
    error: ApiError,
    left: u64,
}

// === impl Match ===

impl Match {
    /// Every request.
    pub fn any() -> Match {
        Match::default()
    }

    /// Lists of a resource, such as `pods`.
    pub fn list(resource: &str) -> Match {
        Match::verb(Verb::List, resource)
    }

    /// Watches of a resource, such as `pods`.
    pub fn watch(resource: &str) -> Match {
        Match::verb(Verb::Watch, resource)
    }

    /// One verb on a resource, such as `pods`.
    pub fn verb(verb: Verb, resource: &str) -> Match {
        Match {
            verb: Some(verb),
            resource: Some(resource.to_owned()),
            ..Match::default()
        }
    }

    /// Only those whose `User-Agent` contains this.
    #[must_use]
    pub fn from_user_agent(mut self, part: &str) -> Match {
        self.user_agent = Some(part.to_owned());
        self
    }

    /// Only those about an object of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Match {
        self.name = Some(name.to_owned());
        self
    }

    fn matches(&self, request: &LoggedRequest) -> bool {
        self.verb.is_none_or(|verb| verb == request.verb)
            && self
                .resource
                .as_ref()
                .is_none_or(|resource| *resource == request.resource)
            && self
                .user_agent
                .as_ref()
                .is_none_or(|part| request.user_agent.contains(part.as_str()))
            && self
                .name
                .as_ref()
                .is_none_or(|name| request.name.as_ref() == Some(name))
    }
}

// === impl Answer ===

impl Answer {
    /// How many requests get this answer; 1 if never said, 0 takes it back.
    pub fn times(&self, n: u64) -> &Answer {
        self.refine(|planned| planned.left = n)
    }

    /// Adds `Retry-After` and `details.retryAfterSeconds`.
    pub fn retry_after(&self, seconds: u32) -> &Answer {
        self.refine(|planned| planned.error = planned.error.clone().retry_in(seconds))
    }

    /// Answers what a server does that has not reached the revision asked for: 504 with the cause `ResourceVersionTooLarge`.
    pub fn too_large_revision(&self) -> &Answer {
        let current = self.shared.lock().storage.revision();
        self.refine(|planned| planned.error = ApiError::revision_too_large(current + 1, current))
    }

    fn refine(&self, change: impl FnOnce(&mut Planned)) -> &Answer {
        let mut answers = self.shared.faults.answers.lock();
        if let Some(planned) = answers.planned.get_mut(&self.id) {
            change(planned);
        }
        drop(answers);
        self
    }
}

// === impl Faults ===

impl Faults {
    pub(crate) fn new(shared: Arc<Shared>) -> Faults {
        Faults { shared }
    }

    /// Ends every open watch now, cleanly; what it was not yet told is lost to it.
    pub fn cut_watches(&self) {
        self.end_watches(false);
    }

    /// Ends every open watch now as a reset connection does: with an error in the body.
    pub fn break_watches(&self) {
        self.end_watches(true);
    }

    /// Keeps watches open but silent, also those opened while frozen; not even their deadline ends them.
    ///
    /// A watch that misses more events than its channel holds is closed at the thaw, as a slow one is.
    pub fn freeze_watches(&self) {
        self.shared
            .faults
            .orders
            .send_modify(|orders| orders.frozen = true);
    }

    /// Ends [`Faults::freeze_watches`]: what happened meanwhile is delivered.
    pub fn thaw_watches(&self) {
        self.shared
            .faults
            .orders
            .send_modify(|orders| orders.frozen = false);
    }

    /// Forgets all events: a watch from a revision below the present one is answered with an ERROR event of code 410, a list at an older revision or continue token with HTTP 410.
    ///
    /// Open watches stay open and lose nothing.
    pub fn expire_history(&self) {
        let mut state = self.shared.lock();
        state.storage.compact();
        let revision = state.storage.revision();
        for cache in &mut state.caches {
            cache.forget(revision);
        }
    }

    /// Answers the next matching request, or the next `n` with [`Answer::times`], with this HTTP status and the `Status` body that Kubernetes sends with it.
    ///
    /// Of several that match, the one added first is used up first.
    pub fn answer(&self, matches: Match, status: u16) -> Answer {
        let mut answers = self.shared.faults.answers.lock();
        answers.last += 1;
        let id = answers.last;
        let error = ApiError::of_code(status);
        answers.planned.insert(
            id,
            Planned {
                matches,
                error,
                left: 1,
            },
        );
        drop(answers);
        Answer {
            shared: Arc::clone(&self.shared),
            id,
        }
    }

    /// Takes back every planned answer that has not been given yet.
    pub fn clear_answers(&self) {
        self.shared.faults.answers.lock().planned.clear();
    }

    /// Refuses connections, or accepts them again: in process a request fails with an [`std::io::Error`] of kind `ConnectionRefused`, over TCP the listener is closed.
    ///
    /// Open watches go on; cut them too to play a server that is gone.
    pub fn refuse_connections(&self, refuse: bool) {
        self.shared
            .faults
            .orders
            .send_modify(|orders| orders.refusing = refuse);
    }

    /// Sends a bookmark at the present revision to every watch that allows bookmarks.
    pub fn send_bookmarks(&self) {
        let mut state = self.shared.lock();
        let revision = state.storage.revision();
        for cache in &mut state.caches {
            cache.send_to_all(|| Delivery::Bookmark(revision));
        }
    }

    /// Sends these bytes, as they are, to every open watch: an unknown event type, an object that can't be decoded, garbage.
    pub fn send_raw_to_watches(&self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        for cache in &mut self.shared.lock().caches {
            cache.send_to_all(|| Delivery::Raw(bytes.clone()));
        }
    }

    fn end_watches(&self, broken: bool) {
        // Held across both steps, so that no watch opens between them.
        let mut state = self.shared.lock();
        self.shared.faults.orders.send_modify(|orders| {
            orders.cuts += 1;
            orders.broken = broken;
        });
        for cache in &mut state.caches {
            cache.close_all();
        }
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

// === impl FaultPlan ===

impl FaultPlan {
    pub(crate) fn new() -> FaultPlan {
        FaultPlan {
            orders: watch::Sender::new(Orders::default()),
            answers: Mutex::default(),
        }
    }

    pub(crate) fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    pub(crate) fn refuses(&self) -> bool {
        self.orders.borrow().refusing
    }

    /// Uses up the planned answer for a request, if there is one.
    pub(crate) fn take(&self, request: &LoggedRequest) -> Option<ApiError> {
        let mut answers = self.answers.lock();
        let (id, planned) = answers
            .planned
            .iter_mut()
            .find(|(_, planned)| planned.left > 0 && planned.matches.matches(request))?;
        planned.left -= 1;
        let (id, left, error) = (*id, planned.left, planned.error.clone());
        if left == 0 {
            answers.planned.remove(&id);
        }
        Some(error)
    }
}
