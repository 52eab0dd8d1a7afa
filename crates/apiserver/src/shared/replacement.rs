//! Replaces all objects of a server: by those of another server, and by those of an older revision.

use super::{Shared, State};
use crate::definition::Definition;
use crate::status::ApiError;
use crate::storage::{Compacted, Whole};

impl Shared {
    /// Starts with the objects and the revision of another server. Must be called before the first request.
    pub(crate) fn start_from(&self, whole: &Whole) {
        let mut state = self.lock();
        state.storage.replace(whole);
        for cache in &mut state.caches {
            cache.forget(whole.revision());
        }
        state.expire_relations();
        self.follow_all_rbac(&state);
    }

    /// Resets the store to an older revision, and removes all events from the store.
    ///
    /// The caller must close the watches, and remove all events from the watch caches.
    ///
    /// # Errors
    /// Returns a 504 error if `revision` is in the future, and a 410 error if the store has already dropped
    /// an event after `revision`.
    pub(crate) fn restore(&self, state: &mut State, revision: u64) -> Result<(), ApiError> {
        let current = state.storage.revision();
        if revision > current {
            return Err(ApiError::revision_too_large(revision, current));
        }
        let restored = state.storage.restore(revision);
        restored.map_err(|Compacted| ApiError::list_too_old())?;
        state.allocated = None;
        state.floor = 0;
        state.expire_relations();
        self.follow_all_definitions(state);
        self.follow_all_rbac(state);
        self.revision.send_replace(revision);
        Ok(())
    }

    /// Serves the kinds of the stored definitions, and no others.
    fn follow_all_definitions(&self, state: &mut State) {
        let Some(definitions) = &self.builtin.definitions else {
            return;
        };
        let registry = self.registry();
        let gone = registry.defined().map(|name| (name.clone(), Vec::new()));
        let stored = state.storage.below(definitions.collection, "");
        let stored = stored.map(|entry| (entry.name().to_owned(), Definition::kinds_of(entry)));
        let changes: Vec<_> = gone.chain(stored).collect();
        self.redefine(state, changes);
    }
}
