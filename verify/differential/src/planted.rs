//! Bugs on purpose: a comparison that does not find them is worth nothing.
//!
//! Each is a faulty implementation behind a seam of the library, or what a reader would see of one.

use std::{fmt, time::Duration};

use futures_core::future::BoxFuture;
use kube_informer::{
    indexer::{Indexer, IndexerWriter, NoSuchIndex, Snapshot},
    object::{Deleted, Known, ObjectName, ResourceVersion},
    queue::{Batch, DeltaFifo, InOrder, KeyError, KeyErrors, Popped, Queue, Replaced},
    reflector::{Delta, DeltaKind},
    transport::{ByteStream, Error, ListOptions, ListerWatcher},
    workqueue::rate_limiter::RateLimiter,
};
use parking_lot::Mutex;

use crate::{
    cached::K, delta_fifo::Fifo, in_order::Ordered, indexer::Store, rate_limiter::Dynamic,
};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A deletion of what is queued, but not in the store yet, is ignored.
    QueuedOnlyDeleteIgnored,
    /// A resync queues what has changes waiting.
    ResyncOvertakes,
    /// Synced from the first list on, not from its last pop.
    SyncedBeforeLastPop,
    /// A list's tombstones don't say what the object was last.
    TombstoneWithoutState,
    /// The same of a queue in order.
    SyncedBeforeList,
    /// What two batches are for comes in one.
    NameTwiceInBatch,
    /// The revision is read before a list is applied.
    RevisionBeforeReplace,
    /// An index keeps an object where it was.
    StaleIndexValue,
    /// A list tells everyone of everything that it brings.
    UnchangedToldToAll,
    /// What happens while a handler joins passes it by.
    LateWithoutBarrier,
    /// A registration has synced with the informer, not with its handler.
    SyncedBeforeLastItem,
    /// A drain does not wait.
    DrainReturnsEarly,
    /// What is added while it is in work is not handed out again.
    AddedInWorkLost,
    /// Failures are not forgotten.
    ForgetIgnored,
    /// The first list wants the newest state.
    FirstListNotAtZero,
    /// A revision that has expired is asked for again.
    NewestNeverAsked,
    /// Every page is asked for as if it were the first.
    ContinueDropped,
    /// A list is watched on from the revision that it was asked for, not from its own.
    RevisionBeforeList,
}

impl Bug {
    /// All of them.
    pub(crate) const ALL: [Self; 18] = [
        Self::QueuedOnlyDeleteIgnored,
        Self::ResyncOvertakes,
        Self::SyncedBeforeLastPop,
        Self::TombstoneWithoutState,
        Self::SyncedBeforeList,
        Self::NameTwiceInBatch,
        Self::RevisionBeforeReplace,
        Self::StaleIndexValue,
        Self::UnchangedToldToAll,
        Self::LateWithoutBarrier,
        Self::SyncedBeforeLastItem,
        Self::DrainReturnsEarly,
        Self::AddedInWorkLost,
        Self::ForgetIgnored,
        Self::FirstListNotAtZero,
        Self::NewestNeverAsked,
        Self::ContinueDropped,
        Self::RevisionBeforeList,
    ];

    /// The component that has it.
    pub(crate) fn component(self) -> &'static str {
        self.describe().0
    }

    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::QueuedOnlyDeleteIgnored => {
                ("delta_fifo", "a delete of a queued-only key ignored")
            }
            Self::ResyncOvertakes => ("delta_fifo", "resync overtaking a pending delta"),
            Self::SyncedBeforeLastPop => ("delta_fifo", "has-synced before the last initial pop"),
            Self::TombstoneWithoutState => ("delta_fifo", "a tombstone without the last state"),
            Self::SyncedBeforeList => ("in_order", "has-synced before the first list is popped"),
            Self::NameTwiceInBatch => ("in_order", "a batch that has a name twice"),
            Self::RevisionBeforeReplace => ("indexer", "revision taken before Replace"),
            Self::StaleIndexValue => ("indexer", "a stale index value"),
            Self::UnchangedToldToAll => ("informer", "unchanged Replaced told to everyone"),
            Self::LateWithoutBarrier => ("informer", "a late handler without the barrier"),
            Self::SyncedBeforeLastItem => ("informer", "has-synced before the last initial item"),
            Self::DrainReturnsEarly => ("workqueue", "a drain that returns early"),
            Self::AddedInWorkLost => ("workqueue", "an add of an item in work that is lost"),
            Self::ForgetIgnored => ("rate_limiter", "failures that are not forgotten"),
            Self::FirstListNotAtZero => ("requests", "a first list that is not at 0"),
            Self::NewestNeverAsked => ("requests", "a relist that never falls back to \"\""),
            Self::ContinueDropped => ("requests", "a continue token that is dropped"),
            Self::RevisionBeforeList => ("requests", "a watch from before the list"),
        }
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe().1)
    }
}

