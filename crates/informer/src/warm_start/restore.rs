//! [`Restore`] loads the saved store when an informer starts, and saves the store while the informer runs and
//! when the informer ends.
//!
//! Guarantees: the store is loaded, or the load has failed, before any reflector runs. If the store is
//! loaded, the informer's loop receives the saved objects in place of the first list of each reflector, and
//! all reflectors resume at their saved revisions. Otherwise all reflectors list.

use std::{error::Error as _, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{SaveError, Saved, Snapshotter, snapshotter::Unidentified};
use crate::{
    clock,
    controller::{Command, Guest, InnerReflector, NoSnapshot, settled_snapshot},
    indexer::Snapshot,
    object::ResourceVersion,
    reflector::{Backoff, Delta, DeltaKind, Error, Reporter, probe_options, read_probe},
    status::{ColdReason, WarmStart},
    transport::{self, Class, ListerWatcher, Retry},
};

/// Timeout of each attempt of a request that a warm start sends to the server.
///
/// If the server requests a longer pause with `Retry-After`, the requested pause is reduced to this time. The
/// value is the API server's default of `--request-timeout`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of attempts of a request that fails with [`Retry::Backoff`], such as for HTTP 500.
///
/// With the default backoff, the four pauses take 12 to 24 s in total.
const ATTEMPTS: u32 = 5;

pub(crate) struct Restore<K> {
    snapshotter: Arc<Snapshotter<K>>,
    commands: mpsc::UnboundedSender<Command<K>>,
    /// Keeps the channel of changes open. After this channel is closed, the informer's loop ignores commands.
    _deltas: mpsc::Sender<Delta<K>>,
    report: Reporter,
}

impl<K: Send + Sync + 'static> Guest<K> for Restore<K> {
    /// Loads the saved store, so that the reflectors start their watches at the saved revisions. If the load
    /// fails, the reflectors list.
    fn begin<'a>(&'a mut self, reflectors: &'a mut [InnerReflector<K>]) -> BoxFuture<'a, ()> {
        Box::pin(self.load_or_start_cold(reflectors))
    }

    /// Saves the store periodically, or returns if [`SavedStore::every`](super::SavedStore::every) is not
    /// set.
    fn run(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Some(pause) = self.snapshotter.every() else {
                return;
            };
            loop {
                sleep_until(clock::from_now(pause)).await;
                self.save(settled_snapshot(&self.commands).await).await;
            }
        })
    }

    /// Waits for a final snapshot of the cache. Resolves with a second future, which saves the snapshot.
    fn end(&mut self) -> BoxFuture<'_, Option<BoxFuture<'_, ()>>> {
        let this = &*self;
        let snapshot = settled_snapshot(&this.commands);
        Box::pin(snapshot.map(|snapshot| Some(this.save(snapshot).boxed())))
    }
}

