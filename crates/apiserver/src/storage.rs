//! Stores the objects and the recent events of all collections, as etcd does for Kubernetes.
//!
//! Guarantees:
//! - all collections share one revision. Every commit increments the revision, by one unless a recording has
//!   skipped revisions, and appends one [`Event`] to the log of its collection;
//! - a [`Snapshot`] is the immutable state of one collection at one revision, and is created in O(1);
//! - the state at an older revision can be reconstructed if the log still contains all events above that
//!   revision;
//! - objects are ordered by the bytes of their keys (`namespace/name`), as in etcd;
//! - the logs are limited by the age of events, by the number of events per collection, and by total bytes.
//!   The oldest events are dropped first.
//!
//! The store does not block and has no lock. [`Shared`](crate::shared::Shared) guards the store with a lock.

#[cfg(feature = "persistence")]
mod disk;
mod entry;
mod event;
#[cfg(not(feature = "persistence"))]
mod no_disk;
mod outlived;
mod pending;
mod raw_members;
mod remaining;
mod whole;

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use tokio::time::Instant;

use crate::resource::CollectionId;

#[cfg(feature = "persistence")]
pub use disk::OpenError;
#[cfg(feature = "persistence")]
pub(crate) use disk::{Disk, OpenDatabase, Stored, open_file};
pub(crate) use entry::{Entry, OBJECT_BYTES_MAX};
pub(crate) use event::{Event, EventType, Shape, TableShape, write_frame};
#[cfg(not(feature = "persistence"))]
pub(crate) use no_disk::Disk;
use outlived::Outlived;
pub(crate) use pending::{Batch, Pending, Ticket, Write};
pub(crate) use remaining::{Position, Remaining};
pub(crate) use whole::Whole;

/// Maximum number of events in the log of one collection.
///
/// The value is `defaultUpperBoundCapacity` in Kubernetes' `watch_cache_history.go`.
pub(crate) const LOG_EVENTS_MAX: usize = 102_400;

/// Maximum age of an event in a collection's log, checked at each commit to the collection.
///
/// The value is Kubernetes' default of `--etcd-compaction-interval`.
const LOG_AGE: Duration = Duration::from_secs(5 * 60);

/// Number of newest events per collection whose encoded form stays in memory.
///
/// The value is the default maximum number of events in the queue of one watcher.
const FRAMES_KEPT: usize = 1_000;

/// Maximum total size in bytes of all event logs; above it, the largest log drops its oldest events.
///
/// The limit fits a log of 102,400 events ([`LOG_EVENTS_MAX`]) if each event contains two objects of 5 KB:
/// the old object and the new object.
const HISTORY_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The objects of one collection, ordered by key.
type Objects = OrdMap<Arc<str>, Arc<Entry>>;

/// The objects and events of all collections, with one common revision.
pub(crate) struct Storage {
    revision: u64,
    /// Number of times that the store was reset to an older revision.
    epoch: u64,
    collections: Vec<Collection>,
    /// Approximate memory of all stored objects in bytes.
    object_bytes: usize,
    /// Approximate memory of the event logs of all collections in bytes.
    history_bytes: usize,
    history_bytes_max: usize,
    outlived: Outlived,
    /// Time at which the newest of the dropped events was committed, if any were dropped.
    forgotten_at: Option<Instant>,
}

/// The objects of one resource in all API versions, and the recent events.
#[derive(Default)]
struct Collection {
    objects: Objects,
    /// The recent events, ordered by revision.
    log: VecDeque<Arc<Event>>,
    /// Approximate memory of the events in `log` in bytes.
    log_bytes: usize,
    /// Revision above which `log` contains every event.
    horizon: u64,
}

/// The immutable state of one collection at one revision.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    /// The store's epoch at the time of the snapshot.
    ///
    /// Revisions are reused after a reset, so a revision identifies a state only within one epoch.
    pub(crate) epoch: u64,
    objects: Objects,
}

/// A snapshot of a collection, and the events that must be undone to reconstruct an older state.
pub(crate) struct Rewind {
    snapshot: Snapshot,
    /// The events above the revision `target`, ordered by revision.
    events: Vec<Arc<Event>>,
    target: u64,
}

/// Error for a revision that is too old: the log no longer contains all events after that revision.
#[derive(Debug, PartialEq)]
pub(crate) struct Compacted;

// === impl Storage ===

impl Storage {
    pub(crate) fn new(collections: usize) -> Storage {
        Storage {
            revision: 0,
            epoch: 0,
            collections: (0..collections).map(|_| Collection::default()).collect(),
            object_bytes: 0,
            history_bytes: 0,
            history_bytes_max: HISTORY_BYTES_MAX,
            outlived: Outlived::default(),
            forgotten_at: None,
        }
    }

