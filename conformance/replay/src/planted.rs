//! Bugs on purpose: a comparison that does not find them is worth nothing.
//!
//! Each is a faulty implementation behind a seam of the library, or what a reader would see of one.

use std::fmt;

use kube_informer::{
    object::{Deleted, Known},
    queue::{Batch, DeltaFifo, KeyError, KeyErrors, Popped, Queue, Replaced},
    reflector::{Delta, DeltaKind},
};

use crate::{cached::K, delta_fifo::Fifo};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A deletion of what is queued, but not in the store yet, is ignored.
    QueuedOnlyDeleteIgnored,
    /// A resync queues what has changes waiting.
    ResyncOvertakes,
    /// Synced from the first list on, not from its last pop.
    SyncedBeforeLastPop,
    /// A list's tombstones don't say what the object was last.
    TombstoneWithoutState,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::QueuedOnlyDeleteIgnored,
        Self::ResyncOvertakes,
        Self::SyncedBeforeLastPop,
        Self::TombstoneWithoutState,
    ];

    /// The component that has it.
    pub fn component(self) -> &'static str {
        match self {
            Self::QueuedOnlyDeleteIgnored
            | Self::ResyncOvertakes
            | Self::SyncedBeforeLastPop
            | Self::TombstoneWithoutState => "delta_fifo",
        }
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueuedOnlyDeleteIgnored => "a delete of a queued-only key ignored",
            Self::ResyncOvertakes => "resync overtaking a pending delta",
            Self::SyncedBeforeLastPop => "has-synced before the last initial pop",
            Self::TombstoneWithoutState => "tombstones without the last state",
        })
    }
}

/// A queue with a bug.
pub struct Faulty {
    inner: DeltaFifo<K>,
    bug: Bug,
    listed: bool,
}

impl Faulty {
    /// Spoils a queue.
    pub fn new(inner: DeltaFifo<K>, bug: Bug) -> Self {
        Self {
            inner,
            bug,
            listed: false,
        }
    }
}

impl Faulty {
    fn spoil(&self, deltas: &mut [Delta<K>]) {
        for delta in deltas {
            if let DeltaKind::Deleted(Deleted::FinalStateUnknown { last_known, .. }) =
                &mut delta.kind
                && self.bug == Bug::TombstoneWithoutState
            {
                *last_known = None;
            }
        }
    }
}

impl Queue<K> for Faulty {
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>> {
        if let DeltaKind::Deleted(deleted) = &delta.kind
            && self.bug == Bug::QueuedOnlyDeleteIgnored
            && self.inner.get(deleted.object_name()).is_some()
            && known.known(deleted.object_name()).is_none()
        {
            return Ok(());
        }
        Queue::push(&mut self.inner, delta, known)
    }

    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>> {
        self.listed = true;
        self.inner.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<K>) {
        if self.bug != Bug::ResyncOvertakes {
            return self.inner.resync(known);
        }
        known.for_each(&mut |source, _, object| {
            let delta = Delta::new(source, DeltaKind::Sync(object.clone()));
            // Every object that is drawn has a key.
            let _ = Queue::push(&mut self.inner, delta, known);
        });
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>> {
        let mut batch = self.inner.pop_batch(room)?;
        self.spoil(&mut batch.deltas);
        Some(batch)
    }

    fn len(&self) -> usize {
        Queue::len(&self.inner)
    }

    fn is_empty(&self) -> bool {
        Queue::is_empty(&self.inner)
    }
}

impl Fifo for Faulty {
    fn inner(&self) -> &DeltaFifo<K> {
        &self.inner
    }

    fn pop_unit(&mut self) -> Option<Popped<K>> {
        let mut popped = self.inner.pop()?;
        self.spoil(&mut popped.deltas);
        Some(popped)
    }

    fn put_back(&mut self, popped: Popped<K>) -> bool {
        self.inner.add_if_not_present(popped).is_ok()
    }

    fn synced(&self) -> bool {
        (self.bug == Bug::SyncedBeforeLastPop && self.listed) || self.inner.has_synced()
    }
}
