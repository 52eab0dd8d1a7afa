//! [`Entry`]: one object of a store, with its source.

use crate::object::{Object, SourceId};
use derive_where::derive_where;

/// One object of the store.
#[derive_where(Clone)]
pub(super) struct Entry<K> {
    object: Object<K>,
    source: SourceId,
}

/// Two entries are equal if they are the same state by address; two moments of a store are compared with it.
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

    /// Whether `object`, from `source`, is the state that is stored.
    pub(super) fn is_same(&self, source: SourceId, object: &Object<K>) -> bool {
        let known = &self.object;
        known.is_same(object)
            || (self.is_live() && self.source == source && known.is_unchanged(object))
    }
}
