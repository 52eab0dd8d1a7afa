//! An open watch: reads it, hands on what it tells, and notices when nothing comes any more.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::{
    super::{
        DeltaKind, Error, ReflectorStore, Reporter,
        machine::{Action, Machine, VERY_SHORT, WatchEnd},
    },
    Again, Gone, Piece, Running, Stop,
};
use crate::{
    clock,
    decode::{self, Decoded},
    limits::WATCH_GRACE,
    metrics::RelistReason,
    object::{Deleted, ObjectName, ResourceVersion},
    status::Activity,
    transport::{self, Body, Class, Frame, FrameKind, ListOptions, Retry, WatchSplitter},
};

pub(super) enum Ended {
    Closed,
    /// Server or transport said why, what was sent can't be read, or the store did not take it.
    Error(transport::Error),
    /// The connection is gone, and what was told on it still holds.
    Broken(transport::Error),
    /// It has not told the end of its initial events.
    Overdue(transport::Error),
    /// The store was full for too long.
    LetGo,
    /// The probe beside it says that the server has gone back, or may have.
    WentBack(transport::Error),
    /// A streaming list has no objects, and the cache has some.
    Unconfirmed,
    /// The store was found to differ from the server.
    Doubted(RelistReason),
}

impl Ended {
    fn class(&self) -> Option<Class> {
        match self {
            Self::Closed | Self::LetGo | Self::Doubted(_) | Self::Unconfirmed => None,
            Self::Error(error)
            | Self::Broken(error)
            | Self::Overdue(error)
            | Self::WentBack(error) => Some(error.class()),
        }
    }
}

/// What comes next of a watch.
pub(super) enum Next<K> {
    Chunk(Bytes),
    BodyEnd(BodyEnd),
    Piece(Piece<K>),
    /// Something was done meanwhile.
    Nothing,
    Ended(Ended),
}

/// How the body of a watch ended.
pub(super) enum BodyEnd {
    Closed,
    Failed(Ended),
}

/// The times of one watch.
pub(super) struct Opened {
    pub(super) asked: Instant,
    pub(super) answered: Instant,
    /// When the server must have ended it.
    deadline: Instant,
    /// When the store had taken the last event.
    heard: Instant,
}

impl Opened {
    /// The server should have ended it by now. While the store takes its time nothing is read, which
    /// says nothing of the connection. Bytes that never become an event say nothing either.
    fn outlived(&self) -> Instant {
        self.deadline.max(self.heard + WATCH_GRACE)
    }

    /// A bookmark should have come by now.
    fn silent(&self, machine: &Machine) -> Option<Instant> {
        let allowed = machine.silence_allowed()?;
        Some(clock::after(self.heard, allowed))
    }

    /// Until when something must have come.
    fn patience(&self, machine: &Machine) -> Instant {
        let silent = match machine.initial_events_deadline() {
            None => self.silent(machine),
            overdue => overdue,
        };
        silent.map_or(self.outlived(), |silent| silent.min(self.outlived()))
    }

    /// What should have come by now has not, though bytes may have.
    fn is_overdue(&self, machine: &Machine) -> bool {
        Instant::now() >= self.patience(machine)
    }

