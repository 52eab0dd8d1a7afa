//! Opens a watch or a streaming list, and delivers its events to the store.
//!
//! The module closes a watch if the next event does not arrive in time. The module does not decide which
//! request follows the end of the watch.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::{
    super::{
        DeltaKind, ReflectorStore, Reporter,
        machine::{Action, Machine, VERY_SHORT, WatchEnd},
    },
    Again, Gone, List, Piece, Running, Stop,
    watch_probe::WatchProbe,
};
use crate::{
    clock,
    codec::WatchSplitter,
    limits::WATCH_GRACE,
    metrics::RelistReason,
    status::Activity,
    transport::{self, Body, Class, ListOptions, Retry},
};

pub(super) enum Ended {
    Closed,
    /// The server, the transport or the store reported an error, or the data was unreadable.
    Error(transport::Error),
    /// The connection failed, or the next event missed its deadline; delivered events remain valid.
    Broken(transport::Error),
    /// A streaming list sent neither a new object nor its end bookmark within
    /// `TimeoutConfig::initial_events`.
    Overdue(transport::Error),
    /// The store did not accept a change within `TimeoutConfig::full_store`.
    StoreFull,
    /// A LIST of one object shows that the server may have gone back to an earlier state.
    WentBack(transport::Error),
    /// A streaming list had no objects although the store has some. The server's watch cache may be
    /// incomplete, so a LIST must confirm that no objects exist.
    Unconfirmed,
    /// A consistency check found a difference and requested a list.
    RelistRequested(RelistReason),
}

impl Ended {
    fn class(&self) -> Option<Class> {
        match self {
            Self::Closed | Self::StoreFull | Self::RelistRequested(_) | Self::Unconfirmed => None,
            Self::Error(error)
            | Self::Broken(error)
            | Self::Overdue(error)
            | Self::WentBack(error) => Some(error.class()),
        }
    }
}

pub(super) enum Next<K> {
    Chunk(Bytes),
    BodyEnd(BodyEnd),
    Piece(Piece<K>),
    /// Nothing was received, but other work was done, such as sending a probe.
    Nothing,
    Ended(Ended),
}

pub(super) enum BodyEnd {
    Closed,
    Failed(Ended),
}

/// State of an open watch or streaming list.
pub(super) struct OpenWatch<K> {
    pub(super) asked: Instant,
    answered: Instant,
    /// Earliest time at which the reflector closes a watch that the server has not ended.
    ///
    /// The time is `asked` plus the requested timeout plus `WATCH_GRACE` (30 s). Recent events postpone the
    /// close: see [`outlived`](Self::outlived).
    deadline: Instant,
    /// Time at which the last event was processed. Before the first event, the time at which the response
    /// headers arrived.
    heard: Instant,
    pub(super) events: u64,
    /// Objects that an unfinished streaming list has sent so far.
    list: Option<List<K>>,
    /// The probe that is scheduled or sent, if any.
    pub(super) probe: Option<WatchProbe>,
}

impl<K> OpenWatch<K> {
    /// Returns the time at which the reflector closes the watch if the server has not ended it.
    ///
    /// The time is at least `WATCH_GRACE` after the last processed event, so a slow store does not end a
    /// watch.
    fn outlived(&self) -> Instant {
        self.deadline.max(self.heard + WATCH_GRACE)
    }

    /// Returns the deadline of the next event or bookmark, if this reflector has ever received a bookmark.
    fn silent(&self, machine: &Machine) -> Option<Instant> {
        let allowed = machine.silence_allowed()?;
        Some(clock::after(self.heard, allowed))
    }

    /// Returns the time by which the next event or bookmark must arrive. If none arrives, the reflector ends
    /// the watch.
    ///
    /// In a streaming list, only a new object or the end bookmark counts.
    fn must_have_come(&self, machine: &Machine) -> Instant {
        let silent = match machine.initial_events_deadline() {
            None => self.silent(machine),
            overdue => overdue,
        };
        silent.map_or(self.outlived(), |silent| silent.min(self.outlived()))
    }

    fn is_overdue(&self, machine: &Machine) -> bool {
        Instant::now() >= self.must_have_come(machine)
    }

