//! [`Change`]: what changed in the cache, as the processor fans it out.

use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::{
    metrics::Told,
    object::{Deleted, Object, ObjectName, SourceId},
};

/// Why an object is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The watch told of it.
    Watch,
    /// A list brought it. Its state may have changed several times meanwhile, or not at all; if the server
    /// was restored from a backup, or may have been, also at the same revision.
    Relist,
    /// Nothing happened; the handler asked to be told again every so often.
    Resync,
}

/// What one delta has changed.
#[derive(Debug)]
pub enum Change<K> {
    /// An object is new.
    Added {
        /// The object.
        object: Object<K>,
        /// Whether it belongs to the first list.
        in_initial_list: bool,
    },
    /// An object was there before.
    Updated {
        /// What was told before.
        old: Object<K>,
        /// What is there now.
        new: Object<K>,
        /// Why it is told.
        cause: Cause,
    },
    /// An object is gone.
    Deleted(Deleted<K>),
    /// A whole list was applied: one message, however long it was.
    Replaced {
        /// The store before.
        old: Snapshot<K>,
        /// The store after.
        new: Snapshot<K>,
        /// Which objects were concerned.
        changed: Arc<Changed>,
        /// Whether it was a first list.
        in_initial_list: bool,
    },
    /// All of this is to be told again to those who asked for it.
    Resync(Snapshot<K>),
    /// The first list of this source is complete.
    Listed(SourceId),
}

impl<K> Change<K> {
    /// How many objects handlers are to hear of, because they changed.
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

    /// The same, as part of a first list or not.
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

/// Which objects a list concerned.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Changed {
    /// What was not in the list and is gone now, in the order of names.
    pub gone: Vec<ObjectName>,
    /// What was in the list, in its order, and whether it is another state than before, or may be: one
    /// of another revision or uid, or any, if the server may have given out revisions again.
    pub listed: Vec<(ObjectName, bool)>,
}
