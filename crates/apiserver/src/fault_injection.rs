//! Failures on demand: the handle that injects faults, and the requests that they answer.
//!
//! Guarantees:
//! - a fault takes effect at once and exactly as often as asked, in the order in which faults were added;
//! - faults touch requests and their answers, never the store, but for a restart at an older revision: [`crate::Server::get`] and its siblings always tell the truth;
//! - calls are synchronous, so a sequence of faults and writes without an `.await` between them is one moment for every client;
//! - clients in process and over TCP meet the same faults.

mod answer;
mod endpoint;

use std::sync::Arc;

use bytes::Bytes;

use crate::fault::{
    Action, Ending, Fault, Form, Match, Placed, Plan, PlanError, Refusal, Restart, Rule, Statement,
};
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::watch_cache::Delivery;

pub(crate) use endpoint::{PATH, serve_plan};

/// The switchboard of a server's faults; cheap to clone.
///
/// What is usual has a method; everything can be said in a [fault plan](#fault-plans): to [`Builder::faults`](crate::Builder::faults), to [`Faults::inject`], or over HTTP.
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
/// A plan is statements, one per line or with `;` between them; `#` starts a comment.
/// A statement with a colon is a rule, which waits for requests; one without is an action, which happens at once.
///
/// A rule is `VERB RESOURCE [named NAME] [in NAMESPACE] [from USER-AGENT]: FAULT [skip=N] [chance=P%] [xN]`.
/// Verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `other`) and resource (its plural) may be `*`; a User-Agent matches by a part of it.
/// The first `N` matching requests are let by, each of the others is hit with that chance, and at most `xN` are hit.
/// Of several answers that fit, a request gets the one added first; all other faults that fit are done to it together.
/// Names with a space, `:`, `;`, `#` or `"` in them, and all text, stand in quotes with the escapes of JSON.
///
/// | Fault | On the wire |
/// | --- | --- |
/// | `429`, `500`, `503`, … `retry-after=N` | That HTTP status with the `Status` body that Kubernetes sends with it; the seconds in `Retry-After` and in `details`. The request does nothing. |
/// | `429 plain` | The same with the text body of flow control, which is no `Status`; `Retry-After` is 1 if never said. |
/// | `504 too-large` | What a server answers that has not reached the revision asked for: the cause `ResourceVersionTooLarge`. |
/// | `reset` | The connection ends before the answer; in process an [`std::io::Error`] of kind `ConnectionReset`. The request does nothing. |
/// | `refuse streaming` | A watch with `sendInitialEvents` is a 422, as from a server before Kubernetes 1.34; other watches are not hit. |
/// | `delay [answer] 5s` | The request is done, and its status and headers come so much later. |
/// | `delay first byte 5s` | Status and headers come at once, the first byte of the body so much later than it would. |
/// | `delay each event 100ms` | Every event of a watch comes so much behind the one before. |
/// | `cut [after N events\|bytes]` | The body ends cleanly after the `N`th event or byte, even in the middle of an object; at its start if no number is given. |
/// | `break [after N events\|bytes]` | The same with an error: a reset connection or stream. |
/// | `freeze [after N events\|bytes]` | Nothing more comes, not even the end at the deadline, until a thaw. |
/// | `split every N bytes`, `split at N,N,…` | A chunk of the body ends behind every `N` bytes, or at these; the bytes are unchanged. |
/// | `split randomly` | Chunks of 1 to 64 bytes. |
/// | `drop EVENTS` | The events are lost. |
/// | `duplicate EVENTS` | They are sent twice. |
/// | `swap EVENTS` | They come behind the next event instead of before it. |
/// | `garble EVENTS` | Only the first half of the line comes: not JSON. |
/// | `spoil EVENTS` | The object's annotations are a number: JSON, with name and revision, that no client can decode. |
/// | `retype EVENTS` | The type is `MOVED`, which does not exist. |
/// | `send "TEXT" after N events` | This text stands behind the `N`th event, as it is: end it with `\n`. |
///
/// `EVENTS` is one of `events` (all), `event N` (the `N`th), `every N events`, `P% of events` (each with that chance), `bookmarks`, and `end-bookmark` (the one that closes a streamed list).
/// An event is a line of a watch: bookmarks and errors are counted too, as they come in and from 1.
/// So `drop end-bookmark` is a streamed list that never ends, and `drop bookmarks` a server without bookmarks.
///
/// | Action | What happens |
/// | --- | --- |
/// | `cut watch RESOURCE …` | The matching open watches end cleanly; what they were not yet told is lost to them. |
/// | `break watch RESOURCE …` | They end as a reset connection does. |
/// | `freeze watch RESOURCE …` | They are silent, and so are those that open later; not even their deadline ends them. |
/// | `thaw watch RESOURCE …` | They go on, and what happened meanwhile is delivered; takes back every freeze that is not wider. |
/// | `close watch RESOURCE …` | They are closed as one is whose reader is too slow: what waits for them is delivered, then they end without an error. |
/// | `send "TEXT" to watch RESOURCE …` | They are sent this text, as it is. |
/// | `send bookmarks to watch RESOURCE …` | Those that allow bookmarks are sent one at the present revision. |
/// | `expire history` | All events are forgotten: [`Faults::expire_history`]. |
/// | `restart`, `restart at N`, `restart back N` | All watches end, and no watch can start at an earlier revision than the newest; the store is as it was at revision `N`, or `N` revisions ago: [`Faults::restart_at`]. |
/// | `refuse connections [for 5s]` | New connections and requests are refused: [`Faults::refuse_connections`]. |
/// | `accept connections` | They are accepted again. |
/// | `seed N` | Seeds the chances of the rules that follow; without it they follow [`Builder::rng_seed`](crate::Builder::rng_seed). |
///
/// A plan with chances hits the same requests and events whenever the same seed meets the same requests in the same order; [`Faults::plan`] prints the seed with the plan.
/// The [request log](crate::LoggedRequest::faults) shows which fault hit a request.
///
/// # Over HTTP
///
/// With [`Builder::fault_endpoint`](crate::Builder::fault_endpoint) the path `/faults` answers GET with the plan in force, as text; POST of a plan adds it, or is a 400 that says where its mistake is; DELETE is [`Faults::clear`].
///
/// ```text
/// curl --data 'list pods: 429 retry-after=2 x3' http://127.0.0.1:8080/faults
/// curl -X DELETE http://127.0.0.1:8080/faults
/// ```
///
/// These requests are hit by no fault and do not stand in the request log.
/// While connections are refused, only an open connection leads there: refuse them `for` a time.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

