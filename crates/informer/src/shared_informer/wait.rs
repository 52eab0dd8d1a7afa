//! Waits until the cache contains a write, or no longer contains a deleted object (read-your-writes).
//!
//! A read after a completed wait returns the state that the caller waited for, or a newer state.

use std::{cmp::Ordering, time::Duration};

use futures_core::future::BoxFuture;
use kube_core::Resource;
use tokio::time::{Instant, timeout_at};

use super::{Shared, SharedInformer};
use crate::{
    clock,
    indexer::Snapshot,
    object::{self, Known, Object, ObjectName, ResourceVersion, SourceId},
};

/// Future that resolves when a cache contains a write.
pub type WaitForRevision = BoxFuture<'static, Result<(), RevisionError>>;

/// Future that resolves when a cache no longer contains a deleted object.
pub type WaitForDeleted = BoxFuture<'static, Result<(), DeletedError>>;

/// Write that a caller waits for: a revision, or the object that the write request returned.
///
/// An informer of several namespaces has one revision per namespace. If the caller waits for an object, and
/// the cache contains any version of it, the wait ends when the object's namespace reaches the revision.
/// Otherwise, the wait ends when all namespaces reach the revision.
///
/// The revision must belong to an object of the informer's kind. A revision of another kind does not show
/// whether the cache contains the write.
///
/// An aggregated API server may send an object after the cache has passed the object's revision. A wait for
/// that revision then ends before the object arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    revision: ResourceVersion,
    name: Option<ObjectName>,
}

/// The reason why a wait for a revision failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevisionError {
    /// The cache did not reach the revision before the deadline.
    #[error("revision {wanted} was not reached in time, the cache is at {reached}")]
    Deadline {
        /// Revision that the caller waited for.
        wanted: ResourceVersion,
        /// Revision of the cache when the wait failed.
        reached: ResourceVersion,
    },
    /// The revision can't be compared with the revision of the cache, because one of them is not a positive
    /// decimal number.
    #[error("revision {wanted:?} can't be compared with {reached:?} of the cache")]
    NotComparable {
        /// Revision that the caller waited for.
        wanted: ResourceVersion,
        /// Revision of the cache when the wait failed.
        reached: ResourceVersion,
    },
    /// The server's revision went backwards, for example after a restore from a backup. The write may be
    /// lost: read the object from the server.
    ///
    /// If the informer does not detect the restore, the wait succeeds instead when the restored server
    /// reaches the awaited revision again.
    #[error("the server went back to revision {reached} during the wait for revision {wanted}")]
    WentBack {
        /// Revision that the caller waited for.
        wanted: ResourceVersion,
        /// Revision of the cache when the wait failed.
        reached: ResourceVersion,
    },
    /// The informer stopped before the cache reached the revision.
    #[error("the informer stopped before it reached revision {wanted}")]
    Stopped {
        /// Revision that the caller waited for.
        wanted: ResourceVersion,
    },
}

/// The reason why a wait for a deletion failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeletedError {
    /// At the deadline, the cache still contained the object, or the first list of the informer was not yet
    /// completely in the cache.
    #[error("the deletion of {name} was not received in time")]
    Deadline {
        /// Name of the object whose deletion the caller waited for.
        name: ObjectName,
    },
    /// The informer stopped before the cache showed the deletion.
    #[error("the informer stopped before it received the deletion of {name}")]
    Stopped {
        /// Name of the object whose deletion the caller waited for.
        name: ObjectName,
    },
}

// === impl Written ===

impl From<ResourceVersion> for Written {
    fn from(revision: ResourceVersion) -> Self {
        Self {
            revision,
            name: None,
        }
    }
}

impl From<&ResourceVersion> for Written {
    fn from(revision: &ResourceVersion) -> Self {
        revision.clone().into()
    }
}

impl From<&str> for Written {
    fn from(revision: &str) -> Self {
        ResourceVersion::from(revision).into()
    }
}

impl From<u64> for Written {
    fn from(revision: u64) -> Self {
        ResourceVersion::from(revision).into()
    }
}

/// Converts an object that a write request returned.
///
/// If the object has no name or no revision, a wait for the object fails with
/// [`RevisionError::NotComparable`].
impl<K: Resource> From<&K> for Written {
    fn from(object: &K) -> Self {
        let (name, revision) = object::name_and_revision(object).unzip();
        Self {
            revision: revision.unwrap_or_default(),
            name,
        }
    }
}

impl<K> From<&Object<K>> for Written {
    fn from(object: &Object<K>) -> Self {
        Self {
            revision: object.revision().clone(),
            name: Some(object.object_name().clone()),
        }
    }
}

