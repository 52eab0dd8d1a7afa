//! The revisioned store of raw objects: what etcd is to a Kubernetes API server.
//!
//! Guarantees:
//! - one revision for the whole store; every commit raises it by one and is one [`Event`] in its collection's log;
//! - a [`Snapshot`] is one moment of one collection, costs O(1) to take, and never changes;
//! - the state at an older revision can be had as long as the log reaches back to it;
//! - objects are ordered by their key's bytes (`namespace/name`), as in etcd;
//! - history is bounded by age, by events per collection and by bytes of all collections together: what goes beyond is forgotten, oldest first.
//!
//! Nothing here waits or knows HTTP; whoever owns the store holds the lock around it.

#[cfg(feature = "persistence")]
mod disk;
mod entry;
mod event;
#[cfg(not(feature = "persistence"))]
mod no_disk;
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
pub(crate) use disk::{Disk, Opener, Stored, open_file};
pub(crate) use entry::{Entry, OBJECT_BYTES_MAX};
pub(crate) use event::{Event, EventType, Shape, TableShape, write_frame};
#[cfg(not(feature = "persistence"))]
pub(crate) use no_disk::Disk;
pub(crate) use pending::{Batch, Pending, Ticket, Write};

/// Events kept per collection at most: the largest watch cache of a Kubernetes API server (`defaultUpperBoundCapacity` in `watch_cache_history.go`), so that no watch cache reaches further back than storage.
pub(crate) const LOG_EVENTS_MAX: usize = 102_400;

/// Age at which events may be forgotten: the API server compacts etcd every 5 minutes (`--etcd-compaction-interval`).
const LOG_AGE: Duration = Duration::from_secs(5 * 60);

/// The newest events of a collection whose frames are kept: as many as may wait for a live watcher, unless a builder says otherwise.
const FRAMES_KEPT: usize = 1_000;

/// What the history of all collections may hold; above it the fullest log forgets its oldest events.
///
/// The 102,400 events of a busy collection with objects of 5 KB, each of them with its frame.
const HISTORY_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Objects by key.
type Objects = OrdMap<Arc<str>, Arc<Entry>>;

/// All collections and the revision they share.
pub(crate) struct Storage {
    revision: u64,
    collections: Vec<Collection>,
    history_bytes_max: usize,
}

/// The objects of one (group, plural) and what happened to them lately.
#[derive(Default)]
struct Collection {
    objects: Objects,
    /// What `objects` takes.
    object_bytes: usize,
    /// In order of revision.
    log: VecDeque<Arc<Event>>,
    /// What `log` takes.
    log_bytes: usize,
    /// Every event above it is in `log`.
    horizon: u64,
}

/// One moment of one collection.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    objects: Objects,
}

/// A snapshot with the events that lead back from it to an older revision.
pub(crate) struct Rewind {
    snapshot: Snapshot,
    /// In order of revision; all above `target`.
    events: Vec<Arc<Event>>,
    target: u64,
}

/// The revision asked for is older than what the log still holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Compacted;

// === impl Storage ===

impl Storage {
    pub(crate) fn new(collections: usize) -> Storage {
        Storage {
            revision: 0,
            collections: (0..collections).map(|_| Collection::default()).collect(),
            history_bytes_max: HISTORY_BYTES_MAX,
        }
    }

