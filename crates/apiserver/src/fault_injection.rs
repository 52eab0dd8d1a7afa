//! Provides [`Faults`], the handle that adds faults to a server and removes them.
//!
//! A fault is a deliberate failure, such as an error response, a delay or a watch that ends early.
//!
//! Guarantees:
//! - a fault is active when the call that adds it returns, and affects at most as many requests as its limits
//!   allow;
//! - the server evaluates faults in the order in which they were added;
//! - faults never change stored objects, except for a restart at an older revision;
//! - direct calls such as [`crate::Server::get`] are not affected by faults;
//! - the methods are synchronous: on a single-threaded runtime, no client runs between two calls unless the
//!   caller awaits between them;
//! - in-process clients and clients over TCP observe the same faults.

mod answer;
mod endpoint;

use std::sync::Arc;

use bytes::Bytes;

use crate::fault::{
    Action, Ending, ErrorResponse, Fault, FaultRule, Form, Match, Placed, Plan, PlanError, Restart,
    Statement,
};
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::verb::definition::Definitions;
use crate::watch_cache::Delivery;

pub(crate) use endpoint::{PATH, serve_plan};

/// Handle that adds and removes the faults of a server. The handle is cheap to clone.
///
/// Each common fault has a method, and a [fault plan](#fault-plans) can express all faults.
/// Pass the plan to [`Builder::faults`](crate::Builder::faults) or [`Faults::inject`], or send it over HTTP.
///
/// ```
/// # use kube_informer_apiserver::Server;
/// let server = Server::builder()
///     .rng_seed(7)
///     .faults("watch pods: cut after 3 events; list pods: 429 retry-after=2 x3")?
///     .build();
/// server.faults().inject("watch *: split every 7 bytes")?;
/// server.faults().inject("freeze watch pods from scheduler")?;
/// # Ok::<(), kube_informer_apiserver::PlanError>(())
/// ```
///
/// # Fault plans
///
/// A plan is a list of statements, one per line or separated by `;`.
/// The character `#` starts a comment.
/// A statement with a colon is a rule, which affects future requests.
/// A statement without a colon is an action, which runs immediately.
///
/// A rule is `VERB RESOURCE [named NAME] [in NAMESPACE] [from USER-AGENT]: FAULT [skip=N] [chance=P%] [xN]`.
/// `VERB` is `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection` or `other`.
/// `RESOURCE` is the plural name of a resource.
/// `*` matches every verb or every resource.
/// `from` selects requests whose `User-Agent` header contains the given text.
/// `skip=N` leaves the first `N` matching requests unaffected.
/// `chance=P%` is the probability with which the rule affects a matching request that is not skipped.
/// `xN` limits the number of affected requests.
/// A name that contains a space, `:`, `;`, `#` or `"` must be in double quotes with JSON's escapes.
/// The `TEXT` of a `send` must always be in such quotes.
///
/// Some faults replace the response by an error or a connection reset.
/// If several matching rules have such a fault, only the rule that was added first replaces the response.
/// If a rule replaces the response, no other fault affects the request except `delay [answer]`.
///
/// | Fault | Effect |
/// | --- | --- |
/// | `429`, `500`, `503`, … `[retry-after=N]` | The response has this HTTP status and Kubernetes' `Status` body. With `retry-after`, the header `Retry-After` and `details.retryAfterSeconds` are `N` seconds. The request is not executed. |
/// | `429 plain` | The response has this HTTP status and the plain-text body of Kubernetes' flow control. `Retry-After` is 1 by default. |
/// | `504 too-large` | The response is the error of a server that has not reached the requested revision, with the cause `ResourceVersionTooLarge`. |
/// | `reset` | The connection ends before the response. In process, the error is an [`std::io::Error`] of kind `ConnectionReset`. The request is not executed. |
/// | `refuse streaming` | A watch with `sendInitialEvents` receives 422, as from a server before Kubernetes 1.34. Other watches are not affected. |
/// | `delay [answer] 5s` | The request is executed, and the response is sent after this delay. |
/// | `delay first byte 5s` | Status and headers are sent immediately. The first byte of the body is delayed. |
/// | `delay each event 100ms` | The server pauses for this time before it sends each event of a watch. |
/// | `cut [after N events\|bytes]` | The body ends without an error after the `N`th event or byte, even within an object. Without `after`, the body is empty. |
/// | `break [after N events\|bytes]` | The body ends with an error, as after a reset of the connection or the HTTP/2 stream. |
/// | `freeze [after N events\|bytes]` | Nothing more of the body is sent until all faults are removed or, for a watch, until a `thaw`. A frozen watch does not end at its deadline. |
/// | `split every N bytes`, `split at N,N,…` | A chunk of the body ends after every `N` bytes, or at these offsets. The bytes are unchanged. |
/// | `split randomly` | Each chunk of the body has a random size of 1 to 64 bytes. |
/// | `drop EVENTS` | The selected events are not sent. |
/// | `duplicate EVENTS` | The selected events are sent twice. |
/// | `swap EVENTS` | Each selected event is sent after the event that follows it. |
/// | `garble EVENTS` | Only the first half of the event's line is sent, which is not valid JSON. |
/// | `spoil EVENTS` | The object's `annotations` are a number: the line is valid JSON with a name and a revision, but clients can't decode the object. |
/// | `retype EVENTS` | The event has the type `MOVED`, which Kubernetes does not define. |
/// | `send "TEXT" after N events` | The text is inserted unchanged after the `N`th event. The text should end with `\n`, like the line of an event. |
///
/// `EVENTS` is one of `events` (all events), `event N` (the `N`th event), `every N events`, `P% of events`
/// (each event with this probability), `bookmarks`, and `end-bookmark` (the bookmark that ends a streamed
/// list).
/// An event is a line of a watch, counted from 1. Bookmarks and errors count too.
/// For example, with `drop end-bookmark` a streamed list never completes, and `drop bookmarks` simulates a
/// server without bookmarks.
///
/// An action on watches can select them with the conditions `named`, `in` and `from` of a rule.
/// In the table below, `…` stands for these conditions.
///
/// | Action | Effect |
/// | --- | --- |
/// | `cut watch RESOURCE …` | The matching open watches end without an error. The watch does not deliver its queued events. |
/// | `break watch RESOURCE …` | The matching open watches end with an error, as after a connection reset. |
/// | `freeze watch RESOURCE …` | The matching watches, including watches opened later, send nothing and do not end at their deadline. |
/// | `thaw watch RESOURCE …` | The matching open watches resume and deliver the events since the freeze. For watches opened later, a `freeze` action remains in effect unless the `thaw` selects all watches that the `freeze` selects. |
/// | `close watch RESOURCE …` | The matching open watches are closed like the watch of a slow reader: they deliver their queued events, then end without an error. |
/// | `send "TEXT" to watch RESOURCE …` | The text is sent unchanged to the matching open watches. |
/// | `send bookmarks to watch RESOURCE …` | The matching open watches that allow bookmarks receive a bookmark with the current revision. |
/// | `expire history` | All events are dropped from the history. See [`Faults::expire_history`]. |
/// | `restart`, `restart at N`, `restart back N` | All watches end, and no new watch can start below the revision of the store. `at N` and `back N` first restore the store to revision `N`, or to `N` revisions before the current one. See [`Faults::restart_at`]. |
/// | `refuse connections [for 5s]` | New connections and requests are refused. See [`Faults::refuse_connections`]. |
/// | `accept connections` | Connections are accepted again. |
/// | `seed N` | Sets the seed for the random decisions of later rules. The default is [`Builder::rng_seed`](crate::Builder::rng_seed). |
///
/// A plan with probabilities affects the same requests and events if the seed, the requests and their order
/// are the same.
/// The text that [`Faults::plan`] returns contains the seed.
/// The [request log](crate::LoggedRequest::faults) contains the faults that affected a request.
///
/// # Over HTTP
///
/// [`Builder::fault_endpoint`](crate::Builder::fault_endpoint) serves the path `/faults`.
/// GET returns the active plan as text.
/// POST executes the statements of a plan, which adds its rules to the active plan.
/// If the plan can't be parsed, the response is a 400 with the position of the mistake.
/// DELETE removes all faults, like [`Faults::clear`].
///
/// ```text
/// curl --data 'list pods: 429 retry-after=2 x3' http://127.0.0.1:8080/faults
/// curl -X DELETE http://127.0.0.1:8080/faults
/// ```
///
/// Faults do not affect requests to this path, and the request log does not contain such requests.
/// While connections are refused, this path is unreachable for new connections too, so limit the duration
/// with `refuse connections for`.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

