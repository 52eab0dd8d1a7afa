//! Defines the changes of the cache that the processor delivers to handlers.
//!
//! The writer of the store creates each [`Change`] when it applies a delta, a list or a resync. This module
//! does not apply or deliver changes.

use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::{
    metrics::Told,
    object::{Deleted, Object, ObjectName, SourceId},
};

/// The reason why handlers receive an update of an object: a watch event, a relist or a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The watch received an event for the object.
    Watch,
    /// A list contained the object, and the cache already had the object.
    ///
    /// The object may have changed several times or not at all. After a restore of the server from a backup,
    /// the state may differ although the revision is equal.
    Relist,
    /// The object has not changed. The update is delivered because the handler's resync period has elapsed.
    Resync,
}

/// The effect of one delta, one list or one resync on the cache.
///
/// The processor delivers each change to the handlers.
#[derive(Debug)]
pub enum Change<K> {
    /// An object was added to the cache.
    Added {
        /// The added object.
        object: Object<K>,
        /// Whether the object comes from the first list of the reflector that received the object.
        in_initial_list: bool,
    },
    /// An object that was already in the cache was updated, or its unchanged state is delivered again.
    Updated {
        /// The previous state of the object in the cache.
        old: Object<K>,
        /// The current state of the object.
        new: Object<K>,
        /// The reason why the update is delivered.
        cause: Cause,
    },
    /// An object was removed from the cache. The value contains the object's name and last known state.
    Deleted(Deleted<K>),
    /// A list was applied to the cache. This one change covers all objects of the list.
    Replaced {
        /// Snapshot of the store before the list was applied.
        old: Snapshot<K>,
        /// Snapshot of the store after the list was applied.
        new: Snapshot<K>,
        /// The names of the removed objects and of all objects in the list.
        ///
        /// For each object in the list, a flag indicates whether the object may have changed.
        changed: Arc<Changed>,
        /// Whether the list is the first one of its reflector.
        in_initial_list: bool,
    },
    /// A resync started. Each handler whose resync period has elapsed receives all objects of this snapshot
    /// again.
    Resync(Snapshot<K>),
    /// The cache contains the whole first list of the reflector that this id identifies.
    Listed(SourceId),
}

impl<K> Change<K> {
    /// Returns how many objects this change adds, updates and deletes. Unchanged objects are not counted.
    pub(crate) fn told(&self) -> Told {
        let mut told = Told::default();
        match self {
            Self::Added { .. } => told.added = 1,
            Self::Updated { old, new, .. } => told.updated = u64::from(!old.is_same(new)),
            Self::Deleted(_) => told.deleted = 1,
            Self::Replaced {
                old, new, changed, ..
            } => {
                let listed = changed.listed.iter().filter(|(_, changed)| *changed);
                for name in listed
                    .map(|(name, _)| name)
                    .filter(|name| new.told(name).is_some())
                {
                    match old.told(name) {
                        Some(_) => told.updated += 1,
                        None => told.added += 1,
                    }
                }
                let gone = changed.gone.iter().filter(|name| old.told(name).is_some());
                told.deleted = gone.count() as u64;
            }
            Self::Resync(_) | Self::Listed(_) => {}
        }
        told
    }

    pub(super) fn flagged(mut self, initial: bool) -> Self {
        if let Self::Added {
            in_initial_list, ..
        } = &mut self
        {
            *in_initial_list = initial;
        }
        self
    }
}

/// The names of removed objects and of listed objects, after a list was applied to the store.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Changed {
    /// Names of the objects that were removed because the list did not contain them, sorted.
    pub gone: Vec<ObjectName>,
    /// Names of the objects in the list, in the order of the list, each with a flag.
    ///
    /// The flag is true if the object may have changed, for example if its revision or uid differs. The flag
    /// is also true if a server may have used the revision again after a restore from a backup.
    pub listed: Vec<(ObjectName, bool)>,
}
