//! Wraps the queue of an informer to plant a bug: a deliberate defect that the simulation must find.
//!
//! The queue holds changes until they are applied to the cache.

use kube_informer::{
    object::Known,
    queue::{Batch, KeyError, KeyErrors, Queue, Replaced},
    reflector::{Delta, DeltaKind},
    shared_informer::Builder,
};

use super::Bug;
use crate::stored::Stored;

/// [`Bug::DeletionIgnored`] drops every fifth deletion.
const IGNORED: usize = 5;

/// Sets an informer's queue, with the planted `bug` if present.
pub(crate) fn queue<K: Stored>(
    builder: Builder<K>,
    queue: impl Queue<K> + 'static,
    bug: Option<Bug>,
) -> Builder<K> {
    match bug {
        Some(bug) => builder.queue(Faulty {
            inner: queue,
            bug,
            listed: false,
            deletions: 0,
        }),
        None => builder.queue(queue),
    }
}

struct Faulty<Q> {
    inner: Q,
    bug: Bug,
    listed: bool,
    deletions: usize,
}

impl<K: Stored, Q: Queue<K>> Queue<K> for Faulty<Q> {
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>> {
        if matches!(delta.kind, DeltaKind::Deleted(_)) {
            self.deletions += 1;
            if self.bug == Bug::DeletionIgnored && self.deletions.is_multiple_of(IGNORED) {
                return Ok(());
            }
        }
        self.inner.push(delta, known)
    }

    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>> {
        let again = std::mem::replace(&mut self.listed, true);
        if again && self.bug == Bug::UnchangedToldToAll {
            for object in &list.objects {
                let delta = Delta::new(list.source, DeltaKind::Updated(object.clone()));
                // Every drawn object has a key.
                let _ = self.inner.push(delta, known);
            }
        }
        self.inner.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<K>) {
        if self.bug == Bug::ResyncForgotten {
            return;
        }
        if self.bug != Bug::ResyncOvertakes {
            return self.inner.resync(known);
        }
        known.for_each(&mut |source, _, object| {
            let delta = Delta::new(source, DeltaKind::Sync(object.clone()));
            // Every drawn object has a key.
            let _ = self.inner.push(delta, known);
        });
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>> {
        let mut batch = self.inner.pop_batch(room)?;
        match self.bug {
            Bug::SyncedTooEarly if self.listed => {
                batch.completes = batch.deltas.first().map(|delta| delta.source);
            }
            Bug::NeverSynced => batch.completes = None,
            Bug::RevisionTooEarly => {
                for (_, revision) in &mut batch.reached {
                    let number: u64 = revision.to_string().parse().unwrap_or_default();
                    *revision = (number + 1).into();
                }
            }
            _ => {}
        }
        Some(batch)
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}