    /// Adds empty collections until there are `collections` of them.
    ///
    /// The ids of the new collections follow the ids of the existing collections.
    pub(crate) fn grow(&mut self, collections: usize) {
        // A new collection has had no events, so it can be restored to each revision that others can.
        let horizons = self.collections.iter().map(|one| one.horizon);
        let horizon = horizons.min().unwrap_or(self.revision);
        let empty = || Collection {
            horizon,
            ..Collection::default()
        };
        self.collections.resize_with(collections, empty);
    }

    /// Returns the total size of all stored objects in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        self.object_bytes
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets the revision of the store, above which the next commit is. Must not be below the revision of a commit.
    pub(crate) fn start_at(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(crate) fn get(&self, collection: CollectionId, key: &str) -> Option<&Arc<Entry>> {
        self.collections[collection.0].objects.get(key)
    }

    /// Returns the objects whose keys start with `prefix`, in order of their keys.
    pub(crate) fn below<'a>(
        &'a self,
        collection: CollectionId,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        below(&self.collections[collection.0].objects, prefix, prefix)
    }

    pub(crate) fn snapshot(&self, collection: CollectionId) -> Snapshot {
        Snapshot {
            revision: self.revision,
            epoch: self.epoch,
            objects: self.collections[collection.0].objects.clone(),
        }
    }

    /// Returns a snapshot of the collection and the events above `revision`. [`Rewind::snapshot`]
    /// reconstructs the state at `revision` from them.
    ///
    /// # Errors
    ///
    /// Returns [`Compacted`] if the log no longer contains all events above `revision`.
    pub(crate) fn rewind(
        &self,
        collection: CollectionId,
        revision: u64,
    ) -> Result<Rewind, Compacted> {
        if revision < self.horizon(collection) {
            return Err(Compacted);
        }
        Ok(Rewind {
            snapshot: self.snapshot(collection),
            events: self.events_after(collection, revision),
            target: revision,
        })
    }

    /// Returns the revision above which the log of a collection contains every event.
    pub(crate) fn horizon(&self, collection: CollectionId) -> u64 {
        self.collections[collection.0].horizon
    }

    pub(crate) fn log(&self, collection: CollectionId) -> &VecDeque<Arc<Event>> {
        &self.collections[collection.0].log
    }

    /// Returns the events above `revision`, oldest first. `revision` must not be below [`Storage::horizon`].
    pub(crate) fn events_after(&self, collection: CollectionId, revision: u64) -> Vec<Arc<Event>> {
        let log = &self.collections[collection.0].log;
        let first = log.partition_point(|event| event.revision <= revision);
        log.range(first..).cloned().collect()
    }

    /// Stores `new` under `key`, or removes the object at `key` if `new` is `None`.
    ///
    /// Returns the event of this change.
    ///
    /// `new` must have the next revision of the storage.
    pub(crate) fn commit(
        &mut self,
        collection: CollectionId,
        key: &Arc<str>,
        new: Option<Arc<Entry>>,
    ) -> Arc<Event> {
        self.revision += 1;
        let id = collection;
        let collection = &mut self.collections[id.0];
        let old = match &new {
            Some(entry) => collection
                .objects
                .insert(Arc::clone(key), Arc::clone(entry)),
            None => collection.objects.remove(&**key),
        };
        let bytes = |entry: &Option<Arc<Entry>>| entry.as_ref().map_or(0, |entry| entry.bytes());
        self.object_bytes += bytes(&new);
        self.object_bytes -= bytes(&old);
        let event = Arc::new(Event::new(self.revision, Instant::now(), old, new));
        self.history_bytes += event.bytes();
        collection.record(Arc::clone(&event));
        self.trim_history(id, event.at);
        event
    }

    /// Drops the oldest events until the event logs respect their limits.
    ///
    /// The limits of age and number apply only to the log of `grown`, the collection of the newest event.
    /// Above the limit of the total size, events of the largest log are dropped.
    fn trim_history(&mut self, grown: CollectionId, now: Instant) {
        while self.collections[grown.0].is_overfull(now) {
            self.forget_oldest(grown.0);
        }
        while self.history_bytes > self.history_bytes_max {
            let logs = self.collections.iter().enumerate();
            let fullest = logs.max_by_key(|(_, one)| one.log_bytes);
            let (fullest, _) = fullest.expect("what is empty is not too full");
            self.forget_oldest(fullest);
        }
    }

    fn forget_oldest(&mut self, collection: usize) {
        let collection = &mut self.collections[collection];
        if let Some(oldest) = collection.log.pop_front() {
            let bytes = oldest.bytes();
            collection.horizon = oldest.revision;
            collection.log_bytes -= bytes;
            self.history_bytes -= bytes;
            self.forgotten_at = self.forgotten_at.max(Some(oldest.at));
            self.outlived.leave(oldest);
        }
    }