    /// What it means that nothing has come.
    fn outlasted(&self, machine: &Machine) -> Ended {
        let late = |what| transport::Error::new(Class::Timeout, what);
        if machine.is_streaming() {
            let what = "the streaming list brings nothing new, and no end";
            return Ended::Overdue(late(what));
        }
        let what = if Instant::now() >= self.outlived() {
            "the watch outlived its time-out; its connection is taken for dead"
        } else {
            "the watch is silent, without even a bookmark; its connection is taken for dead"
        };
        Ended::Broken(late(what))
    }
}

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    pub(super) async fn watch(&mut self, options: &ListOptions) -> Result<Action, Gone> {
        let asked = Instant::now();
        self.events = 0;
        let seconds = options.timeout_seconds.unwrap_or_default();
        let deadline = asked + Duration::from_secs(seconds.into()) + WATCH_GRACE;
        let streaming = self.machine.is_streaming();
        self.activity(Activity::Opening);
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let allowed = self.machine.headers_allowed();
        let answered_by = clock::after(asked, allowed);
        let opened = timeout_at(answered_by, lister_watcher.watch(options)).await;
        let is_late = opened.is_err();
        let late = |_| {
            let what =
                format!("the watch was not answered: no response headers within {allowed:?}");
            transport::Error::new(Class::Timeout, what)
        };
        match opened.map_err(late).flatten() {
            Ok(chunks) => self.open = Some(Body::new(chunks)),
            Err(error) => {
                self.meter.watch_refused(error.class());
                let error = self.failed(error, None);
                let refused = if is_late {
                    WatchEnd::Unanswered(&error)
                } else {
                    WatchEnd::Refused(&error)
                };
                let next = self.machine.watch_ended(refused, Instant::now());
                self.end_initial_events(streaming, &next);
                return Ok(next);
            }
        }
        let now = Instant::now();
        self.machine.watch_opened(now);
        self.meter.watch_opened();
        if streaming {
            self.streaming();
        } else {
            self.activity(Activity::Watching);
        }
        let mut opened = Opened {
            asked,
            answered: now,
            deadline,
            heard: now,
        };
        let ended = self.follow(&mut opened).await?;
        self.open = None;
        self.reflector.report.log_left_out(&mut self.skips);
        self.meter.watch_ended(asked, self.events, ended.class());
        let unfinished = self.machine.is_streaming();
        let doubted = match &ended {
            Ended::Doubted(reason) => Some(*reason),
            _ => None,
        };
        let next = self.watch_ended(ended, asked);
        self.end_initial_events(unfinished, &next);
        if let Some(reason) = doubted {
            self.meter.doubted(reason);
        }
        Ok(next)
    }

    fn watch_ended(&mut self, ended: Ended, asked: Instant) -> Action {
        let (now, open_for) = (Instant::now(), asked.elapsed());
        match ended {
            Ended::Closed if self.machine.is_streaming() => {
                let what = "the streaming list closed before its end";
                self.failed(
                    transport::Error::new(Class::Connection, what),
                    Some(open_for),
                );
                self.machine.watch_ended(WatchEnd::Closed(open_for), now)
            }
            Ended::Closed => {
                let (Reporter { name, expects, .. }, events) =
                    (&self.reflector.report, self.events);
                tracing::debug!(reflector = %name, %expects, ?open_for, events, "the watch closed");
                self.machine.watch_ended(WatchEnd::Closed(open_for), now)
            }
            Ended::Error(error) => {
                let error = self.failed(error, Some(open_for));
                self.machine.watch_ended(WatchEnd::Error(&error), now)
            }
            Ended::Broken(error) => {
                let error = self.failed(error, Some(open_for));
                self.machine.watch_ended(WatchEnd::Broken(&error), now)
            }
            Ended::Overdue(error) => {
                let error = self.failed(error, Some(open_for));
                self.machine.watch_ended(WatchEnd::Overdue(&error), now)
            }
            Ended::LetGo => self.machine.watch_ended(WatchEnd::LetGo, now),
            Ended::WentBack(error) => {
                self.meter.probe_failed(error.class());
                let error = self.failed(error, Some(open_for));
                self.machine.probe_failed(&error, now)
            }
            Ended::Unconfirmed => {
                let Reporter { name, expects, .. } = &self.reflector.report;
                tracing::info!(reflector = %name, %expects, "the streaming list has no objects, and the cache has some");
                // The list that follows is part of the attempt, and takes it back.
                self.failures += 1;
                self.machine.watch_ended(WatchEnd::Unconfirmed, now)
            }
            Ended::Doubted(_) => self.machine.watch_ended(WatchEnd::Doubted, now),
        }
    }

    /// Hands on the events of an open watch until it ends.
    async fn follow(&mut self, opened: &mut Opened) -> Result<Ended, Gone> {
        let is_list = self.machine.is_streaming();
        let known = if is_list { self.known() } else { None };
        self.pieces.begin(known);
        let ended = self.follow_pieces(opened).await;
        // What has come behind the end comes again.
        self.pieces.clear();
        match ended {
            Ok(ended) => Ok(ended),
            Err(Stop::Gone) => Err(Gone),
            Err(Stop::Failed(error)) => Ok(Ended::Error(error)),
            Err(Stop::Again(Again::Doubted(reason))) => Ok(Ended::Doubted(reason)),
            Err(Stop::Again(Again::Unconfirmed)) => Ok(Ended::Unconfirmed),
        }
    }

    async fn follow_pieces(&mut self, opened: &mut Opened) -> Result<Ended, Stop> {
        let mut splitter = WatchSplitter::new(self.reflector.requests.limits().object_bytes);
        // What was sent before its end is handed on before that.
        let mut end = None;
        let mut beside = None;
        loop {
            if self.pieces.is_empty()
                && let Some(end) = end
            {
                return Ok(match end {
                    BodyEnd::Closed => self.closed(splitter.finish(), opened.asked),
                    BodyEnd::Failed(ended) => ended,
                });
            }
            let mut was_border = false;
            let next = self.next_or_probed(opened, end.is_none(), &mut beside);
            match next.await? {
                Next::Ended(ended) => return Ok(ended),
                Next::Nothing => {}
                Next::Chunk(chunk) => end = self.feed(&mut splitter, chunk).map(BodyEnd::Failed),
                Next::BodyEnd(reached) => end = Some(reached),
                Next::Piece(piece) => {
                    self.take(piece, opened).await?;
                    if self.open.is_none() {
                        return Ok(Ended::LetGo);
                    }
                    was_border = self.pieces.is_at_border();
                    if was_border {
                        opened.heard = Instant::now();
                        self.tend_packing(self.machine.is_streaming()).await;
                    }
                }
            }
            if was_border || self.pieces.is_empty() {
                if self.machine.is_streaming() {
                    self.streaming();
                }
                if opened.is_overdue(&self.machine) {
                    return Ok(opened.outlasted(&self.machine));
                }
            }
            self.pieces.give_way().await;
            // Bytes, events and store may be ready for ever; a stop must come through all the same.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Waits for whatever comes next; `reads` says whether the body goes on.
    pub(super) async fn next(&mut self, opened: &Opened, reads: bool) -> Result<Next<K>, Stop> {
        let Some(body) = &mut self.open else {
            return Ok(Next::Ended(Ended::LetGo));
        };
        let mut patience = opened.patience(&self.machine);
        let is_streaming = self.machine.is_streaming();
        let is_unconfirmed = self.reflector.from.is_some() && !is_streaming;
        if is_unconfirmed {
            // Before anything else: whatever comes first confirms.
            patience = opened.answered + VERY_SHORT;
        }
        // An event of a watch is decoded as it comes, because someone waits for it.
        let gathers = reads && is_streaming && self.pieces.gathers();
        let reads = reads && (gathers || self.pieces.takes_more());
        // Pieces that are being decoded are waited for without a deadline. One that has passed is ready on every
        // poll, and the pieces behind it would never be taken.
        let patience = (gathers || self.pieces.is_empty()).then_some(patience);
        let next = tokio::select! {
            biased;
            reason = self.reflector.trust.lost(), if !is_streaming => {
                return Ok(Next::Ended(Ended::Doubted(reason)));
            }
            next = body.next(patience), if reads => next,
            Some(piece) = self.pieces.next(), if !gathers => return Ok(Next::Piece(piece)),
            // Only while there is nothing to hear.
            () = tokio::task::yield_now(), if self.repacking.is_under_way() => {
                self.repack_some();
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
            Err(_) => Ok(Next::Ended(opened.outlasted(&self.machine))),
        }
    }

    /// Takes some more of the body; what is wrong with it.
    fn feed(&mut self, splitter: &mut WatchSplitter, chunk: Bytes) -> Option<Ended> {
        let received = self.meter.now();
        let mut frames = Vec::new();
        let fed = splitter.feed(chunk, &mut frames);
        self.pieces.push(frames, received);
        fed.err().map(Ended::Error)
    }

    /// Tells the store that the server goes on from what the store has from before. An expired revision
    /// is told inside the watch, at once; nothing else may come for a minute.
    async fn confirm(&mut self) -> Result<(), Stop> {
        let revision = self.machine.last_revision().clone();
        self.hand_on(DeltaKind::Bookmark { revision }).await
    }

    async fn take(&mut self, piece: Piece<K>, opened: &Opened) -> Result<(), Stop> {
        self.meter.received(piece.received);
        if self.machine.is_streaming() {
            self.initial_event(piece, opened).await?;
        } else {
            self.event(piece).await?;
            self.failures = 0;
        }
        self.events += 1;
        Ok(())
    }

    /// What the end of a watch's body means.
    fn closed(&self, finished: Result<(), transport::Error>, asked: Instant) -> Ended {
        match finished {
            Err(error) => Ended::Broken(error),
            Ok(()) if self.events == 0 && asked.elapsed() < VERY_SHORT => {
                let what = "very short watch: closed within a second without an event";
                Ended::Error(transport::Error::new(Class::VeryShortWatch, what))
            }
            Ok(()) => Ended::Closed,
        }
    }

    /// Hands on one event, and takes its revision once it has been accepted.
    async fn event(&mut self, piece: Piece<K>) -> Result<(), Stop> {
        let Piece { frame, decoded, .. } = piece;
        let Frame { kind, bytes } = &frame;
        self.meter.event(kind);
        let revision = match kind {
            FrameKind::Error => return Err(transport::Error::from_status_body(500, bytes).into()),
            FrameKind::Bookmark => self.bookmark(kind, bytes).await?,
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                self.object_event(&frame, decoded).await?
            }
            FrameKind::Unknown(unknown) => {
                // Something has happened, and nobody knows what: everything is asked for.
                self.report(&Error::UnknownEvent(unknown.clone()));
                let what = "the watch told something of a type that is not known";
                return Err(transport::Error::new(Class::Protocol, what).into());
            }
            FrameKind::Item => None,
        };
        self.machine.observe(kind, revision);
        let bookmark = *kind == FrameKind::Bookmark;
        let revision = self.machine.last_revision();
        let status = &self.reflector.report.status;
        status.progress(self.reflector.source, revision, bookmark);
        Ok(())
    }

    async fn object_event(
        &mut self,
        Frame { kind, bytes }: &Frame,
        decoded: Option<Decoded<K>>,
    ) -> Result<Option<ResourceVersion>, Stop> {
        let Some(decoded) = decoded else {
            return Ok(None);
        };
        let is_of_nobody = decoded.is_of_nobody(bytes);
        let Some(object) = self.usable(decoded) else {
            if is_of_nobody {
                let what = "the watch told of an object that can't be read";
                return Err(transport::Error::new(Class::Protocol, what).into());
            }
            return self.bookmark(kind, bytes).await;
        };
        let revision = object.revision().clone();
        if self.machine.is_below_last(kind, &revision) {
            let cached = self.cached(object.object_name());
            self.machine.below_last(&revision, cached.as_ref())?;
        }
        if *kind != FrameKind::Deleted {
            self.room_for(object.object_name())?;
        }
        let delta = match kind {
            FrameKind::Added => DeltaKind::Added(object),
            FrameKind::Deleted if object.broken().is_some() => {
                let name = object.object_name().clone();
                self.hand_on(DeltaKind::Deleted(Deleted::FinalStateUnknown {
                    name,
                    last_known: None,
                }))
                .await?;
                return self.bookmark(kind, bytes).await;
            }
            FrameKind::Deleted => DeltaKind::Deleted(Deleted::Known(object)),
            _ => DeltaKind::Updated(object),
        };
        self.hand_on(delta).await?;
        Ok(Some(revision))
    }

    /// A list brings at most so many objects, and without end a watch brings more.
    fn room_for(&self, object: &ObjectName) -> Result<(), Stop> {
        let limit = self.reflector.requests.limits().objects;
        let source = self.reflector.source;
        if self.reflector.store.is_full(source, object, limit) {
            let what = format!("the cache has more than {limit} objects (Limits::objects)");
            return Err(transport::Error::new(Class::Protocol, what).into());
        }
        Ok(())
    }

    /// Tells the store how far the server has come, by an event that brings it no object. One below the
    /// last revision tells it nothing.
    async fn bookmark(
        &mut self,
        kind: &FrameKind,
        bytes: &[u8],
    ) -> Result<Option<ResourceVersion>, Stop> {
        let Some(revision) = decode::revision(bytes) else {
            return Ok(None);
        };
        if self.machine.is_below_last(kind, &revision) {
            self.machine.below_last(&revision, None)?;
            return Ok(None);
        }
        let told = revision.clone();
        self.hand_on(DeltaKind::Bookmark { revision: told }).await?;
        Ok(Some(revision))
    }
}
