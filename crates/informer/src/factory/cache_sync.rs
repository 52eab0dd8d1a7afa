//! Waits for several informers at once, and reports each informer that did not sync with the reason.

use std::{fmt, future::IntoFuture, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;

use crate::status::{SyncError, WaitForSync};

/// Future that resolves when several informers have synced.
///
/// The informers can have any types and belong to any factories.
///
/// # Cancel safety
/// Dropping the future has no effect on the informers.
#[must_use = "nothing waits until this is awaited"]
#[derive(Debug)]
pub struct WaitForCacheSync(pub(super) Vec<WaitForSync>);

/// Combines several waits into one wait, which also waits for informers that are not started yet.
///
/// See [`SharedInformer::wait_for_sync`](crate::SharedInformer::wait_for_sync).
#[doc(alias = "WaitForNamedCacheSync")]
pub fn wait_for_cache_sync(waits: impl IntoIterator<Item = WaitForSync>) -> WaitForCacheSync {
    WaitForCacheSync(waits.into_iter().collect())
}

impl WaitForCacheSync {
    /// Sets the time after which the wait fails.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|wait| wait.deadline(deadline))
                .collect(),
        )
    }

    /// Stops the wait for an informer at its first error that a retry cannot fix.
    pub fn fail_fast(self) -> Self {
        Self(self.0.into_iter().map(WaitForSync::fail_fast).collect())
    }
}

/// Error of a wait for several informers: the informers that did not sync, each with the reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheSyncError {
    /// One error per informer that did not sync.
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