    /// Returns the commit time of the newest dropped event if dropped object versions use too much memory.
    ///
    /// Unfinished lists and watches still use these versions. The caller must abort the lists that started at
    /// or before the returned time.
    ///
    /// Returns `None` without a check until the memory has grown by 1/8 of the limit since the last check.
    pub(crate) fn held_too_much(&mut self) -> Option<Instant> {
        self.forgotten_at.filter(|_| self.outlived.is_too_much())
    }

    /// Resets all collections to an older revision, and drops all events.
    ///
    /// # Errors
    ///
    /// Returns [`Compacted`] if a log no longer contains all events above `revision`.
    pub(crate) fn restore(&mut self, revision: u64) -> Result<(), Compacted> {
        let rewinds = self.rewind_all(revision)?;
        self.replace(&Whole::reconstruct(rewinds, revision));
        Ok(())
    }

    /// Returns the collection and the object key of each logged event above `revision`.
    pub(crate) fn keys_after(&self, revision: u64) -> Vec<(CollectionId, Arc<str>)> {
        let collections = (0..self.collections.len()).map(CollectionId);
        let keys = |collection| {
            let events = self.events_after(collection, revision).into_iter();
            events.map(move |event| (collection, event.key().into()))
        };
        collections.flat_map(keys).collect()
    }

    /// Adds an object from a data directory. Creates neither an event nor a new revision.
    ///
    /// Replaces an object with the same key, which events of two groups could have.
    #[cfg(feature = "persistence")]
    pub(crate) fn recover(&mut self, collection: CollectionId, entry: Arc<Entry>) {
        self.object_bytes += entry.bytes();
        let collection = &mut self.collections[collection.0];
        let key = Arc::clone(&entry.key);
        if let Some(replaced) = collection.objects.insert(key, entry) {
            self.object_bytes -= replaced.bytes();
        }
    }

    /// Drops all events of all collections.
    pub(crate) fn compact(&mut self) {
        for collection in 0..self.collections.len() {
            while !self.collections[collection].log.is_empty() {
                self.forget_oldest(collection);
            }
            self.collections[collection].horizon = self.revision;
        }
    }
}

#[cfg(test)]
impl Storage {
    /// Sets the limits in bytes for the event logs, and for dropped object versions that are still in use.
    pub(crate) fn bound_history(&mut self, history_bytes_max: usize, outlived_bytes_max: usize) {
        self.history_bytes_max = history_bytes_max;
        self.outlived = Outlived::of(outlived_bytes_max);
    }
}

// === impl Collection ===

impl Collection {
    fn record(&mut self, event: Arc<Event>) {
        self.log_bytes += event.bytes();
        self.log.push_back(event);
        let aged = self.log.len().checked_sub(FRAMES_KEPT + 1);
        if let Some(event) = aged.and_then(|at| self.log.get(at)) {
            event.forget_frames();
        }
    }

    fn is_overfull(&self, now: Instant) -> bool {
        self.log.front().is_some_and(|oldest| {
            let is_old = now.saturating_duration_since(oldest.at) > LOG_AGE;
            is_old || self.log.len() > LOG_EVENTS_MAX
        })
    }
}

// === impl Rewind ===

impl Rewind {
    /// Reconstructs the state at `target` by undoing the later events.
    ///
    /// Undoing many events takes long, so the caller must not hold the store's lock.
    pub(crate) fn snapshot(self) -> Snapshot {
        let mut objects = self.snapshot.objects;
        for event in self.events.iter().rev() {
            match &event.old {
                Some(old) => {
                    objects.insert(Arc::clone(&old.key), Arc::clone(old));
                }
                None => {
                    objects.remove(event.key());
                }
            }
        }
        Snapshot {
            revision: self.target,
            epoch: self.snapshot.epoch,
            objects,
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the objects with the key prefix `prefix`, from the key `{prefix}{start}` on.
    pub(crate) fn range<'a>(
        &'a self,
        prefix: &'a str,
        start: &str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let from = format!("{prefix}{start}");
        below(&self.objects, prefix, &from)
    }
}

/// Returns the objects from the key `from` to the last key with the prefix `prefix`.
fn below<'a>(
    objects: &'a Objects,
    prefix: &'a str,
    from: &str,
) -> impl Iterator<Item = &'a Arc<Entry>> + use<'a> {
    objects
        .range::<_, str>((Bound::Included(from), Bound::Unbounded))
        .map(|(_, entry)| entry)
        .take_while(move |entry| entry.key.starts_with(prefix))
}

#[cfg(test)]
mod tests;