impl<K: Send + Sync + 'static> Restore<K> {
    /// Creates a `Restore`, or returns `None` if no warm start is configured.
    pub(crate) fn guest(
        snapshotter: Option<&Arc<Snapshotter<K>>>,
        commands: &mpsc::UnboundedSender<Command<K>>,
        deltas: &mpsc::Sender<Delta<K>>,
        report: &Reporter,
    ) -> Option<Box<dyn Guest<K>>> {
        Some(Box::new(Self {
            snapshotter: Arc::clone(snapshotter?),
            commands: commands.clone(),
            _deltas: deltas.clone(),
            report: report.clone(),
        }))
    }

    /// Saves a snapshot of the cache, logs the result, and updates
    /// [`Status::last_save_error`](crate::status::Status::last_save_error).
    async fn save(&self, snapshot: Result<Snapshot<K>, NoSnapshot>) {
        let saved = match snapshot {
            Ok(snapshot) => self.snapshotter.save(snapshot).await,
            Err(reason) => Err(SaveError::from(reason)),
        };
        let error = saved.as_ref().err().map(|error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        });
        self.log(&saved, error.as_deref());
        let status = &self.report.status;
        status.update(|status| status.last_save_error = error);
    }

    fn log(&self, saved: &Result<Saved, SaveError>, error: Option<&str>) {
        let (informer, path) = (&self.report.name, self.snapshotter.path().display());
        match saved {
            Ok(saved) => {
                tracing::debug!(%informer, %path, objects = saved.objects, bytes = saved.bytes, "saved");
            }
            // No warning: `NotSynced` and `Stopped` are not failures, and the load has already logged the
            // other errors.
            Err(
                SaveError::NotSynced
                | SaveError::Stopped
                | SaveError::SecretsRefused
                | SaveError::Unidentified,
            ) => tracing::debug!(%informer, %path, error, "not saved"),
            Err(_) => tracing::warn!(%informer, %path, error, "not saved"),
        }
    }

    /// Loads the saved store, and records a warm start, or the reason for a cold start.
    async fn load_or_start_cold(&self, reflectors: &mut [InnerReflector<K>]) {
        let outcome = match self.load(reflectors).await {
            Ok(warm) => warm,
            Err(reason) => WarmStart::Cold { reason },
        };
        let Reporter { name, status, .. } = &self.report;
        match &outcome {
            WarmStart::Warm { .. }
            | WarmStart::Cold {
                reason: ColdReason::NoFile,
            } => tracing::info!(informer = %name, start = %outcome, "started"),
            WarmStart::Cold { .. } => {
                let path = self.snapshotter.path().display();
                tracing::warn!(informer = %name, %path, start = %outcome, "started");
            }
        }
        status.update(|status| status.warm_start = Some(outcome));
    }

    async fn load(&self, reflectors: &mut [InnerReflector<K>]) -> Result<WarmStart, ColdReason> {
        self.snapshotter.check()?;
        if self.snapshotter.server().is_none() {
            self.identify(reflectors).await?;
        }
        let Some(first) = reflectors.first() else {
            return Err(ColdReason::Unidentified);
        };
        // All reflectors use the same form of objects.
        let loaded = self.snapshotter.load(first.decoder.clone()).await?;
        for (reflector, (_, revision)) in reflectors.iter_mut().zip(&loaded.lists) {
            self.probe(reflector, revision).await?;
        }
        let objects = loaded.lists.iter().map(|(objects, _)| objects.len()).sum();
        let mut lists = Vec::with_capacity(loaded.lists.len());
        for (reflector, (objects, revision)) in reflectors.iter_mut().zip(loaded.lists) {
            reflector.from = Some(revision.clone());
            let status = &self.report.status;
            status.progress(reflector.source, &revision, false);
            let kind = DeltaKind::ReplacedAll { objects, revision };
            lists.push(Delta::new(reflector.source, kind));
        }
        self.fill(lists).await;
        let first = reflectors.first().and_then(|first| first.from.clone());
        Ok(WarmStart::Warm {
            objects,
            revision: first.unwrap_or_default(),
            age: loaded.age,
        })
    }

    /// Sends the loaded objects to the informer's loop, and waits until the cache contains them.
    async fn fill(&self, lists: Vec<Delta<K>>) {
        let (reply, filled) = oneshot::channel();
        // If the loop has ended, the informer also ends, so errors are ignored.
        if self.commands.send(Command::Fill(lists, reply)).is_ok() {
            let _ = filled.await;
        }
    }

    /// Requests the identity of each reflector's server, and records the identities in the snapshotter.
    ///
    /// # Errors
    /// Returns the reason for a cold start if a request fails, or if a server has no identity.
    async fn identify(&self, reflectors: &mut [InnerReflector<K>]) -> Result<(), ColdReason> {
        let mut answers = Vec::new();
        for reflector in reflectors {
            let server = self.ask(reflector, |source| source.server()).await;
            answers.push(server.map_err(|error| ColdReason::ServerUnknown(error.to_string()))?);
        }
        let identified = self.snapshotter.identify(answers);
        identified.map_err(|Unidentified| ColdReason::Unidentified)
    }

    /// Checks that the server has reached the revision `saved`, with a request for one object.
    ///
    /// Ignores [`Class::Expired`]: if `saved` is too old, the reflector's watch fails later, and the
    /// reflector lists.
    async fn probe(
        &self,
        reflector: &mut InnerReflector<K>,
        saved: &ResourceVersion,
    ) -> Result<(), ColdReason> {
        let options = &probe_options(saved.clone());
        let limits = reflector.requests.limits();
        let asked = self.ask(reflector, |source| {
            let options = options.clone();
            Box::pin(async move { read_probe(source, &options, limits).await })
        });
        match asked.await {
            Ok(reached) if reached < *saved => Err(ColdReason::WentBack(saved.clone())),
            Ok(_) => Ok(()),
            Err(error) => match error.class() {
                Class::TooLargeResourceVersion => Err(ColdReason::WentBack(saved.clone())),
                // The revision is old. The watch reports whether it is too old.
                Class::Expired => Ok(()),
                _ => Err(ColdReason::Refused(error.to_string())),
            },
        }
    }

    /// Sends a request through the `ListerWatcher` of a reflector, and retries it with backoff.
    ///
    /// The [`Retry`] value of an error determines whether the request is retried:
    /// - [`Retry::Resume`]: The request is retried without limit.
    /// - [`Retry::Backoff`]: The request is retried until [`ATTEMPTS`] such errors have occurred. The method
    ///   then returns the last error.
    /// - Any other value: The method returns the error.
    async fn ask<T>(
        &self,
        reflector: &mut InnerReflector<K>,
        request: impl Fn(&dyn ListerWatcher) -> BoxFuture<'_, Result<T, transport::Error>>,
    ) -> Result<T, transport::Error> {
        let mut backoff = Backoff::new(reflector.requests.backoff());
        let source = Arc::clone(&reflector.lister_watcher);
        let Reporter { name, status, .. } = &self.report;
        let mut attempt = 0_u32;
        // Errors of an outage are not counted, because they are usual while a server starts again.
        let mut rejected = 0_u32;
        loop {
            attempt = attempt.saturating_add(1);
            let late = |_| transport::Error::new(Class::Timeout, "the server does not respond");
            let asked = timeout(ANSWER_TIMEOUT, request(&*source)).await;
            let error = match asked.map_err(late).flatten() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let is_final = match error.retry() {
                Retry::Resume => false,
                Retry::Backoff => {
                    rejected += 1;
                    rejected == ATTEMPTS
                }
                Retry::GiveUp | Retry::Relist => true,
            };
            if is_final {
                return Err(error);
            }
            let error = Arc::new(error);
            let what = source.description();
            tracing::warn!(informer = %name, %what, %error, attempt, "the warm start waits");
            status.failed(reflector.source, &error);
            let pause = backoff.failed(Instant::now(), &mut reflector.rng);
            let pause = pause.max(error.retry_after().unwrap_or_default().min(ANSWER_TIMEOUT));
            status.back_off(reflector.source, pause, attempt);
            self.report.tell_handler(&Error::Transport(error));
            sleep(pause).await;
        }
    }
}
