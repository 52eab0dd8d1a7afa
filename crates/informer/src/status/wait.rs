//! Waiting for an informer, with the reason when it was in vain.

use std::{fmt, future::IntoFuture, pin::pin, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::{sync::watch, time::timeout_at};

use super::{Activity, Status, StatusReader};
use crate::{clock, transport::Retry};

/// Waits for an informer or a handler to have synced; resolves when awaited.
///
/// Without a deadline or [`WaitForSync::fail_fast`] it ends when that holds, or when the informer has
/// ended or failed. An informer that has ended is not waited for, whether or not it had synced before: its
/// cache is not kept up to date any more. It owns what it needs and can be awaited anywhere. What holds
/// already when the deadline comes counts.
///
/// # Errors
/// Awaiting it gives a [`SyncError`], which names the informer or the handler and says why.
///
/// # Cancel safety
/// Dropping it loses nothing.
#[doc(alias = "WaitForCacheSync")]
#[doc(alias = "WaitFor")]
#[doc(alias = "DoneChecker")]
#[doc(alias = "IsDone")]
#[must_use = "nothing waits until this is awaited"]
#[derive(Clone, Debug)]
pub struct WaitForSync {
    name: Arc<str>,
    expects: Arc<str>,
    status: StatusReader,
    handler: Option<watch::Receiver<bool>>,
    deadline: Option<Duration>,
    fail_fast: bool,
    /// Nothing would end the wait, because nothing was started.
    is_unstarted: bool,
}

/// Why something has not synced.
#[doc(alias = "SyncResult")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SyncError {
    /// The informer, the reflector, or the handler.
    pub name: Arc<str>,
    /// The objects that it waits for: API version and kind, or what they were called.
    pub expects: Arc<str>,
    /// What ended the waiting.
    pub failure: SyncFailure,
    /// What the informer was doing then.
    pub status: Status,
}

/// What ended the waiting for a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncFailure {
    /// It took longer than was allowed.
    Deadline(Duration),
    /// The informer has ended, as it was asked to, or the handler was removed.
    Ended,
    /// The informer has failed; [`Status::failure`] of [`SyncError::status`] says why.
    Failed,
    /// With `fail_fast`: the server refuses in a way that trying again does not change.
    Refused,
    /// It belongs to a factory whose [`start`](crate::SharedInformerFactory::start) was not called before the
    /// wait began.
    NotStarted,
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = &self.status;
        write!(f, "{} ({}) ", self.name, self.expects)?;
        match self.failure {
            // An informer that has synced is not waited for, so this is a handler.
            SyncFailure::Deadline(deadline) if status.synced => write!(
                f,
                "has not been told everything within {deadline:?}; the informer: {status}"
            ),
            SyncFailure::Deadline(deadline) => {
                write!(f, "has not synced within {deadline:?}: {status}")
            }
            SyncFailure::Ended if status.synced => write!(f, "has ended: {status}"),
            SyncFailure::Ended => write!(f, "ended before it had synced: {status}"),
            SyncFailure::Failed => write!(f, "has failed: {status}"),
            SyncFailure::Refused => write!(f, "can't sync: {status}"),
            SyncFailure::NotStarted => {
                write!(
                    f,
                    "can't sync, because its factory was not started: {status}"
                )
            }
        }
    }
}

impl std::error::Error for SyncError {}

impl WaitForSync {
    pub(crate) fn informer(name: Arc<str>, expects: Arc<str>, status: StatusReader) -> Self {
        Self {
            name,
            expects,
            status,
            handler: None,
            deadline: None,
            fail_fast: false,
            is_unstarted: false,
        }
    }

    pub(crate) fn handler(
        name: Arc<str>,
        expects: Arc<str>,
        status: StatusReader,
        handler: watch::Receiver<bool>,
    ) -> Self {
        Self {
            handler: Some(handler),
            ..Self::informer(name, expects, status)
        }
    }

    /// Fails when it is awaited, because what it waits for was not started.
    pub(crate) fn not_started(mut self) -> Self {
        self.is_unstarted = true;
        self
    }

    /// Gives up after this long, counted from the first poll.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Gives up at the first error that trying again does not change: forbidden, unauthorized, an
    /// unknown kind, a request that is not accepted.
    pub fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }

    async fn wait(self) -> Result<(), SyncError> {
        let deadline = self.deadline.map(clock::from_now);
        let fail_fast = self.fail_fast;
        let (mut status, reader) = (self.status.clone(), self.status.clone());
        let handler = self.handler;
        let informer = async {
            let verdict = |status: &Status| verdict(status, fail_fast);
            let decided = status.wait_for(|status| verdict(status).is_some()).await;
            let verdict = decided.as_ref().and_then(verdict);
            verdict.unwrap_or(Err(SyncFailure::Ended))
        };
        let waiting = async {
            let Some(mut handler) = handler else {
                return informer.await;
            };
            let mut told = pin!(async { handler.wait_for(|synced| *synced).await.is_ok() });
            let is_told = tokio::select! {
                biased;
                informer = informer => {
                    informer?;
                    told.await
                }
                // A handler that was removed never syncs, whatever becomes of the informer.
                is_told = &mut told => is_told,
            };
            // The informer may have ended, or failed, while its handler was waited for.
            match verdict(&reader.get(), fail_fast) {
                Some(Err(failure)) => Err(failure),
                _ if is_told => Ok(()),
                _ => Err(SyncFailure::Ended),
            }
        };
        let result = match (deadline, self.deadline) {
            _ if self.is_unstarted => Err(SyncFailure::NotStarted),
            (Some(at), Some(allowed)) => timeout_at(at, waiting)
                .await
                .unwrap_or(Err(SyncFailure::Deadline(allowed))),
            _ => waiting.await,
        };
        result.map_err(|failure| SyncError {
            name: self.name,
            expects: self.expects,
            failure,
            status: self.status.get(),
        })
    }
}

/// How a wait for the informer ends in this status; `None` while it goes on.
fn verdict(status: &Status, fail_fast: bool) -> Option<Result<(), SyncFailure>> {
    if status.failure.is_some() {
        Some(Err(SyncFailure::Failed))
    } else if status.is_stopped() {
        Some(Err(SyncFailure::Ended))
    } else if status.synced {
        Some(Ok(()))
    } else if fail_fast && is_hopeless(status) {
        Some(Err(SyncFailure::Refused))
    } else {
        None
    }
}

/// Whether some source is failing right now in a way that trying again does not change.
fn is_hopeless(status: &Status) -> bool {
    status.sources.iter().any(|source| {
        let error = source.last_error.as_ref();
        // A pause that no failure led to says nothing of the last error, which may be long past.
        let is_refused = match source.activity {
            Activity::BackingOff { attempt, .. } => attempt > 0,
            Activity::NotServed => true,
            _ => false,
        };
        is_refused && error.is_some_and(|error| error.retry() == Retry::GiveUp)
    })
}

impl IntoFuture for WaitForSync {
    type Output = Result<(), SyncError>;
    type IntoFuture = BoxFuture<'static, Result<(), SyncError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}