/// A planned answer, to be refined; it is in force from the call that made it, also if this is dropped.
#[derive(Clone)]
pub struct Answer {
    shared: Arc<Shared>,
    id: u64,
}

// === impl Answer ===

impl Answer {
    /// How many requests get this answer; 1 if never said, 0 takes it back.
    pub fn times(&self, n: u64) -> &Answer {
        self.shared.faults.set_times(self.id, n);
        self
    }

    /// Adds `Retry-After` and `details.retryAfterSeconds`.
    pub fn retry_after(&self, seconds: u32) -> &Answer {
        self.refine(|refusal| refusal.retry_after = Some(seconds))
    }

    /// Answers what a server does that has not reached the revision asked for: 504 with the cause `ResourceVersionTooLarge`.
    pub fn too_large_revision(&self) -> &Answer {
        self.refine(|refusal| (refusal.code, refusal.form) = (504, Form::TooLarge))
    }

    /// Answers in text, as flow control does, instead of with a `Status`.
    pub fn plain(&self) -> &Answer {
        self.refine(|refusal| refusal.form = Form::Plain)
    }

    fn refine(&self, change: impl FnOnce(&mut Refusal)) -> &Answer {
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

    /// Adds the rules of a [fault plan](#fault-plans) and carries out its actions, in their order.
    ///
    /// # Errors
    ///
    /// If it can't be read, and then nothing of it takes effect; if a restart names a revision that can't be had, and then nothing behind it does.
    pub fn inject(&self, plan: &str) -> Result<(), PlanError> {
        self.carry_out(&Plan::parse(plan)?)
    }

    /// Everything in force as a [fault plan](#fault-plans), the seed of its chances first.
    ///
    /// A rule that has hit requests is printed as it was given, with what is left of it as a comment; so what is printed, injected into a fresh server, makes the same faults again.
    /// From 1,000 rules on those that are used up are forgotten.
    pub fn plan(&self) -> String {
        self.shared.faults.plan()
    }

    /// Takes everything back: rules, also those that bodies being read are under, freezes and refused connections.
    pub fn clear(&self) {
        self.shared.faults.clear();
    }

    /// Ends every open watch now, cleanly; what it was not yet told is lost to it.
    pub fn cut_watches(&self) {
        self.end(&Match::watches(), Ending::Cut);
    }

    /// Ends every open watch now as a reset connection does: with an error in the body.
    pub fn break_watches(&self) {
        self.end(&Match::watches(), Ending::Break);
    }

    /// Keeps watches open but silent, also those opened while frozen; not even their deadline ends them.
    ///
    /// A watch that misses more events than its channel holds is closed at the thaw, as a slow one is.
    pub fn freeze_watches(&self) {
        self.end(&Match::watches(), Ending::Freeze);
    }

    /// Ends [`Faults::freeze_watches`] and every other freeze: what happened meanwhile is delivered.
    pub fn thaw_watches(&self) {
        self.shared.faults.open().thaw(&Match::watches());
    }

    /// Closes every open watch as one is closed whose reader is too slow: what waits for it is still delivered, then it ends without an error.
    pub fn close_slow_watches(&self) {
        self.close(&Match::watches());
    }

    /// Forgets all events: a watch from a revision below the present one is answered with an ERROR event of code 410, a list at an older revision or continue token with HTTP 410.
    ///
    /// Open watches stay open and lose nothing.
    pub fn expire_history(&self) {
        let mut state = self.shared.lock();
        state.storage.compact();
        forget(&mut state);
    }

    /// Does what the restart of an API server does: every open watch ends cleanly, and no watch can start below the present revision.
    ///
    /// The store stays as it is, with what it knows of older revisions, as etcd does.
    pub fn restart(&self) {
        let mut state = self.shared.lock();
        self.end_in(&mut state, &Match::watches(), Ending::Cut);
        forget(&mut state);
    }

    /// Restarts with the store as it was at an older revision, as after the restore of a backup: revisions count on from there, and no history is left.
    ///
    /// Revisions that clients have seen will come again, with other contents.
    ///
    /// # Errors
    ///
    /// If the revision is in the future (504), or older than the events that the store still knows (410); then nothing has happened.
    pub fn restart_at(&self, revision: u64) -> Result<(), ApiError> {
        self.shared.go_back(revision, |state| {
            self.shared.restore(state, revision)?;
            self.end_in(state, &Match::watches(), Ending::Cut);
            forget(state);
            Ok(())
        })
    }

    /// Answers the next matching request, or the next `n` with [`Answer::times`], with this HTTP status and the `Status` body that Kubernetes sends with it.
    ///
    /// Of several that match, the one added first is used up first.
    pub fn answer(&self, matches: Match, status: u16) -> Answer {
        let refusal = Refusal {
            code: status,
            form: Form::Status,
            retry_after: None,
        };
        let mut rule = Rule::new(matches, Fault::Answer(refusal));
        rule.times = Some(1);
        Answer {
            id: self.shared.faults.add(rule),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Takes back every planned answer that has not been given yet.
    pub fn clear_answers(&self) {
        let is_planned = |fault: &Fault| matches!(fault, Fault::Answer(_));
        self.shared.faults.remove(is_planned);
    }

    /// Refuses connections, or accepts them again: in process a request fails with an [`std::io::Error`] of kind `ConnectionRefused`, over TCP the listener is closed.
    ///
    /// Open watches go on; cut them too to play a server that is gone.
    pub fn refuse_connections(&self, refuse: bool) {
        if refuse {
            self.shared.faults.refuse(None);
        } else {
            self.shared.faults.accept();
        }
    }

    /// Sends a bookmark at the present revision to every watch that allows bookmarks.
    pub fn send_bookmarks(&self) {
        self.bookmark(&Match::watches());
    }

    /// Sends these bytes, as they are, to every open watch: an unknown event type, an object that can't be decoded, garbage.
    pub fn send_raw_to_watches(&self, bytes: impl Into<Bytes>) {
        self.send(&Match::watches(), &bytes.into());
    }

    /// Does what a plan says, statement by statement.
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

    /// Ends watches while the store is locked, so that none opens meanwhile.
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

/// Lets no watch start below the present revision.
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
