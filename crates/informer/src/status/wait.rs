//! Waits until an informer or a handler has synced, or reports why it has not synced.
//!
//! The module only reads the status, and does not start an informer.

use std::{fmt, future::IntoFuture, pin::pin, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::{sync::watch, time::timeout_at};

use super::{Activity, Status, StatusReader};
use crate::{
    clock,
    transport::{Class, Retry},
};

/// A future that waits until an informer or a handler has synced.
///
/// The wait also ends when the informer ends or fails. [`deadline`](WaitForSync::deadline) and
/// [`fail_fast`](WaitForSync::fail_fast) can end the wait earlier. If the informer has ended, the wait
/// returns an error even if the informer had synced, because the cache is no longer updated.
///
/// # Errors
/// A [`SyncError`] contains the name of the informer or handler, and the reason.
///
/// # Cancel safety
/// Dropping the future has no effect on the informer.
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
    /// Whether the wait fails at once, because the informer's factory was not started.
    is_unstarted: bool,
}

/// Error of a wait for an informer or a handler that did not sync. The error contains the reason and the
/// informer's status.
#[doc(alias = "SyncResult")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SyncError {
    /// Name of the informer, the reflector or the handler that did not sync.
    pub name: Arc<str>,
    /// Description of the informer's objects: API version and kind, or the configured description.
    pub expects: Arc<str>,
    /// The reason why the wait failed.
    pub failure: SyncFailure,
    /// The informer's status when the wait failed.
    pub status: Status,
}

/// The reason why a wait for a sync failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncFailure {
    /// The informer or the handler did not sync before the deadline. The value is the maximum time of the
    /// wait.
    Deadline(Duration),
    /// The informer was stopped, or the handler was removed.
    Ended,
    /// The informer failed. The reason is [`Status::failure`] in [`SyncError::status`].
    Failed,
    /// The server rejects the requests with an error that a retry does not solve. Only a wait with
    /// [`fail_fast`](WaitForSync::fail_fast) returns this reason.
    Refused,
    /// The informer's factory was not [started](crate::SharedInformerFactory::start) before the wait began.
    NotStarted,
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = &self.status;
        write!(f, "{} ({}) ", self.name, self.expects)?;
        match self.failure {
            // The informer has synced, so the wait is for a handler.
            SyncFailure::Deadline(deadline) if status.synced => write!(
                f,
                "did not sync within {deadline:?}: the handler has not processed all initial events; informer: {status}"
            )?,
            SyncFailure::Deadline(deadline) => {
                write!(f, "did not sync within {deadline:?}: {status}")?;
            }
            SyncFailure::Ended if status.synced && status.is_stopped() => {
                write!(f, "was stopped: {status}")?;
            }
            SyncFailure::Ended if status.is_stopped() => {
                write!(f, "was stopped before it synced: {status}")?;
            }
            SyncFailure::Ended => write!(f, "ended before it synced; informer: {status}")?,
            SyncFailure::Failed => write!(f, "failed, and does not restart: {status}")?,
            SyncFailure::Refused => {
                write!(
                    f,
                    "can't sync, as the server rejects the requests: {status}"
                )?;
            }
            SyncFailure::NotStarted => {
                write!(f, "can't sync, as its factory was not started: {status}")?;
            }
        }
        match self.next_step() {
            Some(next) => write!(f, "; {next}"),
            None => Ok(()),
        }
    }
}

impl SyncError {
    fn next_step(&self) -> Option<&'static str> {
        match self.failure {
            SyncFailure::NotStarted => Some("call start of the factory before the wait"),
            SyncFailure::Deadline(_) | SyncFailure::Refused => {
                self.status.failing_for()?;
                next_step(self.status.last_error()?.class())
            }
            SyncFailure::Ended | SyncFailure::Failed => None,
        }
    }
}

/// Returns the next step that the error text suggests for an error of this class.
fn next_step(class: Class) -> Option<&'static str> {
    match class {
        Class::Unauthorized => Some("check the credentials of the client"),
        Class::Forbidden => Some("grant \"list\" and \"watch\" on the resource"),
        Class::NotFound => Some("install the CRD of the kind, or check its API version"),
        Class::Invalid => Some("check the selectors and the other list options"),
        Class::ConnectionRefused
        | Class::Connection
        | Class::Timeout
        | Class::Unavailable
        | Class::Server
        | Class::Internal => Some("check that the server runs and is reachable"),
        Class::Expired
        | Class::TooLargeResourceVersion
        | Class::TooManyRequests
        | Class::Protocol
        | Class::VeryShortWatch
        | Class::WentBack
        | Class::Store => None,
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

    /// Returns a wait that fails at the first poll with [`SyncFailure::NotStarted`].
    pub(crate) fn not_started(mut self) -> Self {
        self.is_unstarted = true;
        self
    }

    /// Sets the maximum time of the wait, counted from the first poll. After this time, the wait fails.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Makes the wait fail at the first error that a retry does not solve: unauthorized, forbidden, an
    /// unknown kind, or an invalid request.
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
                // A removed handler never syncs, independent of the informer.
                is_told = &mut told => is_told,
            };
            // The informer may have ended or failed in the meantime.
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

/// Returns the result of a wait for an informer; `None` while the wait continues.
///
/// If `fail_fast` is `true`, the wait fails at the first error that a retry does not solve.
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

/// Returns whether any reflector of the informer currently fails with an error that a retry does not solve.
fn is_hopeless(status: &Status) -> bool {
    status.sources.iter().any(|source| {
        let error = source.last_error.as_ref();
        // A pause without a failure does not make the last error current.
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