    /// Returns the reason to end a watch that missed the deadline of its next event: [`Ended::Overdue`] for a
    /// streaming list, otherwise [`Ended::Broken`].
    fn outlasted(&self, machine: &Machine) -> Ended {
        let late = |what| transport::Error::new(Class::Timeout, what);
        if machine.is_streaming() {
            let what = "the streaming list stalled: no new object and no end in time";
            return Ended::Overdue(late(what));
        }
        let what = if Instant::now() >= self.outlived() {
            "the watch is open beyond its requested time-out; its connection counts as lost"
        } else {
            "the watch received no event and no bookmark in time; its connection counts as lost"
        };
        Ended::Broken(late(what))
    }

    /// Returns why the watch ended after the server closed the response.
    ///
    /// `finished` is an error if the response ended in the middle of an event.
    fn closed(&self, finished: Result<(), transport::Error>) -> Ended {
        match finished {
            Err(error) => Ended::Broken(error),
            Ok(()) if self.events == 0 && self.asked.elapsed() < VERY_SHORT => {
                let what = "very short watch: closed within a second without an event";
                Ended::Error(transport::Error::new(Class::VeryShortWatch, what))
            }
            Ok(()) => Ended::Closed,
        }
    }
}

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Runs one watch or streaming list, and returns the reflector's next action.
    pub(super) async fn watch(&mut self, options: &ListOptions) -> Result<Action, Gone> {
        let asked = Instant::now();
        let mut list = None;
        if self.machine.is_streaming() {
            self.meter.list_begins();
            list = Some(List::streamed(self.reflector.requests.limits()));
        }
        self.activity(Activity::Opening);
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let allowed = self.machine.headers_allowed();
        let answered_by = clock::after(asked, allowed);
        let answer = timeout_at(answered_by, lister_watcher.watch(options)).await;
        match answer.map(|response| response.and_then(Body::new)) {
            Ok(Ok(body)) => self.open = Some(body),
            Ok(Err(error)) => return Ok(self.not_opened(error, list.as_ref(), false)),
            Err(_) => {
                let what =
                    format!("opening the watch timed out: no response headers within {allowed:?}");
                let error = transport::Error::new(Class::Timeout, what);
                return Ok(self.not_opened(error, list.as_ref(), true));
            }
        }
        let answered = Instant::now();
        self.reflector.report.not_served.clear();
        self.machine.watch_opened(answered);
        self.meter.watch_opened();
        match &list {
            Some(list) => self.streaming(list),
            None => self.activity(Activity::Watching),
        }
        let seconds = options.timeout_seconds.unwrap_or_default();
        let mut watch = OpenWatch {
            asked,
            answered,
            deadline: asked + Duration::from_secs(seconds.into()) + WATCH_GRACE,
            heard: answered,
            events: 0,
            list,
            probe: None,
        };
        let ended = self.follow(&mut watch).await?;
        self.open = None;
        self.reflector.report.log_left_out(&mut self.skips);
        Ok(self.watch_ended(ended, &watch))
    }

    fn not_opened(
        &mut self,
        error: transport::Error,
        list: Option<&List<K>>,
        is_late: bool,
    ) -> Action {
        self.meter.watch_refused(error.class());
        let error = self.failed(error, None);
        let refused = if is_late {
            WatchEnd::Unanswered(&error)
        } else {
            WatchEnd::Refused(&error)
        };
        let next = self.machine.watch_ended(refused, Instant::now());
        if let Some(unfinished) = list {
            self.end_initial_events(unfinished, &next);
        }
        next
    }

    fn watch_ended(&mut self, ended: Ended, watch: &OpenWatch<K>) -> Action {
        self.meter
            .watch_ended(watch.asked, watch.events, ended.class());
        let requested = match &ended {
            Ended::RelistRequested(reason) => Some(*reason),
            _ => None,
        };
        let next = self.after(ended, watch);
        if let Some(unfinished) = &watch.list {
            self.end_initial_events(unfinished, &next);
        }
        if let Some(reason) = requested {
            self.meter.relist_requested(reason);
        }
        next
    }

    fn after(&mut self, ended: Ended, watch: &OpenWatch<K>) -> Action {
        let (now, open_for) = (Instant::now(), watch.asked.elapsed());
        match ended {
            Ended::Closed if self.machine.is_streaming() => {
                let what = "the streaming list closed before the end of the list";
                self.failed(transport::Error::new(Class::Connection, what), Some(watch));
                self.machine.watch_ended(WatchEnd::Closed(open_for), now)
            }
            Ended::Closed => {
                let (Reporter { name, expects, .. }, events) =
                    (&self.reflector.report, watch.events);
                tracing::debug!(reflector = %name, %expects, ?open_for, events, "the watch closed");
                self.machine.watch_ended(WatchEnd::Closed(open_for), now)
            }
            Ended::Error(error) => {
                let error = self.failed(error, Some(watch));
                self.machine.watch_ended(WatchEnd::Error(&error), now)
            }
            Ended::Broken(error) => {
                let error = self.failed(error, Some(watch));
                self.machine.watch_ended(WatchEnd::Broken(&error), now)
            }
            Ended::Overdue(error) => {
                let error = self.failed(error, Some(watch));
                self.machine.watch_ended(WatchEnd::Overdue(&error), now)
            }
            Ended::StoreFull => self.machine.watch_ended(WatchEnd::StoreFull, now),
            Ended::WentBack(error) => {
                self.meter.probe_failed(error.class());
                let error = self.failed(error, Some(watch));
                self.machine.probe_failed(&error, now)
            }
            Ended::Unconfirmed => {
                let Reporter { name, expects, .. } = &self.reflector.report;
                tracing::info!(reflector = %name, %expects, "the streaming list is empty, and the cache is not; listing to confirm it");
                // The LIST that follows belongs to the same attempt, and reverts this increment.
                self.failures += 1;
                self.machine.watch_ended(WatchEnd::Unconfirmed, now)
            }
            Ended::RelistRequested(_) => self.machine.watch_ended(WatchEnd::RelistRequested, now),
        }
    }

    /// Delivers the events of an open watch, and returns the reason for its end.
    async fn follow(&mut self, watch: &mut OpenWatch<K>) -> Result<Ended, Gone> {
        let known = watch.list.is_some().then(|| self.known()).flatten();
        self.pieces.begin(known);
        let ended = self.follow_pieces(watch).await;
        // The server sends later events again.
        self.pieces.clear();
        match ended {
            Ok(ended) => Ok(ended),
            Err(Stop::Gone) => Err(Gone),
            Err(Stop::Failed(error)) => Ok(Ended::Error(error)),
            Err(Stop::Again(Again::Requested(reason))) => Ok(Ended::RelistRequested(reason)),
            Err(Stop::Again(Again::Unconfirmed)) => Ok(Ended::Unconfirmed),
        }
    }

    async fn follow_pieces(&mut self, watch: &mut OpenWatch<K>) -> Result<Ended, Stop> {
        let object_bytes = self.reflector.requests.limits().object_bytes;
        let encoding = self.open.as_ref().map(Body::encoding).unwrap_or_default();
        let mut splitter = encoding.watch_splitter(object_bytes);
        // Events before the end of the body are delivered first.
        let mut end = None;
        loop {
            if self.pieces.is_empty()
                && let Some(end) = end
            {
                return Ok(match end {
                    BodyEnd::Closed => watch.closed(splitter.finish().map_err(Into::into)),
                    BodyEnd::Failed(ended) => ended,
                });
            }
            let mut was_border = false;
            match self.next(watch, end.is_none()).await? {
                Next::Ended(ended) => return Ok(ended),
                Next::Nothing => {}
                Next::Chunk(chunk) => end = self.feed(&mut splitter, chunk).map(BodyEnd::Failed),
                Next::BodyEnd(reached) => end = Some(reached),
                Next::Piece(piece) => {
                    self.take(piece, watch).await?;
                    if self.open.is_none() {
                        return Ok(Ended::StoreFull);
                    }
                    was_border = self.pieces.is_at_border();
                    if was_border {
                        watch.heard = Instant::now();
                        let list = watch.list.as_ref();
                        self.keep_house(list, list.is_some()).await;
                    }
                }
            }
            if was_border || self.pieces.is_empty() {
                if let Some(list) = &watch.list {
                    self.streaming(list);
                }
                if watch.is_overdue(&self.machine) {
                    return Ok(watch.outlasted(&self.machine));
                }
            }
            self.pieces.give_way().await;
            // Lets a shutdown interrupt the loop, however fast bytes and events arrive.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Waits for a chunk of the response body, a decoded event, or the end of the body or the watch.
    ///
    /// Returns [`Next::Nothing`] after background work, such as sending a probe.
    ///
    /// `reads` is whether the call may read the response body. After the end of the body, `reads` must be
    /// `false`.
    async fn next(&mut self, watch: &mut OpenWatch<K>, reads: bool) -> Result<Next<K>, Stop> {
        self.begin_probe(watch);
        let Some(body) = &mut self.open else {
            return Ok(Next::Ended(Ended::StoreFull));
        };
        let mut must_have_come = watch.must_have_come(&self.machine);
        let is_list = watch.list.is_some();
        let is_unconfirmed = self.reflector.from.is_some() && !is_list;
        if is_unconfirmed {
            // The first event confirms the revision, or one second without an event does. No probe is sent
            // before the confirmation.
            must_have_come = watch.answered + VERY_SHORT;
        }
        let probe = watch.probe.as_mut();
        let probe = probe.filter(|_| !is_unconfirmed && self.machine.requires_probe());
        // Events of a watch are decoded at once to keep latency low; only a list gathers them.
        let gathers = reads && is_list && self.pieces.gathers();
        let reads = reads && (gathers || self.pieces.takes_more());
        // While pieces are decoded, there is no deadline: a passed deadline is ready on every poll, before
        // the pieces.
        let deadline = (gathers || self.pieces.is_empty()).then_some(must_have_come);
        let housekeeping = self.housekeeping.as_ref();
        let has_work = housekeeping.is_some_and(|it| it.has_work());
        let next = tokio::select! {
            biased;
            reason = self.reflector.relist.received(), if !is_list => {
                return Ok(Next::Ended(Ended::RelistRequested(reason)));
            }
            answered = WatchProbe::answer(probe) => {
                return Ok(self.probed(watch, answered));
            }
            next = body.next(deadline), if reads => next,
            Some(piece) = self.pieces.next(), if !gathers => return Ok(Next::Piece(piece)),
            // Housekeeping runs only while nothing else is ready.
            () = tokio::task::yield_now(), if has_work => {
                self.keep_house_some();
                return Ok(Next::Nothing);
            }
        };
        let failed = |ended| Ok(Next::BodyEnd(BodyEnd::Failed(ended)));
        match next {
            Ok(Some(Ok(chunk))) => Ok(Next::Chunk(chunk)),
            Ok(Some(Err(error))) if error.retry() == Retry::Resume => failed(Ended::Broken(error)),
            Ok(Some(Err(error))) => failed(Ended::Error(error)),
            Ok(None) => Ok(Next::BodyEnd(BodyEnd::Closed)),
            Err(_) if gathers => {
                self.pieces.decode_now();
                Ok(Next::Nothing)
            }
            Err(_) if is_unconfirmed => self.confirm().await.map(|()| Next::Nothing),
            Err(_) => Ok(Next::Ended(watch.outlasted(&self.machine))),
        }
    }

    /// Queues the events in a chunk for decoding.
    ///
    /// If the chunk contains invalid data, returns the reason to end the watch. The events before the invalid
    /// data are still queued.
    fn feed(&mut self, splitter: &mut WatchSplitter, chunk: Bytes) -> Option<Ended> {
        let received = self.meter.now();
        let mut frames = Vec::new();
        let fed = splitter.feed(chunk, &mut frames);
        self.pieces.push(frames, received);
        fed.err().map(|error| Ended::Error(error.into()))
    }

    /// Sends the last revision to the store as a bookmark.
    ///
    /// Called when a watch from this revision has been open for a second. By then, a server without this
    /// revision would have reported an error.
    async fn confirm(&mut self) -> Result<(), Stop> {
        let revision = self.machine.last_revision().clone();
        self.hand_on(DeltaKind::Bookmark { revision }).await
    }

    async fn take(&mut self, piece: Piece<K>, watch: &mut OpenWatch<K>) -> Result<(), Stop> {
        self.meter.received(piece.received);
        if let Some(list) = &mut watch.list {
            if let Some(end) = self.initial_event(piece, list)? {
                list.page(watch.asked, Some(watch.answered));
                self.complete(end, list).await?;
                watch.list = None;
            }
        } else {
            self.event(piece).await?;
            self.failures = 0;
        }
        watch.events += 1;
        Ok(())
    }
}
