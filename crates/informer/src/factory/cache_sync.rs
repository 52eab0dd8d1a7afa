//! Waits until several informers have synced, and reports the reason for each informer that did not sync.
//!
//! This module does not start or stop an informer.

use std::{fmt, future::IntoFuture, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;

use crate::status::{SyncError, WaitForSync};

/// Awaitable value that completes when each of several informers has synced or has failed to sync.
///
/// The informers can have any types and belong to any factories.
///
/// # Cancel safety
/// Dropping the wait has no effect on the informers.
#[must_use = "nothing waits until this is awaited"]
#[derive(Debug)]
pub struct WaitForCacheSync(pub(super) Vec<WaitForSync>);

/// Combines the sync waits of several informers into one wait.
///
/// An item of `waits` is the result of
/// [`SharedInformer::wait_for_sync`](crate::SharedInformer::wait_for_sync). The combined wait also waits for
/// informers that have not been started yet.
#[doc(alias = "WaitForNamedCacheSync")]
pub fn wait_for_cache_sync(waits: impl IntoIterator<Item = WaitForSync>) -> WaitForCacheSync {
    WaitForCacheSync(waits.into_iter().collect())
}

impl WaitForCacheSync {
    /// Limits the wait to `deadline`, measured from the first poll.
    ///
    /// Each informer that has not synced by then is reported as not synced.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|wait| wait.deadline(deadline))
                .collect(),
        )
    }

    /// Ends the wait for an informer at the informer's first error that a retry cannot fix.
    ///
    /// That informer is reported as not synced. The wait for the other informers continues.
    pub fn fail_fast(self) -> Self {
        Self(self.0.into_iter().map(WaitForSync::fail_fast).collect())
    }
}

/// Error of a wait for the sync of several informers. It contains one error per informer that did not sync.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheSyncError {
    /// One error for each informer that did not sync.
    pub unsynced: Vec<SyncError>,
}

impl fmt::Display for CacheSyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.unsynced.iter().enumerate() {
            let separator = if n == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CacheSyncError {}

impl IntoFuture for WaitForCacheSync {
    type Output = Result<(), CacheSyncError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let results = join_all(self.0.into_iter().map(IntoFuture::into_future)).await;
            let unsynced: Vec<_> = results.into_iter().filter_map(Result::err).collect();
            if unsynced.is_empty() {
                Ok(())
            } else {
                Err(CacheSyncError { unsynced })
            }
        })
    }
}
