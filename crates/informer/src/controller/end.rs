//! The end of an informer's loop: a regular shutdown or a panic.
//!
//! Guarantees: a panic of the loop is reported as a failure before the end of the informer is reported.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::Serving;
use crate::{reflector::Reporter, status::FailureCause};

/// The result of a regular shutdown, returned by [`Controller::run`](super::Controller::run).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Number of events that were discarded because handlers had not received them when the informer
    /// ended. Zero if a drain completed before its deadline.
    pub discarded: u64,
}

/// Reports on drop that the informer has ended.
pub(super) struct GoneGuard(pub(super) Reporter, pub(super) Arc<Notify>);

impl Drop for GoneGuard {
    fn drop(&mut self) {
        self.0.status.stopped();
        self.1.notify_waiters();
    }
}

/// Runs a part that must not end by itself, and returns the reason when it does.
pub(super) async fn end_of(part: &str, work: impl Future<Output = ()>) -> FailureCause {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(()) => FailureCause::Returned {
            part: Arc::from(part),
        },
        Err(panic) => FailureCause::panicked(part, &*panic),
    }
}

/// Name of the loop in errors.
pub(super) const LOOP: &str = "the informer's loop";

/// Runs the loop to its end. Returns the cause if it failed.
///
/// The guard is dropped last, so all resources of the informer are released before it reports the end.
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
