//! Reading one's own writes: waiting for the cache to have what was written, or to have lost what was
//! deleted.
//!
//! Nothing is polled: the controller says after each batch that readers can see it, and what a batch
//! says of its revision is in the same root that readers see, so what a wait has found is what a read
//! after it finds, or newer.

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

/// Resolves when a cache has what was written.
pub type WaitForRevision = BoxFuture<'static, Result<(), RevisionError>>;

/// Resolves when a cache has lost what was deleted.
pub type WaitForDeleted = BoxFuture<'static, Result<(), DeletedError>>;

/// What a cache is waited for: a revision, or an object as the answer to a write returned it.
///
/// Both say the same of an informer over one source. Of several, an object also says which of them is
/// to have come so far. A revision is of the informer's own kind; another kind's says nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    revision: ResourceVersion,
    name: Option<ObjectName>,
}

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
    /// The two revisions have no order, as they are not both positive decimal numbers.
    #[error("revision {wanted:?} can't be compared with {reached:?}")]
    NotComparable {
        /// What was waited for.
        wanted: ResourceVersion,
        /// How far the cache is.
        reached: ResourceVersion,
    },
    /// The server's revision went backwards meanwhile, as after the restore of a backup: whether what
    /// was written is still there has to be read again.
    #[error("the server went back to revision {reached} while revision {wanted} was waited for")]
    WentBack {
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

/// Why a cache has not lost what it was to lose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeletedError {
    /// It took longer than was allowed.
    #[error("{name} was not seen to be deleted in time")]
    Deadline {
        /// What was to be deleted.
        name: ObjectName,
    },
    /// The informer has ended.
    #[error("the informer stopped before {name} was seen to be deleted")]
    Stopped {
        /// What was to be deleted.
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

/// One without a name or a revision is not waited for: it compares with nothing.
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

/// Up to which revision a cache over so many sources has everything that concerns an object: of the
/// source that has it, or else of the one that is least far; unset before its first list.
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
    // From the call on: a server that goes back before the first poll has gone back all the same.
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

/// What is to be said of a cache that has come so far; nothing yet if it has only to go on.
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
            // Before the first list nothing is there, and nothing has been deleted.
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

/// Looks at the cache now and after each batch, until something is found in it.
async fn until<K, T>(
    informer: &SharedInformer<K>,
    deadline: Instant,
    mut look: impl FnMut(&Snapshot<K>) -> Option<T>,
) -> Result<T, WaitFailure> {
    let Shared { indexer, .. } = &*informer.shared;
    loop {
        let next = informer.applied();
        // Asked for before the look, so that what the last batch brought still counts.
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