/// A queue that can be spoilt.
pub(crate) trait Inner: Queue<K> {
    /// Whether changes of this name wait, as far as it can be asked.
    fn has(&self, name: &ObjectName) -> bool;
}

impl Inner for DeltaFifo<K> {
    fn has(&self, name: &ObjectName) -> bool {
        self.get(name).is_some()
    }
}

impl Inner for InOrder<K> {
    fn has(&self, _: &ObjectName) -> bool {
        false
    }
}

/// A queue with a bug.
pub(crate) struct Faulty<Q> {
    inner: Q,
    bug: Bug,
    listed: bool,
}

impl<Q: Inner> Faulty<Q> {
    /// Spoils a queue.
    pub(crate) fn new(inner: Q, bug: Bug) -> Self {
        Self {
            inner,
            bug,
            listed: false,
        }
    }
}

impl<Q> Faulty<Q> {
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

impl<Q: Inner> Queue<K> for Faulty<Q> {
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>> {
        if let DeltaKind::Deleted(deleted) = &delta.kind
            && self.bug == Bug::QueuedOnlyDeleteIgnored
            && self.inner.has(deleted.object_name())
            && known.known(deleted.object_name()).is_none()
        {
            return Ok(());
        }
        self.inner.push(delta, known)
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
            let _ = self.inner.push(delta, known);
        });
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>> {
        let mut batch = self.inner.pop_batch(room)?;
        self.spoil(&mut batch.deltas);
        let single = batch
            .deltas
            .first()
            .is_some_and(|delta| delta.object_name().is_some());
        if self.bug == Bug::NameTwiceInBatch && single && room > 1 {
            batch.deltas.extend(
                self.inner
                    .pop_batch(room)
                    .into_iter()
                    .flat_map(|next| next.deltas),
            );
        }
        Some(batch)
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}

impl Fifo for Faulty<DeltaFifo<K>> {
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

impl Ordered for Faulty<InOrder<K>> {
    fn synced(&self) -> bool {
        (self.bug == Bug::SyncedBeforeList && self.listed) || self.inner.has_synced()
    }
}

/// A queue that makes news of whatever a later list brings.
pub(crate) struct Restless<Q> {
    inner: Q,
    listed: bool,
}

impl<Q> Restless<Q> {
    /// Spoils a queue.
    pub(crate) fn new(inner: Q) -> Self {
        Self {
            inner,
            listed: false,
        }
    }
}

impl<Q: Queue<K>> Queue<K> for Restless<Q> {
    fn push(&mut self, delta: Delta<K>, known: &dyn Known<K>) -> Result<(), KeyError<K>> {
        self.inner.push(delta, known)
    }

