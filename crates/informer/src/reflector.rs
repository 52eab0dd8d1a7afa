//! Keeps one source in step with the server: lists, watches, and starts over for as long as it
//! lives.
//!
//! This file is the shell that moves bytes; what to ask for next is decided in `machine`, and how
//! long to pause in `backoff`. The reflector knows nothing of queues, stores and handlers: it sends
//! [`Delta`]s down a bounded channel and waits while that is full, which slows the watch and not the
//! memory.

mod backoff;
mod delta;
mod machine;

pub(crate) use self::machine::MachineConfig;
pub use self::{
    backoff::BackoffConfig,
    delta::{Delta, DeltaKind, DeltaType},
};

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout, timeout_at},
};

use self::machine::{Action, Machine, VERY_SHORT, WatchEnd};
use crate::{
    decode::{self, Decoded, Decoder},
    object::{DecodeError, Deleted, Object, ObjectName, ResourceVersion, SourceId},
    status::{Activity, StatusWriter},
    transport::{
        self, Class, Frame, FrameKind, ListOptions, ListSplitter, ListerWatcher, WatchSplitter,
    },
};

/// A list that brings no byte for this long has stalled and is given up. The API server itself ends
/// every request but a watch after a minute (`--request-timeout`).
const LIST_STALL: Duration = Duration::from_secs(60);

/// A server ends a watch after the time-out that it was asked for; one that is still open so much
/// later has lost its connection without anybody noticing.
const WATCH_GRACE: Duration = Duration::from_secs(30);

/// What went wrong in a reflector; it goes on nevertheless.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request was refused, or its answer broke off.
    #[error(transparent)]
    Transport(Arc<transport::Error>),
    /// One object did not decode. It is kept as broken.
    #[error(transparent)]
    Decode(DecodeError),
    /// The queue's key function could not name an object. It is left out.
    #[error("{object} has no key: {reason}")]
    Key {
        /// The object.
        object: ObjectName,
        /// What the key function said.
        reason: String,
    },
    /// The watch sent a type of event that nobody knows. It was skipped.
    #[error("unknown type of watch event: {0:?}")]
    UnknownEvent(String),
}

/// Hears of every failure of an informer's reflectors, as it happens. It must not block.
pub type WatchErrorHandler = Arc<dyn Fn(&Error) + Send + Sync>;

/// Everything one reflector works with.
pub(crate) struct Reflector<K> {
    pub(crate) source: SourceId,
    pub(crate) lister_watcher: Arc<dyn ListerWatcher>,
    pub(crate) decoder: Decoder<K>,
    pub(crate) deltas: mpsc::Sender<Delta<K>>,
    pub(crate) report: Reporter,
}

/// Where a reflector says what it does and what went wrong.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) name: Arc<str>,
    pub(crate) status: StatusWriter,
    pub(crate) error_handler: Option<WatchErrorHandler>,
}

impl Reporter {
    /// One object was left out or is broken; everything else goes on.
    pub(crate) fn skipped(&self, error: &Error) {
        tracing::warn!(informer = %self.name, %error, "skipped");
        self.tell_handler(error);
    }

    /// A user's handler that panics must not take the reflector with it.
    fn tell_handler(&self, error: &Error) {
        let Some(handler) = &self.error_handler else {
            return;
        };
        if catch_unwind(AssertUnwindSafe(|| handler(error))).is_err() {
            tracing::error!(informer = %self.name, "the watch error handler panicked");
        }
    }
}

/// The informer behind the channel is gone.
struct Gone;

impl<K> Reflector<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    /// Runs until the channel is closed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request under way. It can't be resumed.
    pub(crate) async fn run(self, config: MachineConfig, rng: fastrand::Rng) {
        let mut running = Running {
            machine: Machine::new(config, rng),
            staged: Vec::new(),
            failures: 0,
            reflector: self,
        };
        let mut action = running.machine.start();
        loop {
            let next = match action {
                Action::List { options, first } => Ok(running.list(&options, first).await),
                Action::Replace(revision) => running.replace(revision).await,
                Action::Watch(options) => running.watch(&options).await,
                Action::Sleep(pause) => Ok(running.sleep(pause).await),
            };
            match next {
                Ok(next) => action = next,
                Err(Gone) => return,
            }
        }
    }
}

struct Running<K> {
    reflector: Reflector<K>,
    machine: Machine,
    /// The list under way; void until it is complete.
    staged: Vec<Object<K>>,
    /// Failures since something worked, for people.
    failures: u32,
}

