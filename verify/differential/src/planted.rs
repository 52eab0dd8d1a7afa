//! Defines planted bugs: deliberate faults in the library's types.
//!
//! The tests with planted bugs prove that the comparison with client-go detects faults.
//!
//! Most planted bugs are in this module, as faulty wrappers of the library's queues, stores and list-watch
//! sources. The other planted bugs are in the modules that run the test operations on the library.

use futures_core::future::BoxFuture;
use harness::bugs;
use kube_informer::{
    indexer::{Indexer, IndexerWriter, NoSuchIndex, Snapshot},
    object::{Deleted, Known, ObjectName, ResourceVersion},
    queue::{Batch, DeltaFifo, InOrder, KeyError, KeyErrors, Popped, Queue, Replaced},
    reflector::{Delta, DeltaKind},
    transport::{Error, ListOptions, ListerWatcher, Response},
};
use parking_lot::Mutex;

use crate::cached::K;

bugs! {
    pub(crate) enum Bug {
        QueuedOnlyDeleteIgnored in "delta_fifo": "a delete of a queued-only key ignored",
        ResyncOvertakes in "delta_fifo": "resync overtaking a pending delta",
        SyncedBeforeLastPop in "delta_fifo": "has-synced before the last initial pop",
        TombstoneWithoutState in "delta_fifo": "a tombstone without the last state",
        SyncedBeforeList in "in_order": "has-synced before the first list is popped",
        NameTwiceInBatch in "in_order": "a batch that contains a name twice",
        RevisionBeforeReplace in "indexer": "revision taken before Replace",
        StaleIndexValue in "indexer": "a stale index value",
        UnchangedToldToAll in "informer": "an unchanged Replaced delivered to every handler",
        LateWithoutBarrier in "informer": "a late handler that misses changes during its registration",
        SyncedBeforeLastItem in "informer": "has-synced before the last initial item",
        DrainReturnsEarly in "workqueue": "a drain that returns early",
        AddedInWorkLost in "workqueue": "an add during processing that is lost",
        ForgetIgnored in "rate_limiter": "a Forget that is ignored",
        FirstListNotAtZero in "requests": "a first list that is not at 0",
        NewestNeverAsked in "requests": "a relist that never falls back to \"\"",
        ContinueDropped in "requests": "a continue token that is dropped",
        RevisionBeforeList in "requests": "a watch from a revision before the list",
    }
}

/// A queue that the wrapper [`Faulty`] can extend with a planted bug.
pub(crate) trait Inner: Queue<K> {
    /// Returns whether the queue contains changes of this object.
    ///
    /// Only the planted bug [`Bug::QueuedOnlyDeleteIgnored`] uses the result. An `InOrder` queue never has
    /// this bug, so the method then always returns `false`.
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

/// A queue that behaves like the wrapped queue, except for one planted bug.
pub(crate) struct Faulty<Q> {
    inner: Q,
    bug: Bug,
    listed: bool,
}

impl<Q: Inner> Faulty<Q> {
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
            // Every drawn object has a key.
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

/// The operations of a `DeltaFifo` that [`Queue`] does not contain.
pub(crate) trait Fifo: Queue<K> {
    /// Returns the `DeltaFifo` without the planted bug.
    fn inner(&self) -> &DeltaFifo<K>;
    /// Pops the deltas of one object.
    fn pop_unit(&mut self) -> Option<Popped<K>>;
    /// Puts popped deltas back into the queue, and returns whether the queue accepted the deltas.
    fn put_back(&mut self, popped: Popped<K>) -> bool;
    /// Returns `has_synced` of the queue. With a planted bug, the result can be true too early.
    fn synced(&self) -> bool;
}

impl Fifo for DeltaFifo<K> {
    fn inner(&self) -> &DeltaFifo<K> {
        self
    }

    fn pop_unit(&mut self) -> Option<Popped<K>> {
        self.pop()
    }

    fn put_back(&mut self, popped: Popped<K>) -> bool {
        self.add_if_not_present(popped).is_ok()
    }

    fn synced(&self) -> bool {
        self.has_synced()
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

/// The operation of an `InOrder` queue that [`Queue`] does not contain.
pub(crate) trait Ordered: Queue<K> {
    /// Returns `has_synced` of the queue. With a planted bug, the result can be true too early.
    fn synced(&self) -> bool;
}

impl Ordered for InOrder<K> {
    fn synced(&self) -> bool {
        self.has_synced()
    }
}

impl Ordered for Faulty<InOrder<K>> {
    fn synced(&self) -> bool {
        (self.bug == Bug::SyncedBeforeList && self.listed) || self.inner.has_synced()
    }
}

/// A queue with the planted bug `UnchangedToldToAll`.
///
/// For each list except the first, the queue also returns an `Updated` delta for every listed object.
pub(crate) struct Restless<Q> {
    inner: Q,
    listed: bool,
}

impl<Q> Restless<Q> {
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
                // Every drawn object has a key.
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

/// The operations of a store in test sequences.
pub(crate) trait Store {
    /// Returns the handle that reads the store.
    fn read(&self) -> &Indexer<K>;
    /// Returns the handle that writes to the store.
    fn write(&mut self) -> &mut IndexerWriter<K>;
    /// Returns the names of the objects that have `value` in `index`.
    fn names(&self, index: &str, value: &str) -> Result<Vec<ObjectName>, NoSuchIndex> {
        self.read().index_keys(index, value)
    }
    /// Replaces all objects, and returns whether the store accepted the new objects.
    fn replace(&mut self, objects: Vec<K>, revision: &str) -> bool {
        self.write().replace(objects, revision).is_ok()
    }
    /// Returns the revision of the store. A store with a planted bug may return an older revision.
    fn revision(&self) -> ResourceVersion {
        self.read().snapshot().revision()
    }
}

/// A store that behaves like the wrapped store, except for one planted bug.
pub(crate) struct FaultyStore<S> {
    inner: S,
    bug: Bug,
    /// Content of the store before its most recent write.
    before: Snapshot<K>,
    /// Whether the last write was a list that replaced all objects.
    listed: bool,
}

impl<S: Store> FaultyStore<S> {
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

/// A list-watch source that forwards requests to another source; a planted bug may change the requests.
pub(crate) struct FaultySource<S> {
    inner: S,
    bug: Option<Bug>,
    asked: Mutex<Asked>,
}

/// The informer's last list request, which determines how [`FaultySource`] changes later requests.
#[derive(Default)]
struct Asked {
    /// Revision that the last list request contained.
    revision: ResourceVersion,
    /// Whether a list request was sent, and no watch request has followed it yet.
    listed: bool,
}

impl<S> FaultySource<S> {
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
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.inner.list(&self.spoil_list(options))
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.inner.watch(&self.spoil_watch(options))
    }

    fn streams_lists(&self) -> bool {
        self.inner.streams_lists()
    }
}
