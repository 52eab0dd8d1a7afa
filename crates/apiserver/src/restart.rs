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
use crate::verb::garbage_collection::Collecting;
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

/// The resource that decodes the objects of a collection, and the id of the collection.
type Place = (Arc<Resource>, CollectionId);

/// Converts the objects of a data directory to entries of the store.
pub(crate) struct Kept<'a> {
    registry: &'a Registry,
    /// Name of the last object's collection, and its resource and id. Saves a lookup if the next object is in the same
    /// collection.
    current: Option<(String, Option<Place>)>,
    restored: Restored,
}

/// The objects of a data directory as entries of the store.
#[derive(Default)]
pub(crate) struct Restored {
    pub(crate) entries: Vec<(CollectionId, Arc<Entry>)>,
    /// Writes that move objects from collections that this version does not have to those of `entries`.
    pub(crate) moved: Vec<Write>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Kept<'a> {
        Kept {
            registry,
            current: None,
            restored: Restored::default(),
        }
    }

    /// Converts a stored object to an entry. Ignores the object if the registry does not have its collection.
    ///
    /// Earlier versions of this library had a collection for the events of each group. They are one now.
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
            let last = self.registry.last_resource(stored.collection);
            let found = last.map(|last| {
                let own = last.collection;
                let served = self.registry.resource_named(stored.collection);
                let elsewhere = served.filter(|served| served.collection != own);
                (Arc::clone(elsewhere.unwrap_or(last)), own)
            });
            self.current = Some((stored.collection.to_owned(), found));
        }
        if let Some((_, Some((resource, own)))) = &self.current {
            let entry = Entry::restored(resource, stored.key, stored.members, stored.metadata)?;
            let entry = Arc::new(entry);
            if resource.collection != *own {
                let write = |collection, new| Write {
                    revision: entry.revision,
                    collection,
                    key: Arc::clone(&entry.key),
                    new,
                };
                let added = Some(Arc::clone(&entry));
                let writes = [write(*own, None), write(resource.collection, added)];
                self.restored.moved.extend(writes);
            }
            self.restored.entries.push((resource.collection, entry));
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Restored {
        self.restored
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
    pub(crate) fn recover(&self, entries: Vec<(CollectionId, Arc<Entry>)>, revision: u64) {
        let mut state = self.lock();
        for (collection, entry) in entries {
            state.storage.recover(collection, entry);
        }
        state.storage.start_at(revision);
        state.storage.compact();
        for cache in &mut state.caches {
            cache.forget(revision);
        }
        self.follow_all_rbac(&state);
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
        self.lock().expire_relations();
        Collecting::complete(self);
        if let Err(cause) = self.settle(before) {
            // The namespaces and definitions stay as they are until the next start.
            tracing::warn!(%cause, "failed to resume interrupted work on namespaces and CustomResourceDefinitions; it resumes at the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Kinds, Scope};

    #[test]
    fn events_of_both_groups_are_moved_to_one_collection() {
        let legacy = "events.events.k8s.io";
        let registry = Registry::new(&Kinds::builtin());
        let registry = registry.with_collections([(legacy.to_owned(), Scope::Namespaced)]);
        let [old, new] = [legacy, "events"].map(|name| {
            let last = registry.last_resource(name).unwrap();
            last.collection
        });
        assert_ne!(old, new);
        let metadata = r#""metadata":{"name":"a","resourceVersion":"5"}"#;
        let members = format!(r#"{metadata},"note":"n""#);
        let mut kept = Kept::new(&registry);
        let stored = Stored {
            collection: legacy,
            key: "ns/a",
            members: members.as_bytes(),
            metadata: 11..metadata.len(),
        };
        kept.take(stored).unwrap();
        let Restored { entries, moved } = kept.finish();
        let [(collection, entry)] = entries.as_slice() else {
            panic!("one object is stored");
        };
        assert_eq!((*collection, entry.revision), (new, 5));
        let core = registry.by_path("", "v1", "events").unwrap();
        assert_eq!(entry.object(core)["message"], "n");
        let moved = moved.iter();
        let moved: Vec<_> = moved.map(|it| (it.collection, it.new.is_some())).collect();
        assert_eq!(moved, [(old, false), (new, true)]);
    }
}
