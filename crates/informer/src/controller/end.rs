//! How the loop of an informer ends: as it was asked to, or by a panic.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::Serving;
use crate::{reflector::Reporter, status::FailureCause};

/// How an informer ended that was asked to, see [`Controller::run`](super::Controller::run).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Events that were discarded because handlers had not received them when the informer ended; zero
    /// after a drain that was in time.
    pub discarded: u64,
}

/// Says that the informer has ended, however it ends.
pub(super) struct GoneGuard(pub(super) Reporter, pub(super) Arc<Notify>);

impl Drop for GoneGuard {
    fn drop(&mut self) {
        self.0.status.stopped();
        self.1.notify_waiters();
    }
}

/// Why a part ended that should run until it is dropped.
pub(super) async fn end_of(part: &str, work: impl Future<Output = ()>) -> FailureCause {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(()) => FailureCause::Returned {
            part: Arc::from(part),
        },
        Err(panic) => FailureCause::panicked(part, &*panic),
    }
}

/// What runs the loop, in errors.
pub(super) const LOOP: &str = "the informer's loop";

/// Runs the loop to its end; why it failed, if it did. The guard is dropped after everything else, so that
/// nothing of the informer is left when it reports the end.
pub(super) async fn serve<K: Send + Sync + 'static>(
    serving: Serving<K>,
    gone: GoneGuard,
) -> Option<FailureCause> {
    let served = AssertUnwindSafe(serving.serve()).catch_unwind().await;
    let cause = FailureCause::panicked(LOOP, &*served.err()?);
    // Before the guard reports the end: what waits must not take a failure for an orderly end.
    gone.0.fail(cause.clone());
    Some(cause)
}
