//! Fault injection: the handle that adds faults, and the requests that faults respond to.
//!
//! Guarantees:
//! - a fault takes effect immediately and as often as its limits allow, in the order in which faults were added;
//! - faults affect requests and responses, never the store, except for a restart at an older revision:
//!   [`crate::Server::get`] and the other direct calls always return the true state;
//! - calls are synchronous, so clients observe a sequence of faults and writes without an `.await` as one step;
//! - the same faults affect clients in process and over TCP.

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
use crate::watch_cache::Delivery;

pub(crate) use endpoint::{PATH, serve_plan};

/// Handle that adds and removes the faults of a server; cheap to clone.
///
/// Common faults have a method.
/// A [fault plan](#fault-plans) can express all faults; pass it to [`Builder::faults`](crate::Builder::faults) or
/// [`Faults::inject`], or send it over HTTP.
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
/// A plan is a list of statements, one per line or separated by `;`; `#` starts a comment.
/// A statement with a colon is a rule, which waits for requests; a statement without a colon is an action, which runs
/// immediately.
///
/// A rule is `VERB RESOURCE [named NAME] [in NAMESPACE] [from USER-AGENT]: FAULT [skip=N] [chance=P%] [xN]`.
/// Verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `other`) and resource (its
/// plural) may be `*`.
/// A rule matches a `User-Agent` that contains the given text.
/// The first `N` matching requests pass; each later one is affected with the given probability, and `xN` limits the
/// number of affected requests.
/// If several rules would replace the response, the one added first does; all other matching faults apply together.
/// Names that contain a space, `:`, `;`, `#` or `"`, and all texts, are quoted with JSON's escapes.
///
/// | Fault | Effect |
/// | --- | --- |
/// | `429`, `500`, `503`, … `retry-after=N` | The response is this HTTP status with Kubernetes' `Status` body; the seconds are in `Retry-After` and in `details`. The request is not executed. |
/// | `429 plain` | The same with the text body of flow control instead of a `Status`; `Retry-After` is 1 by default. |
/// | `504 too-large` | The response of a server that has not reached the requested revision: the cause `ResourceVersionTooLarge`. |
/// | `reset` | The connection ends before the response; in process the error is an [`std::io::Error`] of kind `ConnectionReset`. The request is not executed. |
/// | `refuse streaming` | A watch with `sendInitialEvents` receives 422, as from a server before Kubernetes 1.34; other watches are not affected. |
/// | `delay [answer] 5s` | The request is executed, and the response is sent after this delay. |
/// | `delay first byte 5s` | Status and headers are sent immediately; the first byte of the body is delayed. |
/// | `delay each event 100ms` | Every event of a watch is delayed by this time after the previous one. |
/// | `cut [after N events\|bytes]` | The body ends cleanly after the `N`th event or byte, even within an object; at its start by default. |
/// | `break [after N events\|bytes]` | The body ends with an error: a reset connection or stream. |
/// | `freeze [after N events\|bytes]` | Nothing more is sent until a thaw, not even the end at the deadline. |
/// | `split every N bytes`, `split at N,N,…` | A chunk of the body ends after every `N` bytes, or at these offsets; the bytes are unchanged. |
/// | `split randomly` | The chunks have 1 to 64 bytes. |
/// | `drop EVENTS` | The events are not sent. |
/// | `duplicate EVENTS` | The events are sent twice. |
/// | `swap EVENTS` | Each of the events is sent after the event that follows it. |
/// | `garble EVENTS` | Only the first half of the line is sent, which is not JSON. |
/// | `spoil EVENTS` | The object's annotations are a number: JSON with name and revision that no client can decode. |
/// | `retype EVENTS` | The type is `MOVED`, which does not exist. |
/// | `send "TEXT" after N events` | The text is inserted unchanged after the `N`th event; end it with `\n`. |
///
/// `EVENTS` is one of `events` (all), `event N` (the `N`th), `every N events`, `P% of events` (each with this
/// probability), `bookmarks`, and `end-bookmark` (the one that ends a streamed list).
/// An event is a line of a watch, counted from 1; bookmarks and errors count too.
/// For example, with `drop end-bookmark` a streamed list never completes, and `drop bookmarks` simulates a server
/// without bookmarks.
///
/// | Action | Effect |
/// | --- | --- |
/// | `cut watch RESOURCE …` | The matching open watches end cleanly; undelivered events are lost to them. |
/// | `break watch RESOURCE …` | The watches end with an error, as from a connection reset. |
/// | `freeze watch RESOURCE …` | The watches, and those opened later, send nothing; not even their deadline ends them. |
/// | `thaw watch RESOURCE …` | The watches resume and deliver the events since the freeze; removes every freeze that is not wider. |
/// | `close watch RESOURCE …` | The watches are closed like those of a slow reader: queued events are delivered, then they end without an error. |
/// | `send "TEXT" to watch RESOURCE …` | The text is sent unchanged to the watches. |
/// | `send bookmarks to watch RESOURCE …` | Watches that allow bookmarks receive one at the current revision. |
/// | `expire history` | All events are dropped: [`Faults::expire_history`]. |
/// | `restart`, `restart at N`, `restart back N` | All watches end, and no watch can start before the newest revision; the store is at revision `N`, or `N` revisions back: [`Faults::restart_at`]. |
/// | `refuse connections [for 5s]` | New connections and requests are refused: [`Faults::refuse_connections`]. |
/// | `accept connections` | Connections are accepted again. |
/// | `seed N` | Seeds the probabilities of the rules that follow; the default is [`Builder::rng_seed`](crate::Builder::rng_seed). |
///
/// A plan with probabilities affects the same requests and events if the same seed meets the same requests in the same
/// order; [`Faults::plan`] prints the seed with the plan.
/// The [request log](crate::LoggedRequest::faults) contains the faults that affected a request.
///
/// # Over HTTP
///
/// [`Builder::fault_endpoint`](crate::Builder::fault_endpoint) serves the path `/faults`.
/// GET returns the active plan as text.
/// POST adds a plan; a mistake results in a 400 with its position.
/// DELETE removes all faults, as [`Faults::clear`].
///
/// ```text
/// curl --data 'list pods: 429 retry-after=2 x3' http://127.0.0.1:8080/faults
/// curl -X DELETE http://127.0.0.1:8080/faults
/// ```
///
/// Faults do not affect these requests, and the request log does not contain them.
/// While connections are refused, only an open connection can reach this path: use `refuse connections for` a limited
/// time.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

