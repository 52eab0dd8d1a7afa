//! The shell: sends the requests that the machine decides on, and hands on what comes back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    Delta, DeltaKind, Error, Reflector, ReflectorStore, Reporter, StoreError,
    list_steps::ListSteps,
    machine::{Action, Machine, VERY_SHORT, WatchEnd},
};
use crate::{
    decode::{self, Decoded, OtherKind},
    object::{Deleted, Object, ResourceVersion},
    status::Activity,
    transport::{self, Class, Frame, FrameKind, ListOptions, ListSplitter, Retry, WatchSplitter},
};

/// A list that brings no byte for this long has stalled and is given up. The API server itself ends
/// every request but a watch after a minute (`--request-timeout`).
const LIST_STALL: Duration = Duration::from_secs(60);

/// A server ends a watch after the time-out that it was asked for; one that is still open so much
/// later, and has been silent for as long, has lost its connection without anybody noticing.
const WATCH_GRACE: Duration = Duration::from_secs(30);

/// So many objects of one list are logged as broken or left out; the others are told to the error
/// handler only, and counted in the log.
const SKIPS_LOGGED: usize = 10;

/// Why something can't go on as it is.
enum Stop {
    /// The store is gone, and so is the reflector.
    Gone,
    /// The list or the watch under way has failed.
    Failed(transport::Error),
}

impl From<transport::Error> for Stop {
    fn from(error: transport::Error) -> Self {
        Self::Failed(error)
    }
}

/// The store is gone.
struct Gone;