impl<K> Running<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    async fn list(&mut self, options: &ListOptions, first: bool) -> Action {
        if first {
            self.staged = Vec::new();
        }
        self.listing();
        let page = match self.read_page(options).await {
            Ok(end) => self.machine.page(&end),
            Err(error) => Err(error),
        };
        match page {
            Ok(action) => action,
            Err(error) => {
                // Void, and not to be kept through a pause.
                self.staged = Vec::new();
                let error = self.failed(error);
                self.machine.list_failed(&error, Instant::now())
            }
        }
    }

    async fn read_page(
        &mut self,
        options: &ListOptions,
    ) -> Result<transport::ListEnd, transport::Error> {
        let stalled = |_| transport::Error::new(Class::Timeout, "the list stalled");
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let answer = timeout(LIST_STALL, lister_watcher.list(options)).await;
        let mut body = answer.map_err(stalled)??;
        let mut splitter = ListSplitter::default();
        let mut items = Vec::new();
        while let Some(chunk) = timeout(LIST_STALL, body.next()).await.map_err(stalled)? {
            splitter.feed(chunk?, &mut items)?;
            for Frame { bytes, .. } in items.drain(..) {
                match self.reflector.decoder.item(&bytes) {
                    Decoded::Object(object) => {
                        self.report_broken(&object);
                        self.staged.push(object);
                    }
                    Decoded::Unreadable(error) => self.report(&Error::Decode(error)),
                }
            }
            self.listing();
            tokio::task::coop::consume_budget().await;
        }
        splitter.finish()
    }

    async fn replace(&mut self, revision: ResourceVersion) -> Result<Action, Gone> {
        let objects = std::mem::take(&mut self.staged);
        let count = objects.len();
        let kind = DeltaKind::ReplacedAll {
            objects,
            revision: revision.clone(),
        };
        self.send(kind).await?;
        self.failures = 0;
        tracing::debug!(informer = %self.reflector.report.name, %revision, count, "listed");
        let (status, source) = (&self.reflector.report.status, self.reflector.source);
        status.progress(source, &revision, false);
        Ok(self.machine.replaced(revision, Instant::now()))
    }

    async fn watch(&mut self, options: &ListOptions) -> Result<Action, Gone> {
        let asked = Instant::now();
        let seconds = options.timeout_seconds.unwrap_or_default();
        let deadline = asked + Duration::from_secs(seconds.into()) + WATCH_GRACE;
        self.activity(Activity::Opening);
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let opened = match timeout_at(deadline, lister_watcher.watch(options)).await {
            Ok(opened) => opened,
            Err(_) => Err(transport::Error::new(
                Class::Timeout,
                "the watch was not answered",
            )),
        };
        let body = match opened {
            Ok(body) => body,
            Err(error) => {
                let error = self.failed(error);
                return Ok(self
                    .machine
                    .watch_ended(WatchEnd::Refused(&error), Instant::now()));
            }
        };
        self.machine.watch_opened(Instant::now());
        self.activity(Activity::Watching);
        let ended = self.follow(body, asked, deadline).await?;
        let now = Instant::now();
        Ok(match ended {
            Ended::Closed => self.machine.watch_ended(WatchEnd::Closed(now - asked), now),
            Ended::Error(error) => {
                let error = self.failed(error);
                self.machine.watch_ended(WatchEnd::Error(&error), now)
            }
            Ended::Broken(error) => {
                let error = self.failed(error);
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
        let mut events = 0_u64;
        loop {
            let chunk = match timeout_at(deadline, body.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(error))) => return Ok(Ended::Broken(error)),
                Ok(None) => {
                    return Ok(match splitter.finish() {
                        Err(error) => Ended::Broken(error),
                        Ok(()) if events == 0 && asked.elapsed() < VERY_SHORT => {
                            let what = "very short watch: closed within a second without an event";
                            Ended::Error(transport::Error::new(Class::VeryShortWatch, what))
                        }
                        Ok(()) => Ended::Closed,
                    });
                }
                Err(_) => {
                    let what = "the watch outlived its time-out; its connection is taken for dead";
                    return Ok(Ended::Broken(transport::Error::new(Class::Timeout, what)));
                }
            };
            let fed = splitter.feed(chunk, &mut frames);
            for frame in frames.drain(..) {
                events += 1;
                self.failures = 0;
                if let Some(error) = self.event(&frame).await? {
                    return Ok(Ended::Error(error));
                }
            }
            if let Err(error) = fed {
                return Ok(Ended::Error(error));
            }
        }
    }

    /// Hands on one event; the server's error, if it is one.
    async fn event(&mut self, frame: &Frame) -> Result<Option<transport::Error>, Gone> {
        let Frame { kind, bytes } = frame;
        let revision = match kind {
            FrameKind::Error => return Ok(Some(transport::Error::from_status_body(500, bytes))),
            FrameKind::Bookmark => self.bookmark(bytes).await?,
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                self.object_event(kind, bytes).await?
            }
            FrameKind::Unknown(kind) => {
                self.report(&Error::UnknownEvent(kind.clone()));
                self.bookmark(bytes).await?
            }
            FrameKind::Item => None,
        };
        if self.machine.observe(kind, revision) {
            let bookmark = *kind == FrameKind::Bookmark;
            let revision = self.machine.last_revision();
            self.reflector
                .report
                .status
                .progress(self.reflector.source, revision, bookmark);
        }
        Ok(None)
    }

    async fn object_event(
        &mut self,
        kind: &FrameKind,
        bytes: &Bytes,
    ) -> Result<Option<ResourceVersion>, Gone> {
        let object = match self.reflector.decoder.object(bytes) {
            Decoded::Object(object) => object,
            Decoded::Unreadable(error) => {
                self.report(&Error::Decode(error));
                return self.bookmark(bytes).await;
            }
        };
        self.report_broken(&object);
        let revision = object.revision().clone();
        let delta = match kind {
            FrameKind::Added => DeltaKind::Added(object),
            FrameKind::Deleted if object.broken().is_some() => {
                let name = object.object_name().clone();
                self.send(DeltaKind::Deleted(Deleted::FinalStateUnknown {
                    name,
                    last_known: None,
                }))
                .await?;
                return self.bookmark(bytes).await;
            }
            FrameKind::Deleted => DeltaKind::Deleted(Deleted::Known(object)),
            _ => DeltaKind::Updated(object),
        };
        self.send(delta).await?;
        Ok(Some(revision))
    }

    /// Tells the store how far the server has come, by an event that brings it no object.
    async fn bookmark(&self, bytes: &[u8]) -> Result<Option<ResourceVersion>, Gone> {
        let revision = decode::revision(bytes);
        if let Some(revision) = revision.clone() {
            self.send(DeltaKind::Bookmark { revision }).await?;
        }
        Ok(revision)
    }

    async fn sleep(&mut self, pause: Duration) -> Action {
        let Reporter { status, .. } = &self.reflector.report;
        status.back_off(self.reflector.source, pause, self.failures);
        tokio::time::sleep(pause).await;
        self.machine.slept()
    }

    async fn send(&self, kind: DeltaKind<K>) -> Result<(), Gone> {
        let delta = Delta::new(self.reflector.source, kind);
        self.reflector.deltas.send(delta).await.map_err(|_| Gone)
    }

    fn listing(&self) {
        let page = self.machine.pages() + 1;
        let objects = self.staged.len();
        self.activity(Activity::Listing { page, objects });
    }

    fn activity(&self, activity: Activity) {
        self.reflector
            .report
            .status
            .activity(self.reflector.source, activity);
    }

    fn report_broken(&self, object: &Object<K>) {
        if let Some(error) = object.broken() {
            self.report(&Error::Decode(error.clone()));
        }
    }

    fn report(&self, error: &Error) {
        self.reflector.report.skipped(error);
    }

    fn failed(&mut self, error: transport::Error) -> Arc<transport::Error> {
        self.failures += 1;
        let error = Arc::new(error);
        let Reporter { name, status, .. } = &self.reflector.report;
        let what = self.reflector.lister_watcher.description();
        if error.class() == Class::Expired {
            tracing::debug!(informer = %name, %what, %error, "the revision is too old");
        } else {
            tracing::warn!(informer = %name, %what, %error, failures = self.failures, "failed");
        }
        status.failed(self.reflector.source, &error);
        self.reflector
            .report
            .tell_handler(&Error::Transport(Arc::clone(&error)));
        error
    }
}

enum Ended {
    Closed,
    /// The server said why, or what it sent can't be read.
    Error(transport::Error),
    Broken(transport::Error),
}