    /// What the objects take, of all collections.
    pub(crate) fn object_bytes(&self) -> usize {
        self.collections.iter().map(|one| one.object_bytes).sum()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets where counting starts; for the objects that exist before the first request.
    pub(crate) fn start_at(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(crate) fn get(&self, collection: CollectionId, key: &str) -> Option<&Arc<Entry>> {
        self.collections[collection.0].objects.get(key)
    }

    /// The objects of a collection whose keys start so, in order.
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

    /// What is needed to see a collection as it was at `revision`.
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

    /// The revision above which all events of a collection are known.
    pub(crate) fn horizon(&self, collection: CollectionId) -> u64 {
        self.collections[collection.0].horizon
    }

    /// All events of a collection that are still known, oldest first.
    pub(crate) fn log(&self, collection: CollectionId) -> &VecDeque<Arc<Event>> {
        &self.collections[collection.0].log
    }

    /// The events above a revision, oldest first; the caller has compared it with the horizon.
    pub(crate) fn events_after(&self, collection: CollectionId, revision: u64) -> Vec<Arc<Event>> {
        let log = &self.collections[collection.0].log;
        let first = log.partition_point(|event| event.revision <= revision);
        log.range(first..).cloned().collect()
    }

    /// Stores or removes one object at the next revision: `new` must have been made for it.
    pub(crate) fn commit(
        &mut self,
        collection: CollectionId,
        key: &Arc<str>,
        new: Option<Arc<Entry>>,
    ) -> Arc<Event> {
        self.revision += 1;
        let collection = &mut self.collections[collection.0];
        let old = match &new {
            Some(entry) => collection
                .objects
                .insert(Arc::clone(key), Arc::clone(entry)),
            None => collection.objects.remove(&**key),
        };
        let bytes = |entry: &Option<Arc<Entry>>| entry.as_ref().map_or(0, |entry| entry.bytes());
        collection.object_bytes += bytes(&new);
        collection.object_bytes -= bytes(&old);
        let event = Arc::new(Event::new(self.revision, Instant::now(), old, new));
        collection.record(Arc::clone(&event));
        self.trim_history();
        event
    }

    /// Forgets what the history has no room for.
    fn trim_history(&mut self) {
        let bytes = |collections: &[Collection]| -> usize {
            collections.iter().map(|one| one.log_bytes).sum()
        };
        while bytes(&self.collections) > self.history_bytes_max {
            let fullest = self.collections.iter_mut().max_by_key(|one| one.log_bytes);
            fullest
                .expect("what is empty is not too full")
                .forget_oldest();
        }
    }

    /// Puts everything back to what it was at an older revision, and forgets all events.
    pub(crate) fn restore(&mut self, revision: u64) -> Result<(), Compacted> {
        let collections = (0..self.collections.len()).map(CollectionId);
        let older: Result<Vec<Rewind>, Compacted> =
            collections.map(|id| self.rewind(id, revision)).collect();
        for (collection, rewind) in self.collections.iter_mut().zip(older?) {
            collection.objects = rewind.snapshot().objects;
            let entries = collection.objects.values();
            collection.object_bytes = entries.map(|entry| entry.bytes()).sum();
        }
        self.revision = revision;
        self.compact();
        Ok(())
    }

    /// The objects that were written above a revision, as far as the logs reach.
    pub(crate) fn keys_after(&self, revision: u64) -> Vec<(CollectionId, Arc<str>)> {
        let collections = (0..self.collections.len()).map(CollectionId);
        let keys = |collection| {
            let events = self.events_after(collection, revision).into_iter();
            events.map(move |event| (collection, event.key().into()))
        };
        collections.flat_map(keys).collect()
    }

    /// Takes back an object that was stored before this server started: no event, no revision.
    #[cfg(feature = "persistence")]
    pub(crate) fn recover(&mut self, collection: CollectionId, entry: Entry) {
        let collection = &mut self.collections[collection.0];
        collection.object_bytes += entry.bytes();
        let key = Arc::clone(&entry.key);
        collection.objects.insert(key, Arc::new(entry));
    }

    /// Forgets all events.
    pub(crate) fn compact(&mut self) {
        for collection in &mut self.collections {
            collection.log.clear();
            collection.log_bytes = 0;
            collection.horizon = self.revision;
        }
    }
}

// === impl Collection ===

impl Collection {
    fn record(&mut self, event: Arc<Event>) {
        let now = event.at;
        self.log_bytes += event.bytes();
        self.log.push_back(event);
        let aged = self.log.len().checked_sub(FRAMES_KEPT + 1);
        if let Some(event) = aged.and_then(|at| self.log.get(at)) {
            event.forget_frames();
        }
        while let Some(oldest) = self.log.front() {
            let fresh = now.saturating_duration_since(oldest.at) <= LOG_AGE;
            if fresh && self.log.len() <= LOG_EVENTS_MAX {
                break;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.log.pop_front() {
            self.horizon = oldest.revision;
            self.log_bytes -= oldest.bytes();
        }
    }
}

// === impl Rewind ===

impl Rewind {
    /// Undoes the newer events; takes time in proportion to their number, so call it without a lock.
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

    /// The objects whose keys start with `prefix`, from `start` on (relative to the prefix), in order.
    pub(crate) fn range<'a>(
        &'a self,
        prefix: &'a str,
        start: &str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> {
        let from = format!("{prefix}{start}");
        below(&self.objects, prefix, &from)
    }
}

/// The objects from a key on, as long as the keys have the prefix.
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