/// Handle that changes a planned error response. [`Faults::answer`] plans the response and returns the
/// handle.
///
/// The server sends the response even if this handle is dropped.
#[derive(Clone)]
pub struct Answer {
    shared: Arc<Shared>,
    id: u64,
}

// === impl Answer ===

impl Answer {
    /// Sets the number of requests that receive the response, counted from this call.
    ///
    /// If this method is not called, one request receives the response. The value 0 disables the response.
    pub fn times(&self, n: u64) -> &Answer {
        self.shared.faults.set_times(self.id, n);
        self
    }

    /// Sets the `Retry-After` header and the `details.retryAfterSeconds` of the response to `seconds`.
    pub fn retry_after(&self, seconds: u32) -> &Answer {
        self.refine(|refusal| refusal.retry_after = Some(seconds))
    }

    /// Makes the response a 504 error, as from a server that has not reached the requested revision.
    ///
    /// The error has the cause `ResourceVersionTooLarge`.
    pub fn too_large_revision(&self) -> &Answer {
        self.refine(|refusal| (refusal.code, refusal.form) = (504, Form::TooLarge))
    }

    /// Changes the response body from a `Status` to plain text, as in a rejection by API priority and
    /// fairness.
    pub fn plain(&self) -> &Answer {
        self.refine(|refusal| refusal.form = Form::Plain)
    }

