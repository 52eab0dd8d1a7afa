//! Waiting for many informers at once, with every reason why it was in vain.

use std::{fmt, future::IntoFuture, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;

use crate::status::{SyncError, WaitForSync};

/// Waits for several informers, of any types and factories, to have synced; resolves when awaited.
///
/// # Cancel safety
/// Dropping it loses nothing.
#[must_use = "nothing waits until this is awaited"]
#[derive(Debug)]
pub struct WaitForCacheSync(pub(super) Vec<WaitForSync>);

/// Waits for these, also for those that have not been started yet; see
/// [`SharedInformer::wait_for_sync`](crate::SharedInformer::wait_for_sync).
#[doc(alias = "WaitForNamedCacheSync")]
pub fn wait_for_cache_sync(waits: impl IntoIterator<Item = WaitForSync>) -> WaitForCacheSync {
    WaitForCacheSync(waits.into_iter().collect())
}

impl WaitForCacheSync {
    /// Gives up after so long.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|wait| wait.deadline(deadline))
                .collect(),
        )
    }

    /// Gives up on an informer at the first error that trying again does not change.
    pub fn fail_fast(self) -> Self {
        Self(self.0.into_iter().map(WaitForSync::fail_fast).collect())
    }
}

/// Some informers have not synced; names each, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheSyncError {
    /// One per informer that has not.
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