pub(super) struct Running<K, S> {
    reflector: Reflector<K, S>,
    machine: Machine,
    /// The list under way; void until it is complete.
    staged: Vec<Object<K>>,
    /// Of the list under way, with whatever it is repeated for at once.
    steps: Option<ListSteps>,
    /// Objects of the list under way, or of the event, that were broken or left out.
    skipped: usize,
    /// Events of the watch under way.
    events: u64,
    /// Failures since something worked, for people.
    failures: u32,
}

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    pub(super) fn new(reflector: Reflector<K, S>) -> Self {
        Self {
            machine: Machine::new(reflector.config, reflector.rng.clone()),
            reflector,
            staged: Vec::new(),
            steps: None,
            skipped: 0,
            events: 0,
            failures: 0,
        }
    }

    /// Runs until the store is gone.
    pub(super) async fn run(mut self) {
        let _stopping = Stopping::after_starting(&self.reflector.report);
        let mut action = self.machine.start();
        loop {
            let next = match action {
                Action::List { options, first } => Ok(self.list(&options, first).await),
                Action::Replace(revision) => self.replace(revision).await,
                Action::Watch(options) => self.watch(&options).await,
                Action::Sleep(pause) => Ok(self.sleep(pause).await),
            };
            match next {
                Ok(next) => action = next,
                Err(Gone) => return,
            }
        }
    }

    async fn list(&mut self, options: &ListOptions, first: bool) -> Action {
        if first {
            self.staged = Vec::new();
            self.skipped = 0;
            self.steps.get_or_insert_with(ListSteps::begin);
        }
        self.listing();
        let (asked, mut answered) = (Instant::now(), None);
        let read = self.read_page(options, &mut answered).await;
        if let Some(steps) = &mut self.steps {
            steps.page(asked, answered);
        }
        match read.and_then(|end| self.machine.page(&end)) {
            Ok(action) => action,
            Err(error) => self.list_failed(error, self.staged.len()),
        }
    }

    async fn read_page(
        &mut self,
        options: &ListOptions,
        answered: &mut Option<Instant>,
    ) -> Result<transport::ListEnd, transport::Error> {
        let stalled = |_| transport::Error::new(Class::Timeout, "the list stalled");
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let answer = timeout(LIST_STALL, lister_watcher.list(options)).await;
        let mut body = answer.map_err(stalled)??;
        *answered = Some(Instant::now());
        let mut splitter = ListSplitter::default();
        let mut items = Vec::new();
        while let Some(chunk) = timeout(LIST_STALL, body.next()).await.map_err(stalled)? {
            splitter.feed(chunk?, &mut items)?;
            for Frame { bytes, .. } in items.drain(..) {
                let decoded = self.reflector.decoder.item(&bytes);
                let object = self.usable(decoded);
                self.staged.extend(object);
            }
            self.listing();
            tokio::task::coop::consume_budget().await;
        }
        splitter.finish()
    }

    fn list_failed(&mut self, error: transport::Error, objects: usize) -> Action {
        // Void, and not to be kept through a pause.
        self.staged = Vec::new();
        let error = self.failed(error, None);
        let action = self.machine.list_failed(&error, Instant::now());
        if !matches!(action, Action::List { .. }) {
            self.end_list(objects, false);
        }
        action
    }

    async fn replace(&mut self, revision: ResourceVersion) -> Result<Action, Gone> {
        let objects = std::mem::take(&mut self.staged);
        let count = objects.len();
        let kind = DeltaKind::ReplacedAll {
            objects,
            revision: revision.clone(),
        };
        match self.hand_on(kind).await {
            Ok(()) => {}
            Err(Stop::Gone) => return Err(Gone),
            Err(Stop::Failed(error)) => return Ok(self.list_failed(error, count)),
        }
        self.end_list(count, true);
        self.failures = 0;
        let Reporter {
            name,
            expects,
            status,
            ..
        } = &self.reflector.report;
        tracing::debug!(reflector = %name, %expects, %revision, count, "listed");
        status.progress(self.reflector.source, &revision, false);
        if self.reflector.alone.is_some() {
            status.update(|status| status.synced = true);
        }
        Ok(self.machine.replaced(revision, Instant::now()))
    }

    async fn watch(&mut self, options: &ListOptions) -> Result<Action, Gone> {
        let asked = Instant::now();
        self.events = 0;
        let seconds = options.timeout_seconds.unwrap_or_default();
        let deadline = asked + Duration::from_secs(seconds.into()) + WATCH_GRACE;
        self.activity(Activity::Opening);
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let unanswered = |_| transport::Error::new(Class::Timeout, "the watch was not answered");
        let opened = timeout_at(deadline, lister_watcher.watch(options)).await;
        let body = match opened.map_err(unanswered).flatten() {
            Ok(body) => body,
            Err(error) => {
                let error = self.failed(error, None);
                let refused = WatchEnd::Refused(&error);
                return Ok(self.machine.watch_ended(refused, Instant::now()));
            }
        };
        self.machine.watch_opened(Instant::now());
        self.activity(Activity::Watching);
        let ended = self.follow(body, asked, deadline).await?;
        let (now, open_for) = (Instant::now(), asked.elapsed());
        Ok(match ended {
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
        })
    }

    /// Hands on the events of an open watch until it ends.
    async fn follow(
        &mut self,
        mut body: transport::ByteStream,
        asked: Instant,
        deadline: Instant,
    ) -> Result<Ended, Gone> {
        let mut splitter = WatchSplitter::default();
        let mut frames = Vec::new();
        let mut handed_on = asked;
        loop {
            // While the store takes its time nothing is read, which says nothing of the connection.
            let deadline = deadline.max(handed_on + WATCH_GRACE);
            let chunk = match timeout_at(deadline, body.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) if error.retry() == Retry::Resume => {
                    return Ok(Ended::Broken(error));
                }
                Ok(Some(Err(error))) => return Ok(Ended::Error(error)),
                Ok(None) => return Ok(self.closed(splitter.finish(), asked)),
                Err(_) => {
                    let what = "the watch outlived its time-out; its connection is taken for dead";
                    return Ok(Ended::Broken(transport::Error::new(Class::Timeout, what)));
                }
            };
            let fed = splitter.feed(chunk, &mut frames);
            for frame in frames.drain(..) {
                match self.event(&frame).await {
                    Ok(()) => {}
                    Err(Stop::Gone) => return Err(Gone),
                    Err(Stop::Failed(error)) => return Ok(Ended::Error(error)),
                }
                self.events += 1;
                self.failures = 0;
                // Bytes and store may both be ready for ever; a stop must come through all the same.
                tokio::task::coop::consume_budget().await;
            }
            handed_on = Instant::now();
            if let Err(error) = fed {
                return Ok(Ended::Error(error));
            }
        }
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
    async fn event(&mut self, frame: &Frame) -> Result<(), Stop> {
        let Frame { kind, bytes } = frame;
        self.skipped = 0;
        let revision = match kind {
            FrameKind::Error => return Err(transport::Error::from_status_body(500, bytes).into()),
            FrameKind::Bookmark => self.bookmark(kind, bytes).await?,
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                self.object_event(kind, bytes).await?
            }
            FrameKind::Unknown(unknown) => {
                self.report(&Error::UnknownEvent(unknown.clone()));
                self.bookmark(kind, bytes).await?
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
        kind: &FrameKind,
        bytes: &Bytes,
    ) -> Result<Option<ResourceVersion>, Stop> {
        let decoded = self.reflector.decoder.object(bytes);
        let Some(object) = self.usable(decoded) else {
            return self.bookmark(kind, bytes).await;
        };
        let revision = object.revision().clone();
        self.machine.in_order(kind, Some(&revision))?;
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

    /// Tells the store how far the server has come, by an event that brings it no object.
    async fn bookmark(
        &mut self,
        kind: &FrameKind,
        bytes: &[u8],
    ) -> Result<Option<ResourceVersion>, Stop> {
        let revision = decode::revision(bytes);
        self.machine.in_order(kind, revision.as_ref())?;
        if let Some(revision) = revision.clone() {
            self.hand_on(DeltaKind::Bookmark { revision }).await?;
        }
        Ok(revision)
    }

    async fn hand_on(&mut self, kind: DeltaKind<K>) -> Result<(), Stop> {
        let delta = Delta::new(self.reflector.source, kind);
        match self.reflector.store.accept(delta).await {
            Ok(()) => Ok(()),
            Err(StoreError::Gone) => Err(Stop::Gone),
            Err(refused) => Err(transport::Error::new(Class::Store, refused.to_string()).into()),
        }
    }

    async fn sleep(&mut self, pause: Duration) -> Action {
        let Reporter { status, .. } = &self.reflector.report;
        status.back_off(self.reflector.source, pause, self.failures);
        tokio::time::sleep(pause).await;
        self.machine.slept()
    }

    /// What of a decoded piece has a place in the store. What was wrong with it is reported.
    fn usable(&mut self, decoded: Decoded<K>) -> Option<Object<K>> {
        match decoded {
            Decoded::Object(object) => {
                if let Some(error) = object.broken() {
                    self.report(&Error::Decode(error.clone()));
                }
                Some(object)
            }
            Decoded::Unreadable(error) => {
                self.report(&Error::Decode(error));
                None
            }
            Decoded::OtherKind(OtherKind { name, found }) => {
                self.report(&Error::OtherKind {
                    expected: Arc::clone(&self.reflector.report.expects),
                    found,
                    object: name,
                });
                None
            }
        }
    }

    fn listing(&self) {
        let page = self.machine.pages() + 1;
        let objects = self.staged.len();
        self.activity(Activity::Listing { page, objects });
    }

    fn end_list(&mut self, objects: usize, handed_on: bool) {
        let Reporter { name, expects, .. } = &self.reflector.report;
        if self.skipped > SKIPS_LOGGED {
            let skipped = self.skipped;
            tracing::warn!(reflector = %name, %expects, skipped, "a list had more objects like these");
        }
        if let Some(steps) = self.steps.take() {
            steps.end(name, expects, objects, handed_on);
        }
    }

    fn activity(&self, activity: Activity) {
        let Reporter { status, .. } = &self.reflector.report;
        status.activity(self.reflector.source, activity);
    }

    fn report(&mut self, error: &Error) {
        self.skipped += 1;
        if self.skipped > SKIPS_LOGGED {
            self.reflector.report.tell_handler(error);
        } else {
            self.reflector.report.skipped(error);
        }
    }

    /// Notes a failure, and how long the watch had been open, if it was one that ended.
    fn failed(
        &mut self,
        error: transport::Error,
        open_for: Option<Duration>,
    ) -> Arc<transport::Error> {
        self.failures += 1;
        let error = Arc::new(error);
        let Reporter {
            name,
            expects,
            status,
            ..
        } = &self.reflector.report;
        let what = self.reflector.lister_watcher.description();
        let events = open_for.map(|_| self.events);
        let open_for = open_for.map(tracing::field::debug);
        if error.class() == Class::Expired {
            tracing::debug!(reflector = %name, %expects, %what, %error, open_for, events, "the revision is too old");
        } else {
            let failures = self.failures;
            tracing::warn!(reflector = %name, %expects, %what, %error, open_for, events, failures, "failed");
        }
        status.failed(self.reflector.source, &error);
        let error_handled = Error::Transport(Arc::clone(&error));
        self.reflector.report.tell_handler(&error_handled);
        error
    }
}

enum Ended {
    Closed,
    /// Server or transport said why, what was sent can't be read, or the store did not take it.
    Error(transport::Error),
    /// The connection is gone, and what was told on it still holds.
    Broken(transport::Error),
}

/// Says that a reflector starts, and that it has stopped, however that came about.
struct Stopping {
    name: Arc<str>,
    expects: Arc<str>,
}

impl Stopping {
    fn after_starting(report: &Reporter) -> Self {
        let Reporter { name, expects, .. } = report.clone();
        tracing::debug!(reflector = %name, %expects, "starting");
        Self { name, expects }
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        let Self { name, expects } = self;
        tracing::debug!(reflector = %name, %expects, "stopped");
    }
}