/// Returns the revision up to which the cache has all changes of the object `name`.
///
/// The informer has `sources` sources, for example two namespaces, with one revision each. For a cached
/// object, the function returns the revision of the object's source. Otherwise, the function returns the
/// lowest revision, which is unset until all sources have been listed.
pub(crate) fn reached<K>(
    snapshot: &Snapshot<K>,
    name: Option<&ObjectName>,
    sources: u32,
) -> ResourceVersion {
    if let Some((source, _)) = name.and_then(|name| snapshot.known(name)) {
        return snapshot.source_revision(source);
    }
    let all = (0..sources).map(|number| snapshot.source_revision(SourceId::new(number)));
    let least = all.reduce(
        |least, next| match (next.is_comparable(), least.is_comparable()) {
            (true, true) if next < least => next,
            (false, true) => next,
            _ => least,
        },
    );
    least.unwrap_or_default()
}

pub(super) fn for_written<K: Send + Sync + 'static>(
    informer: SharedInformer<K>,
    written: Written,
    deadline: Duration,
) -> WaitForRevision {
    let Written { revision, name } = written;
    let wanted = revision;
    // Read at the call, to also detect a rollback between the call and the first poll.
    let rollbacks = informer.shared.indexer.snapshot().rollbacks();
    Box::pin(async move {
        let sources = informer.sources();
        let mut far = ResourceVersion::UNSET;
        let verdict = until(&informer, clock::from_now(deadline), |snapshot| {
            far = reached(snapshot, name.as_ref(), sources);
            verdict(&wanted, &far, snapshot.rollbacks() != rollbacks)
        });
        match verdict.await {
            Ok(verdict) => verdict,
            Err(WaitFailure::Stopped) => Err(RevisionError::Stopped { wanted }),
            Err(WaitFailure::Deadline) => Err(RevisionError::Deadline {
                wanted,
                reached: far,
            }),
        }
    })
}

/// Returns the result of a wait for a revision, or `None` if the wait must continue.
///
/// `went_back` is whether the server's revision has gone backwards during the wait.
fn verdict(
    wanted: &ResourceVersion,
    reached: &ResourceVersion,
    went_back: bool,
) -> Option<Result<(), RevisionError>> {
    let (wanted, reached) = (wanted.clone(), reached.clone());
    if !wanted.is_comparable() {
        return Some(Err(RevisionError::NotComparable { wanted, reached }));
    }
    if went_back {
        return Some(Err(RevisionError::WentBack { wanted, reached }));
    }
    match reached.partial_cmp(&wanted) {
        Some(Ordering::Less) => None,
        Some(_) => Some(Ok(())),
        None if reached.is_unset() => None,
        None => Some(Err(RevisionError::NotComparable { wanted, reached })),
    }
}

pub(super) fn for_deleted<K>(
    informer: SharedInformer<K>,
    name: ObjectName,
    uid: String,
    deadline: Duration,
) -> WaitForDeleted
where
    K: Resource + Send + Sync + 'static,
{
    Box::pin(async move {
        let deadline = clock::from_now(deadline);
        let gone = async {
            // Before the first list the cache is empty, which does not mean that the object was deleted.
            let mut status = informer.status();
            let listed = status.wait_for(|status| status.synced || status.is_stopped());
            match timeout_at(deadline, listed).await {
                Ok(Some(status)) if status.synced => {}
                Ok(_) => return Err(WaitFailure::Stopped),
                Err(_) => return Err(WaitFailure::Deadline),
            }
            until(&informer, deadline, |snapshot| {
                let there = snapshot.get(&name).is_some_and(|known| known.uid() == uid);
                (!there).then_some(())
            })
            .await
        };
        gone.await.map_err(|failure| match failure {
            WaitFailure::Stopped => DeletedError::Stopped { name: name.clone() },
            WaitFailure::Deadline => DeletedError::Deadline { name: name.clone() },
        })
    })
}

enum WaitFailure {
    Stopped,
    Deadline,
}

/// Calls `look` with the current and each later snapshot until `look` returns a value.
async fn until<K, T>(
    informer: &SharedInformer<K>,
    deadline: Instant,
    mut look: impl FnMut(&Snapshot<K>) -> Option<T>,
) -> Result<T, WaitFailure> {
    let Shared { indexer, .. } = &*informer.shared;
    loop {
        let next = informer.applied();
        // Read before the look, so that the last batch before the stop is included.
        let stopped = informer.is_stopped();
        if let Some(found) = look(&indexer.snapshot()) {
            return Ok(found);
        }
        if stopped {
            return Err(WaitFailure::Stopped);
        }
        if timeout_at(deadline, next).await.is_err() {
            return Err(WaitFailure::Deadline);
        }
    }
}