    fn refine(&self, change: impl FnOnce(&mut ErrorResponse)) -> &Answer {
        self.shared.faults.refine(self.id, |fault| {
            if let Fault::Answer(refusal) = fault {
                change(refusal);
            }
        });
        self
    }
}

// === impl Faults ===

impl Faults {
    pub(crate) fn new(shared: Arc<Shared>) -> Faults {
        Faults { shared }
    }

    /// Executes a [fault plan](#fault-plans).
    ///
    /// Adds the rules and runs the actions in the order of the plan.
    ///
    /// # Errors
    ///
    /// Returns an error if the plan can't be parsed. In this case, no statement takes effect.
    ///
    /// Also returns an error if the plan restarts the server at an unavailable revision. In this case, only
    /// the statements before the restart take effect.
    pub fn inject(&self, plan: &str) -> Result<(), PlanError> {
        self.carry_out(&Plan::parse(plan)?)
    }

    /// Returns all active faults as a [fault plan](#fault-plans), starting with the seed.
    ///
    /// A new server with this plan produces the same faults for the same requests, with one exception. The
    /// random decisions of a rule depend on the seed, and on how many rules were added between the seed and
    /// the rule. These decisions can therefore differ if a rule was removed, or was added before the last
    /// `seed` action.
    ///
    /// The limit `xN` of a rule in the plan includes the requests that the rule has already affected. A
    /// comment after such a rule states how many more requests it can affect.
    pub fn plan(&self) -> String {
        self.shared.faults.plan()
    }

    /// Removes all faults of the server.
    ///
    /// The server removes all rules, ends the effects of faults on response bodies in progress, thaws frozen
    /// watches, and accepts connections again.
    pub fn clear(&self) {
        self.shared.faults.clear();
    }

    /// Ends every open watch without an error.
    ///
    /// An event that a watch has not sent before this call is never sent on that watch.
    pub fn cut_watches(&self) {
        self.end(&Match::watches(), Ending::Cut);
    }

