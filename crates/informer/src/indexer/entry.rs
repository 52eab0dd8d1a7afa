//! Defines [`Entry`], which a store contains for each object: the object and the source that received it.
//!
//! A source is one list and watch of the informer. A later list of a source removes only entries of that
//! source.

use crate::object::{Object, SourceId};
use derive_where::derive_where;

#[derive_where(Clone)]
pub(super) struct Entry<K> {
    object: Object<K>,
    source: SourceId,
}

/// Entries are equal if they share the object in memory, and if the same list and watch received both.
impl<K> PartialEq for Entry<K> {
    fn eq(&self, other: &Self) -> bool {
        self.object.is_same(&other.object) && self.source == other.source
    }
}

impl<K> Entry<K> {
    pub(super) fn new(source: SourceId, object: Object<K>) -> Self {
        Self { object, source }
    }

    pub(super) fn object(&self) -> &Object<K> {
        &self.object
    }

    pub(super) fn into_object(self) -> Object<K> {
        self.object
    }

    pub(super) fn source(&self) -> SourceId {
        self.source
    }

    pub(super) fn is_live(&self) -> bool {
        self.object.broken().is_none()
    }

    /// Returns whether this entry already contains the state of `object`, which the list and watch `source`
    /// received.
    ///
    /// Returns `true` if the entry's object and `object` are the same object in memory. Also returns `true`
    /// if source, revision and uid are equal, and the entry's object did not fail to decode. An unknown uid
    /// counts as equal. An unset revision does not.
    pub(super) fn is_same(&self, source: SourceId, object: &Object<K>) -> bool {
        let known = &self.object;
        known.is_same(object)
            || (self.is_live() && self.source == source && known.is_unchanged(object))
    }
}
