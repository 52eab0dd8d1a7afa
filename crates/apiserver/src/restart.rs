//! Loads a server from a data directory, and stores a new server in one.
//!
//! Guarantees:
//! - a restarted server has the same objects byte for byte, with their revisions, and continues the revision counter;
//! - it has no events: every window starts at the revision of the restart.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::resource::{CollectionId, Registry, Resource};
use crate::shared::Shared;
use crate::storage::{Disk, Entry, Stored, Write};
use crate::verb::namespace;

/// Stored objects while they are loaded.
pub(crate) struct Kept<'a> {
    registry: &'a Registry,
    /// The current collection; objects are loaded collection by collection.
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

    /// Adds one object; skips a kind that is not served; the error is the reason why it can't be added.
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
    /// Returns every stored object as a write, and the revision.
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

    /// Restores the objects of an earlier start; allowed only before the first request.
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

    /// Makes writes durable before they are visible; allowed only before the first request.
    pub(crate) fn keep_on(&self, disk: Disk) {
        let fresh = self.disk.set(Mutex::new(disk)).is_ok();
        debug_assert!(fresh, "a server is opened on one directory");
    }

    /// Completes the deletions of namespaces that the last shutdown interrupted.
    pub(crate) fn resume_deletions(&self) {
        let before = self.before_write();
        namespace::resume(self);
        if let Err(cause) = self.settle(before) {
            // They stay Terminating and continue with the next deletion in them.
            tracing::warn!(%cause, "failed to resume interrupted namespace deletions; each resumes with the next deletion in its namespace");
        }
    }
}