    /// Ends every open watch with a transport error, as after a connection reset.
    ///
    /// The client receives the error when it reads the response body. The server sends no `ERROR` event.
    pub fn break_watches(&self) {
        self.end(&Match::watches(), Ending::Break);
    }

    /// Freezes all open watches and all watches that are opened later.
    ///
    /// The server sends nothing on a frozen watch, and does not end the watch at its deadline.
    /// The server queues the events of a frozen watch until [`Faults::thaw_watches`].
    /// If the queue overflows, the watch delivers the queued events after the thaw, and then ends without an
    /// error.
    pub fn freeze_watches(&self) {
        self.end(&Match::watches(), Ending::Freeze);
    }

    /// Resumes all frozen watches, which then deliver the events since the freeze.
    ///
    /// Watches opened later are no longer frozen, unless a `freeze` rule of a fault plan matches them.
    pub fn thaw_watches(&self) {
        self.shared.faults.open().thaw(&Match::watches());
    }

    /// Closes every open watch in the same way as the server closes the watch of a slow client.
    ///
    /// Each watch delivers its queued events and then ends without an error.
    pub fn close_slow_watches(&self) {
        self.close(&Match::watches());
    }

    /// Drops all events from the server's history.
    ///
    /// A new watch from a revision below the current revision receives an ERROR event with code 410.
    /// A list at an older revision, or with a continue token for an older revision, receives HTTP 410.
    /// Open watches stay open and lose no events.
    pub fn expire_history(&self) {
        let mut state = self.shared.lock();
        state.storage.compact();
        forget(&mut state);
    }

    /// Simulates a restart of the server.
    ///
    /// Every open watch ends without an error, and no new watch can start below the current revision.
    /// The store is unchanged and keeps its older revisions, as etcd does.
    pub fn restart(&self) {
        let mut state = self.shared.lock();
        self.end_in(&mut state, &Match::watches(), Ending::Cut);
        forget(&mut state);
    }

    /// Simulates a restart from a backup of the store at the older `revision`.
    ///
    /// Afterwards the store has the objects of this revision, and no watch can start below this revision.
    /// The next write receives the revision `revision + 1`.
    /// Clients can therefore observe a revision number twice, with different contents.
    /// If a `CustomResourceDefinition` was not yet established at this revision, or not yet completely deleted,
    /// the server makes these writes at once.
    ///
    /// # Errors
    ///
    /// Returns 504 if the revision is in the future, or 410 if the store no longer has this revision.
    /// In both cases, the server is unchanged.
    /// Returns 500 if a write after the restart can't be stored on the disk.
    pub fn restart_at(&self, revision: u64) -> Result<(), ApiError> {
        self.shared.go_back(revision, |state| {
            self.shared.restore(state, revision)?;
            self.end_in(state, &Match::watches(), Ending::Cut);
            forget(state);
            Ok(())
        })?;
        let before = self.shared.before_write();
        Definitions::resume(&self.shared).complete();
        self.shared.settle(before)
    }

