//! [`Change`]: a change of the cache, for the processor.

use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::{
    metrics::Told,
    object::{Deleted, Object, ObjectName, SourceId},
};

/// Why an object is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The watch delivered an event.
    Watch,
    /// A list contained it. Its state may have changed several times or not at all. If the server was or may have
    /// been restored from a backup, the state may differ at an equal revision.
    Relist,
    /// Nothing has changed; the handler requested periodic delivery.
    Resync,
}

/// The effect of one delta on the cache.
#[derive(Debug)]
pub enum Change<K> {
    /// An object was added.
    Added {
        /// The object.
        object: Object<K>,
        /// Whether it belongs to the first list.
        in_initial_list: bool,
    },
    /// An object was already in the cache.
    Updated {
        /// The state delivered before.
        old: Object<K>,
        /// The current state.
        new: Object<K>,
        /// Why it is delivered.
        cause: Cause,
    },
    /// An object was removed.
    Deleted(Deleted<K>),
    /// A whole list was applied; one message for any number of objects.
    Replaced {
        /// The store before.
        old: Snapshot<K>,
        /// The store after.
        new: Snapshot<K>,
        /// The objects that were affected.
        changed: Arc<Changed>,
        /// Whether it was a source's first list.
        in_initial_list: bool,
    },
    /// All these objects are delivered again to the handlers that requested it.
    Resync(Snapshot<K>),
    /// The first list of this source is complete.
    Listed(SourceId),
}

impl<K> Change<K> {
    /// Counts the objects that are delivered because they changed.
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

    /// Sets whether the change is part of a first list.
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
    /// Objects that the list did not contain and that were removed, ordered by name.
    pub gone: Vec<ObjectName>,
    /// Objects of the list, in its order, and whether their state differs or may differ from before: in revision or
    /// uid, or always if the server may have reused revisions.
    pub listed: Vec<(ObjectName, bool)>,
}