    fn replace(&mut self, list: Replaced<K>, known: &dyn Known<K>) -> Result<(), KeyErrors<K>> {
        if std::mem::replace(&mut self.listed, true) {
            for object in &list.objects {
                let delta = Delta::new(list.source, DeltaKind::Updated(object.clone()));
                // Every object that is drawn has a key.
                let _ = self.inner.push(delta, known);
            }
        }
        self.inner.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<K>) {
        self.inner.resync(known);
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<K>> {
        self.inner.pop_batch(room)
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

/// A store with a bug.
pub(crate) struct FaultyStore<S> {
    inner: S,
    bug: Bug,
    /// As it was before it was written last.
    before: Snapshot<K>,
    /// Whether that was by a list.
    listed: bool,
}

impl<S: Store> FaultyStore<S> {
    /// Spoils a store.
    pub(crate) fn new(inner: S, bug: Bug) -> Self {
        let before = inner.read().snapshot();
        Self {
            inner,
            bug,
            before,
            listed: false,
        }
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn read(&self) -> &Indexer<K> {
        self.inner.read()
    }

    fn write(&mut self) -> &mut IndexerWriter<K> {
        self.before = self.inner.read().snapshot();
        self.listed = false;
        self.inner.write()
    }

    fn replace(&mut self, objects: Vec<K>, revision: &str) -> bool {
        let replaced = self.write().replace(objects, revision);
        self.listed = true;
        replaced.is_ok()
    }

    fn names(&self, index: &str, value: &str) -> Result<Vec<ObjectName>, NoSuchIndex> {
        let mut names = self.inner.names(index, value)?;
        if self.bug == Bug::StaleIndexValue {
            let stale = self.before.index_keys(index, value).unwrap_or_default();
            names.extend(
                stale
                    .into_iter()
                    .filter(|name| self.read().get(name).is_some()),
            );
            names.sort_unstable();
            names.dedup();
        }
        Ok(names)
    }

    fn revision(&self) -> ResourceVersion {
        if self.bug == Bug::RevisionBeforeReplace && self.listed {
            return self.before.revision();
        }
        self.inner.revision()
    }
}

/// A limiter that forgets nothing.
pub(crate) struct FaultyLimiter(pub(crate) Dynamic);

impl RateLimiter<String> for FaultyLimiter {
    fn when(&mut self, item: &String, now: Duration) -> Duration {
        self.0.when(item, now)
    }

    fn forget(&mut self, _: &String) {}

    fn requeues(&self, item: &String) -> u32 {
        self.0.requeues(item)
    }
}

/// A source that is asked something else than it should be, or is not spoilt.
pub(crate) struct FaultySource<S> {
    inner: S,
    bug: Option<Bug>,
    asked: Mutex<Asked>,
}

/// What a source was asked for before.
#[derive(Default)]
struct Asked {
    /// The last revision that a list named.
    revision: ResourceVersion,
    /// Whether nobody has watched since.
    listed: bool,
}

impl<S> FaultySource<S> {
    /// Spoils a source, if there is a bug.
    pub(crate) fn new(inner: S, bug: Option<Bug>) -> Self {
        Self {
            inner,
            bug,
            asked: Mutex::default(),
        }
    }

    fn spoil_list(&self, options: &ListOptions) -> ListOptions {
        let mut options = options.clone();
        let mut asked = self.asked.lock();
        let revision = &mut options.resource_version;
        match self.bug {
            Some(Bug::FirstListNotAtZero) if revision.is_zero() => {
                *revision = ResourceVersion::UNSET;
            }
            Some(Bug::NewestNeverAsked) if options.continue_token.is_none() => {
                if revision.is_unset() {
                    revision.clone_from(&asked.revision);
                }
                asked.revision.clone_from(revision);
            }
            Some(Bug::ContinueDropped) => options.continue_token = None,
            Some(Bug::RevisionBeforeList) => {
                asked.revision.clone_from(revision);
                asked.listed = true;
            }
            _ => {}
        }
        options
    }

    fn spoil_watch(&self, options: &ListOptions) -> ListOptions {
        if options.send_initial_events.is_some() {
            return self.spoil_list(options);
        }
        let mut options = options.clone();
        let mut asked = self.asked.lock();
        if self.bug == Some(Bug::RevisionBeforeList) && std::mem::take(&mut asked.listed) {
            options.resource_version.clone_from(&asked.revision);
        }
        options
    }
}

impl<S: ListerWatcher> ListerWatcher for FaultySource<S> {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        self.inner.list(&self.spoil_list(options))
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        self.inner.watch(&self.spoil_watch(options))
    }

    fn streams_lists(&self) -> bool {
        self.inner.streams_lists()
    }
}