    /// Plans an error response with the given HTTP status for the next matching request.
    ///
    /// [`Answer::times`] sets the number of requests that receive the response.
    /// The body is the `Status` object that Kubernetes sends with this HTTP status.
    /// If several planned responses match a request, the server sends the response that was planned first.
    pub fn answer(&self, matches: Match, status: u16) -> Answer {
        let refusal = ErrorResponse {
            code: status,
            form: Form::Status,
            retry_after: None,
        };
        let mut rule = FaultRule::new(matches, Fault::Answer(refusal));
        rule.times = Some(1);
        Answer {
            id: self.shared.faults.add(rule),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Removes every error response that [`Faults::answer`] or a fault plan has added.
    pub fn clear_answers(&self) {
        let is_planned = |fault: &Fault| matches!(fault, Fault::Answer(_));
        self.shared.faults.remove(is_planned);
    }

    /// Refuses new connections if `refuse` is true, and accepts connections again if it is false.
    ///
    /// While connections are refused, an in-process request fails with an [`std::io::Error`] of kind
    /// `ConnectionRefused`, and the TCP listener is closed.
    /// Open watches continue.
    /// To simulate a server that is down, also call [`Faults::cut_watches`].
    pub fn refuse_connections(&self, refuse: bool) {
        if refuse {
            self.shared.faults.refuse(None);
        } else {
            self.shared.faults.accept();
        }
    }

    /// Sends a bookmark at the current revision to every watch that allows bookmarks.
    pub fn send_bookmarks(&self) {
        self.bookmark(&Match::watches());
    }

    /// Sends `bytes` unchanged to every open watch.
    ///
    /// The bytes can be an event of an unknown type, an object that clients can't decode, or arbitrary data.
    pub fn send_raw_to_watches(&self, bytes: impl Into<Bytes>) {
        self.send(&Match::watches(), &bytes.into());
    }

    /// Executes the statements of a fault plan in order, up to the first that fails.
    pub(crate) fn carry_out(&self, plan: &Plan) -> Result<(), PlanError> {
        for Placed { statement, at } in &plan.statements {
            match statement {
                Statement::Seed(seed) => self.shared.faults.seed(*seed),
                Statement::Rule(rule) => drop(self.shared.faults.add(rule.clone())),
                Statement::Action(action) => self
                    .act(action)
                    .map_err(|error| PlanError::new(&plan.text, *at, error.to_string()))?,
            }
        }
        Ok(())
    }

    fn act(&self, action: &Action) -> Result<(), ApiError> {
        match action {
            Action::End(ending, matches) => self.end(matches, *ending),
            Action::Thaw(matches) => self.shared.faults.open().thaw(matches),
            Action::CloseSlow(matches) => self.close(matches),
            Action::Send(text, matches) => self.send(matches, &Bytes::from(text.to_string())),
            Action::SendBookmarks(matches) => self.bookmark(matches),
            Action::ExpireHistory => self.expire_history(),
            Action::Restart(Restart::Here) => self.restart(),
            Action::Restart(Restart::At(revision)) => return self.restart_at(*revision),
            Action::Restart(Restart::Back(revisions)) => {
                let current = self.shared.lock().storage.revision();
                return self.restart_at(current.saturating_sub(*revisions));
            }
            Action::Refuse(period) => self.shared.faults.refuse(*period),
            Action::Accept => self.shared.faults.accept(),
        }
        Ok(())
    }

    fn end(&self, matches: &Match, ending: Ending) {
        self.end_in(&mut self.shared.lock(), matches, ending);
    }

    /// Ends or freezes the open watches that `matches` selects.
    fn end_in(&self, state: &mut State, matches: &Match, ending: Ending) {
        let hit = self.shared.faults.open().end(matches, ending);
        for sequence in hit {
            self.shared.requests.hit(sequence, &ending.to_string());
        }
        if ending != Ending::Freeze {
            for cache in &mut state.caches {
                cache.close_wanted(|request| matches.matches(request));
            }
        }
    }

    fn close(&self, matches: &Match) {
        for cache in &mut self.shared.lock().caches {
            cache.close_wanted(|request| {
                let wanted = matches.matches(request);
                if wanted {
                    self.shared.requests.hit(request.sequence, "close");
                }
                wanted
            });
        }
    }

    fn send(&self, matches: &Match, bytes: &Bytes) {
        for cache in &mut self.shared.lock().caches {
            cache.send_to(
                |request| matches.matches(request),
                || Delivery::Raw(bytes.clone()),
            );
        }
    }

    fn bookmark(&self, matches: &Match) {
        let mut state = self.shared.lock();
        let revision = state.storage.revision();
        for cache in &mut state.caches {
            cache.send_to(
                |request| matches.matches(request),
                || Delivery::Bookmark(revision),
            );
        }
    }
}

/// Empties the history of all watch caches, which makes earlier revisions too old for new watches.
fn forget(state: &mut State) {
    let revision = state.storage.revision();
    for cache in &mut state.caches {
        cache.forget(revision);
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
