//! Restores a server from a data directory, and prepares a server for storing its writes in the directory.
//!
//! Guarantees:
//! - a restarted server has the same objects byte for byte, with their revisions, and continues the revision
//!   counter;
//! - a restarted server has no events: the event history of every resource starts at the restored revision.
//!
//! The `storage` module reads and writes the files.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::resource::{CollectionId, Registry, Resource};
use crate::shared::Shared;
use crate::storage::{Disk, Entry, Stored, Write};
use crate::verb::namespace;

/// Collects the stored objects of a data directory as entries of the served resources.
pub(crate) struct Kept<'a> {
    registry: &'a Registry,
    /// Name and resource of the collection that is being loaded; objects arrive grouped by collection.
    ///
    /// The resource is `None` if this server does not serve the collection.
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

    /// Adds one stored object, or skips it if the server does not serve its collection.
    ///
    /// # Errors
    ///
    /// Returns the reason if the object is inconsistent.
    pub(crate) fn take(&mut self, stored: Stored<'_>) -> Result<(), String> {
        if self
            .current
            .as_ref()
            .is_none_or(|(name, _)| name != stored.collection)
        {
            let resource = self.registry.resource_named(stored.collection).cloned();
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
    /// Returns every stored object as a write, and the current revision of the store.
    pub(crate) fn everything(&self) -> (Vec<Write>, u64) {
        let state = self.lock();
        let collections = (0..self.registry.collections()).map(CollectionId);
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

    /// Adds the objects of a data directory to the store without events, and continues at `revision`.
    ///
    /// Allowed only before the first request.
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

    /// Makes the server store each write in `disk` before readers and watchers can see it.
    ///
    /// Allowed only before the first request.
    pub(crate) fn keep_on(&self, disk: Disk) {
        let fresh = self.disk.set(Mutex::new(disk)).is_ok();
        debug_assert!(fresh, "a server is opened on one directory");
    }

    /// Completes the deletions of namespaces that the last shutdown interrupted.
    ///
    /// If a write to the disk fails, it logs a warning.
    pub(crate) fn resume_deletions(&self) {
        let before = self.before_write();
        namespace::resume(self);
        if let Err(cause) = self.settle(before) {
            // The namespaces stay Terminating. The next deletion of an object in such a namespace continues
            // its deletion.
            tracing::warn!(%cause, "failed to resume interrupted namespace deletions; each resumes with the next deletion in its namespace");
        }
    }
}
