//! Runs an informer's loop and catches its panics. Defines the result of a regular shutdown ([`Ended`]).
//!
//! Guarantees: if the loop panics, the cause of the failure is recorded in the status before the informer is
//! marked as stopped. A task that waits for the informer therefore never mistakes a panic for a regular
//! shutdown.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::Serving;
use crate::{reflector::Reporter, status::FailureCause};

/// The result of a regular shutdown, returned by [`Controller::run`](super::Controller::run) and
/// [`ProcessLoop::run`](super::ProcessLoop::run).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Number of events that were discarded because handlers had not received them when the informer ended.
    ///
    /// Zero if all waiting events were delivered before the deadline of
    /// [`drain_at_shutdown`](super::Controller::drain_at_shutdown). After
    /// [`ProcessLoop::run`](super::ProcessLoop::run), this is the number of changes that were not processed.
    pub discarded: u64,
}

/// Guard that marks the informer as stopped when dropped, and wakes the tasks that wait for store changes.
pub(super) struct GoneGuard(pub(super) Reporter, pub(super) Arc<Notify>);

impl Drop for GoneGuard {
    fn drop(&mut self) {
        self.0.status.stopped();
        self.1.notify_waiters();
    }
}

/// Runs a part of the informer that must not end, and returns why the part ended.
pub(super) async fn end_of(part: &str, work: impl Future<Output = ()>) -> FailureCause {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(()) => FailureCause::Returned {
            part: Arc::from(part),
        },
        Err(panic) => FailureCause::panicked(part, &*panic),
    }
}

/// Name of the informer's loop in error messages.
pub(super) const LOOP: &str = "the informer's loop";

/// Runs the informer's loop, and returns the cause of the failure if the loop panics.
///
/// The guard `gone` marks the informer as stopped after the loop has released all its resources.
pub(super) async fn serve<K: Send + Sync + 'static>(
    serving: Serving<K>,
    gone: GoneGuard,
) -> Option<FailureCause> {
    let served = AssertUnwindSafe(serving.serve()).catch_unwind().await;
    let cause = FailureCause::panicked(LOOP, &*served.err()?);
    // The failure is recorded before the guard reports the end, so waiters do not see a regular shutdown.
    gone.0.fail(cause.clone());
    Some(cause)
}
