//! The revisioned store of raw objects, which corresponds to etcd in a Kubernetes cluster.
//!
//! Guarantees:
//! - the store has one revision; every commit increments it by one and appends one [`Event`] to the log of its
//!   collection;
//! - a [`Snapshot`] is the state of one collection at one moment; it costs O(1) and never changes;
//! - the state at an older revision is available as long as the log reaches back to it;
//! - objects are ordered by their key's bytes (`namespace/name`), as in etcd;
//! - history is limited by age, by events per collection, and by total bytes; the oldest events are dropped first;
//! - the store accounts for dropped states that readers still hold ([`outlived`]).
//!
//! It does not wait and does not know HTTP; the owner of the store holds the lock.

#[cfg(feature = "persistence")]
mod disk;
mod entry;
mod event;
#[cfg(not(feature = "persistence"))]
mod no_disk;
mod outlived;
mod pending;

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

/// Maximum number of events per collection.
///
/// It equals the largest watch cache of a Kubernetes API server (`defaultUpperBoundCapacity` in
/// `watch_cache_history.go`), so no watch cache reaches further back than storage.
pub(crate) const LOG_EVENTS_MAX: usize = 102_400;

/// Age at which events may be dropped.
///
/// The API server compacts etcd every 5 minutes (`--etcd-compaction-interval`).
const LOG_AGE: Duration = Duration::from_secs(5 * 60);

/// Number of newest events of a collection whose frames are kept.
///
/// It equals the default limit of events queued for a watcher.
const FRAMES_KEPT: usize = 1_000;

/// Maximum bytes of the history of all collections.
///
/// Above it the largest log drops its oldest events.
///
/// It holds the 102,400 events of a busy collection with objects of 5 KB, each with its frame.
const HISTORY_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Objects of one collection, ordered by key.
type Objects = OrdMap<Arc<str>, Arc<Entry>>;

/// All collections and their common revision.
pub(crate) struct Storage {
    revision: u64,
    collections: Vec<Collection>,
    /// Total size of all objects in bytes.
    object_bytes: usize,
    /// Total size of all logs in bytes.
    history_bytes: usize,
    history_bytes_max: usize,
    outlived: Outlived,
    /// Time of the newest dropped event, if any was dropped.
    forgotten_at: Option<Instant>,
}

/// The objects of one (group, plural) and their recent events.
#[derive(Default)]
struct Collection {
    objects: Objects,
    /// Ordered by revision.
    log: VecDeque<Arc<Event>>,
    /// Size of `log` in bytes.
    log_bytes: usize,
    /// Revision above which `log` contains every event.
    horizon: u64,
}

/// The immutable state of one collection at one revision.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    objects: Objects,
}

/// A snapshot, and the events that must be undone to reach an older revision.
pub(crate) struct Rewind {
    snapshot: Snapshot,
    /// Ordered by revision; all above `target`.
    events: Vec<Arc<Event>>,
    target: u64,
}

/// Error: the log no longer reaches back to the requested revision.
#[derive(Debug, PartialEq)]
pub(crate) struct Compacted;

// === impl Storage ===

impl Storage {
    pub(crate) fn new(collections: usize) -> Storage {
        Storage {
            revision: 0,
            collections: (0..collections).map(|_| Collection::default()).collect(),
            object_bytes: 0,
            history_bytes: 0,
            history_bytes_max: HISTORY_BYTES_MAX,
            outlived: Outlived::default(),
            forgotten_at: None,
        }
    }

    /// Total size of all objects in bytes.
    pub(crate) fn object_bytes(&self) -> usize {
        self.object_bytes
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets the initial revision, for objects that exist before the first request.
    pub(crate) fn start_at(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(crate) fn get(&self, collection: CollectionId, key: &str) -> Option<&Arc<Entry>> {
        self.collections[collection.0].objects.get(key)
    }

    /// Returns the objects of a collection whose keys start with `prefix`, in order of their keys.
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
            objects: self.collections[collection.0].objects.clone(),
        }
    }