/// Handle that adjusts a planned response; the response is active at once, even if this handle is dropped.
#[derive(Clone)]
pub struct Answer {
    shared: Arc<Shared>,
    id: u64,
}

// === impl Answer ===

impl Answer {
    /// Sets the number of requests that receive this response; the default is 1, and 0 removes it.
    pub fn times(&self, n: u64) -> &Answer {
        self.shared.faults.set_times(self.id, n);
        self
    }

    /// Adds the header `Retry-After` and `details.retryAfterSeconds` to the response.
    pub fn retry_after(&self, seconds: u32) -> &Answer {
        self.refine(|refusal| refusal.retry_after = Some(seconds))
    }

    /// Responds with the 504 error of a server that has not reached the requested revision.
    ///
    /// The error has the cause `ResourceVersionTooLarge`.
    pub fn too_large_revision(&self) -> &Answer {
        self.refine(|refusal| (refusal.code, refusal.form) = (504, Form::TooLarge))
    }

    /// Responds with plain text, as flow control does, instead of with a `Status`.
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

    /// Adds the rules of a [fault plan](#fault-plans) and runs its actions, in their order.
    ///
    /// # Errors
    ///
    /// Returns an error if the plan has a mistake; then nothing of it takes effect.
    /// Returns an error if a restart names an unavailable revision; then the statements after it do not take effect.
    pub fn inject(&self, plan: &str) -> Result<(), PlanError> {
        self.carry_out(&Plan::parse(plan)?)
    }

