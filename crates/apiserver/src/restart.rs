//! Restores a server's objects from a data directory, and makes the server store later writes there.
//!
//! Guarantees:
//! - a restarted server has the same objects byte for byte, with their revisions, and continues the revision
//!   counter;
//! - a restarted server has no event history: a watch from a revision below the restored one fails with a 410
//!   error.
//!
//! The `storage` module accesses the files. This module does not access files.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::definition::Definition;
use crate::resource::{CollectionId, Registry, Resource};
use crate::shared::Shared;
use crate::storage::{Disk, Entry, OpenError, Stored, Write};
use crate::verb::definition::Definitions;
use crate::verb::namespace;

/// Returns the registry `fixed` with the kinds of the definitions that a data directory contains.
///
/// The registry also has the collections that the directory contains and no definition serves. Their objects are
/// available when their kind is defined again.
///
/// # Errors
///
/// Returns an error if the data directory can't be read.
pub(crate) fn with_definitions(disk: &mut Disk, fixed: Registry) -> Result<Registry, OpenError> {
    let Some(definitions) = fixed.builtin().definitions else {
        return Ok(fixed);
    };
    let fixed = fixed.with_collections(disk.collections()?);
    let collection = definitions.kind.group_resource();
    let mut found = Vec::new();
    disk.load_collection(&collection, |stored| {
        let entry = Entry::restored(&definitions, stored.key, stored.members, stored.metadata)?;
        found.push((entry.name().to_owned(), Definition::kinds_of(&entry)));
        Ok(())
    })?;
    Ok(fixed.redefined(found).unwrap_or(fixed))
}

/// Converts the objects of a data directory to entries of the store.
pub(crate) struct Kept<'a> {
    registry: &'a Registry,
    /// Name and resource of the last object's collection. Saves a lookup if the next object is in the same
    /// collection.
    current: Option<(String, Option<Arc<Resource>>)>,
    entries: Vec<(CollectionId, Entry)>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Kept<'a> {
        Kept {
            registry,
            current: None,
            entries: Vec::new(),
        }
    }

    /// Converts a stored object to an entry. Ignores the object if the registry does not have its collection.
    ///
    /// # Errors
    ///
    /// Returns an error if the stored bytes are not an object with metadata and a revision.
    pub(crate) fn take(&mut self, stored: Stored<'_>) -> Result<(), String> {
        if self
            .current
            .as_ref()
            .is_none_or(|(name, _)| name != stored.collection)
        {
            let resource = self.registry.last_resource(stored.collection).cloned();
            self.current = Some((stored.collection.to_owned(), resource));
        }
        if let Some((_, Some(resource))) = &self.current {
            let entry = Entry::restored(resource, stored.key, stored.members, stored.metadata)?;
            self.entries.push((resource.collection, entry));
        }
        Ok(())
    }

    pub(crate) fn into_entries(self) -> Vec<(CollectionId, Entry)> {
        self.entries
    }
}

impl Shared {
    /// Returns one write for each object in the store, and the store's revision.
    ///
    /// A new data directory is initialized with these writes.
    pub(crate) fn everything(&self) -> (Vec<Write>, u64) {
        let state = self.lock();
        let collections = (0..self.registry().collections()).map(CollectionId);
        let writes = collections.flat_map(|collection| {
            let snapshot = state.storage.snapshot(collection);
            let write = |entry: &Arc<Entry>| Write {
                revision: entry.revision,
                collection,
                key: Arc::clone(&entry.key),
                new: Some(Arc::clone(entry)),
            };
            snapshot.range("", "").map(write).collect::<Vec<_>>()
        });
        (writes.collect(), state.storage.revision())
    }

    /// Adds the objects of a data directory to the store without events, and sets the store's revision.
    ///
    /// Must be called before the first request.
    pub(crate) fn recover(&self, entries: Vec<(CollectionId, Entry)>, revision: u64) {
        let mut state = self.lock();
        for (collection, entry) in entries {
            state.storage.recover(collection, entry);
        }
        state.storage.start_at(revision);
        state.storage.compact();
        for cache in &mut state.caches {
            cache.forget(revision);
        }
    }

    /// Makes the server store each later write in `disk` before clients can see the write.
    ///
    /// Must be called before the first request.
    pub(crate) fn keep_on(&self, disk: Disk) {
        let fresh = self.disk.set(Mutex::new(disk)).is_ok();
        debug_assert!(fresh, "a server is opened on one directory");
    }

    /// Completes the work that had not finished when the server last stopped: the deletion of namespaces and
    /// definitions, and the names of definitions.
    pub(crate) fn resume_work(self: &Arc<Self>) {
        let before = self.before_write();
        namespace::resume(self);
        Definitions::resume(self).complete();
        if let Err(cause) = self.settle(before) {
            // The namespaces and definitions stay as they are until the next start.
            tracing::warn!(%cause, "failed to resume interrupted work on namespaces and CustomResourceDefinitions; it resumes at the next start");
        }
    }
}
