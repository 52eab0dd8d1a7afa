//! Waiting for a cache to have come as far as a revision.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::time::timeout_at;

use super::SharedInformer;
use crate::{clock, object::ResourceVersion};

/// Resolves when a cache has come as far as a revision.
pub type WaitForRevision = BoxFuture<'static, Result<(), RevisionError>>;

/// Why a cache has not come as far as was waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// It took longer than was allowed.
    #[error("revision {wanted} was not reached in time, the cache is at {reached}")]
    Deadline {
        /// What was waited for.
        wanted: ResourceVersion,
        /// How far the cache is.
        reached: ResourceVersion,
    },
    /// The two revisions have no order, as they are not both decimal numbers.
    #[error("revision {wanted} can't be compared with {reached}")]
    NotComparable {
        /// What was waited for.
        wanted: ResourceVersion,
        /// How far the cache is.
        reached: ResourceVersion,
    },
    /// The informer has ended.
    #[error("the informer stopped before it reached revision {wanted}")]
    Stopped {
        /// What was waited for.
        wanted: ResourceVersion,
    },
}

pub(super) fn for_revision<K: Send + Sync + 'static>(
    informer: SharedInformer<K>,
    wanted: ResourceVersion,
    deadline: Duration,
) -> WaitForRevision {
    Box::pin(async move {
        let applied = Arc::clone(&informer.shared.applied);
        let deadline = clock::from_now(deadline);
        loop {
            let next = applied.notified();
            let reached = informer.last_sync_resource_version();
            match reached.partial_cmp(&wanted) {
                Some(std::cmp::Ordering::Less) => {}
                Some(_) => return Ok(()),
                None if reached.is_unset() => {}
                None => return Err(RevisionError::NotComparable { wanted, reached }),
            }
            if informer.is_stopped() || informer.status().get().is_stopped() {
                return Err(RevisionError::Stopped { wanted });
            }
            if timeout_at(deadline, next).await.is_err() {
                return Err(RevisionError::Deadline { wanted, reached });
            }
        }
    })
}