    /// Prints all active faults as a [fault plan](#fault-plans), starting with the seed.
    ///
    /// A rule that has affected requests is printed as it was added, with the remaining number as a comment.
    /// Injected into a fresh server, the printed plan produces the same faults.
    /// Above 1,000 rules, exhausted ones are dropped.
    pub fn plan(&self) -> String {
        self.shared.faults.plan()
    }

    /// Removes all faults of the server: rules, effects on bodies in transfer, freezes, and refused
    /// connections.
    pub fn clear(&self) {
        self.shared.faults.clear();
    }

    /// Ends every open watch cleanly now; undelivered events are lost to these watches.
    pub fn cut_watches(&self) {
        self.end(&Match::watches(), Ending::Cut);
    }

    /// Ends every open watch now with an error in the body, as from a connection reset.
    pub fn break_watches(&self) {
        self.end(&Match::watches(), Ending::Break);
    }

    /// Freezes all watches: open and later ones send nothing, and not even their deadline ends them.
    ///
    /// A watch that misses more events than its queue holds is closed at the thaw, like that of a slow reader.
    pub fn freeze_watches(&self) {
        self.end(&Match::watches(), Ending::Freeze);
    }

    /// Ends [`Faults::freeze_watches`] and every other freeze; events since the freeze are delivered.
    pub fn thaw_watches(&self) {
        self.shared.faults.open().thaw(&Match::watches());
    }

    /// Closes every open watch like the watch of a slow reader.
    ///
    /// The watch delivers its queued events and then ends without an error.
    pub fn close_slow_watches(&self) {
        self.close(&Match::watches());
    }

    /// Drops all events from history.
    ///
    /// A watch from a revision below the current one receives an ERROR event with code 410.
    /// A list at an older revision, or with an older continue token, receives HTTP 410.
    ///
    /// Open watches stay open and lose no events.
    pub fn expire_history(&self) {
        let mut state = self.shared.lock();
        state.storage.compact();
        forget(&mut state);
    }

    /// Simulates a restart of the server.
    ///
    /// Every open watch ends cleanly, and no watch can start below the current revision.
    ///
    /// The store is unchanged and keeps its older revisions, as etcd does.
    pub fn restart(&self) {
        let mut state = self.shared.lock();
        self.end_in(&mut state, &Match::watches(), Ending::Cut);
        forget(&mut state);
    }

    /// Simulates a restart from a backup: the store has the state at an older revision and no history.
    ///
    /// Revisions count up from the older revision, so revisions that clients have seen are assigned again,
    /// with other
    /// contents.
    ///
    /// # Errors
    ///
    /// Returns 504 if the revision is in the future, or 410 if it is older than the kept events; then nothing changes.
    pub fn restart_at(&self, revision: u64) -> Result<(), ApiError> {
        self.shared.go_back(revision, |state| {
            self.shared.restore(state, revision)?;
            self.end_in(state, &Match::watches(), Ending::Cut);
            forget(state);
            Ok(())
        })
    }

    /// Responds to the next matching request with this HTTP status; [`Answer::times`] sets the number of
    /// requests.
    ///
    /// The body is Kubernetes' `Status` for this code.
    ///
    /// If several planned responses match a request, the one added first is sent.
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

    /// Removes every planned response that has not been sent yet.
    pub fn clear_answers(&self) {
        let is_planned = |fault: &Fault| matches!(fault, Fault::Answer(_));
        self.shared.faults.remove(is_planned);
    }

    /// Refuses connections, or accepts them again.
    ///
    /// In process a request fails with an [`std::io::Error`] of kind `ConnectionRefused`; over TCP the listener is
    /// closed.
    ///
    /// Open watches continue; also cut them to simulate a server that is down.
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

    /// Sends these bytes unchanged to every open watch.
    ///
    /// The bytes can be an unknown event type, an object that can't be decoded, or garbage.
    pub fn send_raw_to_watches(&self, bytes: impl Into<Bytes>) {
        self.send(&Match::watches(), &bytes.into());
    }

    /// Executes the statements of a plan one by one.
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

    /// Ends the matching watches while the store is locked, so that no watch opens meanwhile.
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

/// Prevents watches from starting below the current revision of the store.
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
