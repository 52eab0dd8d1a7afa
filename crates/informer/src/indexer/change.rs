//! [`Change`]: a change of the cache, which the processor delivers to handlers.

use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::{
    metrics::Told,
    object::{Deleted, Object, ObjectName, SourceId},
};

/// The reason why an update of an object is delivered to handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The watch delivered an event.
    Watch,
    /// A list contained the object. The object may have changed several times or not at all. If the server
    /// was or may have
    /// been restored from a backup, the state may differ at an equal revision.
    Relist,
    /// The object has not changed; the handler requested periodic delivery (a resync).
    Resync,
}

/// The effect of one delta on the cache, for handlers.
#[derive(Debug)]
pub enum Change<K> {
    /// An object was added.
    Added {
        /// The added object.
        object: Object<K>,
        /// Whether the object belongs to the first list of its source.
        in_initial_list: bool,
    },
    /// An object that was already in the cache was received again.
    Updated {
        /// The last state that was delivered to handlers.
        old: Object<K>,
        /// The current state of the object.
        new: Object<K>,
        /// The reason why the update is delivered.
        cause: Cause,
    },
    /// An object was removed.
    Deleted(Deleted<K>),
    /// A whole list was applied: one change for any number of objects.
    Replaced {
        /// The store before the list.
        old: Snapshot<K>,
        /// The store after the list.
        new: Snapshot<K>,
        /// The names of the removed objects and of the objects in the list.
        changed: Arc<Changed>,
        /// Whether the list was the first list of its source.
        in_initial_list: bool,
    },
    /// A resync: all these objects are delivered again to the handlers whose resync period has elapsed.
    Resync(Snapshot<K>),
    /// The first list of this source is complete.
    Listed(SourceId),
}

impl<K> Change<K> {
    /// Returns the numbers of objects that this change adds, updates and deletes. Unchanged objects are not
    /// counted.
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

    /// Sets the flag `in_initial_list` of an added object. Other changes are returned unmodified.
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

/// The objects that a list affected.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Changed {
    /// Names of the objects that were removed because the list did not contain them, in order.
    pub gone: Vec<ObjectName>,
    /// Names of the objects of the list, in its order, each with whether the object has changed: its revision
    /// or uid is different, or the server may have reused revisions, so that its state may be different.
    pub listed: Vec<(ObjectName, bool)>,
}
