//! The objects of all collections at one revision.

use super::{CollectionId, Compacted, Objects, Rewind, Snapshot, Storage};

/// The immutable objects of all collections at one revision. A copy costs the same for any number of objects.
#[derive(Clone)]
pub(crate) struct Whole {
    revision: u64,
    /// The objects of each collection, by its id.
    collections: Vec<Objects>,
    /// Approximate memory of all objects in bytes.
    object_bytes: usize,
}

impl Storage {
    /// Returns the objects of all collections.
    pub(crate) fn whole(&self) -> Whole {
        let collections = self.collections.iter();
        Whole {
            revision: self.revision,
            collections: collections.map(|one| one.objects.clone()).collect(),
            object_bytes: self.object_bytes,
        }
    }

    /// Returns what is needed to reconstruct the objects of all collections at an older revision.
    ///
    /// # Errors
    ///
    /// Returns [`Compacted`] if a log no longer contains all events above `revision`.
    pub(crate) fn rewind_all(&self, revision: u64) -> Result<Vec<Rewind>, Compacted> {
        let collections = (0..self.collections.len()).map(CollectionId);
        collections.map(|id| self.rewind(id, revision)).collect()
    }

    /// Replaces all objects, and drops all events.
    ///
    /// The store must have as many collections as `whole` at least.
    pub(crate) fn replace(&mut self, whole: &Whole) {
        let mut objects = whole.collections.iter().cloned();
        for collection in &mut self.collections {
            collection.objects = objects.next().unwrap_or_default();
        }
        self.object_bytes = whole.object_bytes;
        self.revision = whole.revision;
        self.epoch += 1;
        self.compact();
    }
}

impl Whole {
    /// Reconstructs the objects of all collections. This takes long if there are many events, so the caller must not
    /// hold the store's lock.
    pub(crate) fn reconstruct(rewinds: Vec<Rewind>, revision: u64) -> Whole {
        let snapshots = rewinds.into_iter().map(Rewind::snapshot);
        let collections: Vec<Objects> = snapshots.map(|snapshot| snapshot.objects).collect();
        let entries = collections.iter().flat_map(|objects| objects.values());
        Whole {
            revision,
            object_bytes: entries.map(|entry| entry.bytes()).sum(),
            collections,
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the objects of one collection. A collection that did not exist has no objects.
    pub(crate) fn collection(&self, id: CollectionId) -> Snapshot {
        Snapshot {
            revision: self.revision,
            epoch: 0,
            objects: self.collections.get(id.0).cloned().unwrap_or_default(),
        }
    }
}