    /// Returns the data to reconstruct a collection at `revision`.
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

    /// Returns the revision above which all events of a collection are kept.
    pub(crate) fn horizon(&self, collection: CollectionId) -> u64 {
        self.collections[collection.0].horizon
    }

    /// Returns all kept events of a collection, oldest first.
    pub(crate) fn log(&self, collection: CollectionId) -> &VecDeque<Arc<Event>> {
        &self.collections[collection.0].log
    }

    /// Returns the events above a revision, oldest first; the caller must compare the revision with the
    /// horizon first.
    pub(crate) fn events_after(&self, collection: CollectionId, revision: u64) -> Vec<Arc<Event>> {
        let log = &self.collections[collection.0].log;
        let first = log.partition_point(|event| event.revision <= revision);
        log.range(first..).cloned().collect()
    }

    /// Stores or removes one object at the next revision; `new` must carry that revision.
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

    /// Drops the oldest events until the grown collection and the whole history are within their limits.
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

    /// Returns the time of the newest dropped event, if readers hold more dropped states than the limit.
    ///
    /// Readers that started after this time hold no dropped state.
    pub(crate) fn held_too_much(&mut self) -> Option<Instant> {
        self.forgotten_at.filter(|_| self.outlived.is_too_much())
    }

    /// Restores the state at an older revision, and drops all events.
    pub(crate) fn restore(&mut self, revision: u64) -> Result<(), Compacted> {
        let collections = (0..self.collections.len()).map(CollectionId);
        let older: Result<Vec<Rewind>, Compacted> =
            collections.map(|id| self.rewind(id, revision)).collect();
        for (collection, rewind) in self.collections.iter_mut().zip(older?) {
            collection.objects = rewind.snapshot().objects;
        }
        let objects = self.collections.iter().flat_map(|one| one.objects.values());
        self.object_bytes = objects.map(|entry| entry.bytes()).sum();
        self.revision = revision;
        self.compact();
        Ok(())
    }

    /// Returns the keys of the objects that were written above a revision, as far as the logs reach back.
    pub(crate) fn keys_after(&self, revision: u64) -> Vec<(CollectionId, Arc<str>)> {
        let collections = (0..self.collections.len()).map(CollectionId);
        let keys = |collection| {
            let events = self.events_after(collection, revision).into_iter();
            events.map(move |event| (collection, event.key().into()))
        };
        collections.flat_map(keys).collect()
    }

    /// Restores an object that was stored before this server started, without an event or a revision.
    #[cfg(feature = "persistence")]
    pub(crate) fn recover(&mut self, collection: CollectionId, entry: Entry) {
        self.object_bytes += entry.bytes();
        let collection = &mut self.collections[collection.0];
        let key = Arc::clone(&entry.key);
        collection.objects.insert(key, Arc::new(entry));
    }

    /// Drops all events.
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
    /// Sets the maximum bytes of the history, and of dropped states that readers hold.
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

    /// Whether the oldest event exceeds the age or the number of events.
    fn is_overfull(&self, now: Instant) -> bool {
        self.log.front().is_some_and(|oldest| {
            let is_old = now.saturating_duration_since(oldest.at) > LOG_AGE;
            is_old || self.log.len() > LOG_EVENTS_MAX
        })
    }
}

// === impl Rewind ===

impl Rewind {
    /// Undoes the newer events and returns the older state; call it without a lock, because it takes time for
    /// each event.
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
            objects,
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The objects whose keys start with `prefix`, from `start` (relative to the prefix) on, in order.
    pub(crate) fn range<'a>(
        &'a self,
        prefix: &'a str,
        start: &str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let from = format!("{prefix}{start}");
        below(&self.objects, prefix, &from)
    }
}

/// The objects from a key on whose keys have the prefix.
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
