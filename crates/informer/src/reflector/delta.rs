//! Defines [`Delta`], a change to the objects of a source. A source is one reflector with its own list and
//! watch.
//!
//! A reflector delivers changes to a store or a queue, in the order in which it received them.

use derive_where::derive_where;
use tokio::time::Instant;

use crate::object::{Deleted, Epoch, Object, ObjectName, ResourceVersion, SourceId};

/// A change to the objects of a source, or a bookmark. A reflector delivers deltas to a store or a queue.
#[derive(Debug)]
#[derive_where(Clone)]
#[non_exhaustive]
pub struct Delta<K> {
    /// Identifies the source that received the change.
    pub source: SourceId,
    /// The type and the content of the change.
    pub kind: DeltaKind<K>,
    /// Receive time of a watch event; `None` for other changes, or if metrics are disabled.
    pub(crate) received: Option<Instant>,
}

/// The type and the content of a [`Delta`].
///
/// Reflectors create `Added`, `Updated`, `Deleted`, `ReplacedAll` and `Bookmark`. Queues create the other
/// variants, and a `Deleted` for each object that a list no longer contains.
#[derive(Debug)]
#[derive_where(Clone)]
pub enum DeltaKind<K> {
    /// The watch sent a new object, or an object that already existed when the watch began.
    Added(Object<K>),
    /// The watch sent a newer state of an object.
    Updated(Object<K>),
    /// The watch sent a deletion, or a later list does not contain the object.
    Deleted(Deleted<K>),
    /// A list contained the object. The store may already have the same state of the object.
    Replaced(Object<K>),
    /// A periodic resync delivers one unchanged object again.
    Sync(Object<K>),
    /// A complete list, which the store applies atomically.
    #[doc(alias = "ReplacedAllInfo")]
    ReplacedAll {
        /// All objects in the list.
        objects: Vec<Object<K>>,
        /// The revision of the list.
        revision: ResourceVersion,
    },
    /// A periodic resync delivers all objects of the store again.
    #[doc(alias = "SyncAllInfo")]
    SyncAll,
    /// A bookmark: the watch has sent every change up to this revision.
    #[doc(alias = "BookmarkInfo")]
    Bookmark {
        /// The revision up to which the watch has sent every change.
        revision: ResourceVersion,
    },
}

/// The type of a [`Delta`], without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "each is described at the variant of DeltaKind that has its name"
)]
pub enum DeltaType {
    Added,
    Updated,
    Deleted,
    Replaced,
    Sync,
    ReplacedAll,
    SyncAll,
    Bookmark,
}

impl<K> DeltaKind<K> {
    /// Sets the epoch of each object that the server sent in this change.
    ///
    /// Revisions of different epochs can't be compared, because the server was restored between them. The
    /// objects of `Sync` and `FinalStateUnknown` come from the store, and keep their epoch.
    pub(super) fn in_epoch(self, epoch: Epoch) -> Self {
        if epoch == Epoch::FIRST {
            return self; // decoded revisions have the first epoch
        }
        match self {
            Self::Added(object) => Self::Added(object.in_epoch(epoch)),
            Self::Updated(object) => Self::Updated(object.in_epoch(epoch)),
            Self::Replaced(object) => Self::Replaced(object.in_epoch(epoch)),
            Self::Deleted(Deleted::Known(object)) => {
                Self::Deleted(Deleted::Known(object.in_epoch(epoch)))
            }
            Self::ReplacedAll { objects, revision } => Self::ReplacedAll {
                objects: objects
                    .into_iter()
                    .map(|object| object.in_epoch(epoch))
                    .collect(),
                revision: revision.in_epoch(epoch),
            },
            Self::Bookmark { revision } => Self::Bookmark {
                revision: revision.in_epoch(epoch),
            },
            // These contain states from the store, which keep their epoch.
            Self::Sync(_) | Self::SyncAll | Self::Deleted(Deleted::FinalStateUnknown { .. }) => {
                self
            }
        }
    }
}

impl<K> Delta<K> {
    /// Creates a change to the objects of `source`, without a receive time.
    pub fn new(source: SourceId, kind: DeltaKind<K>) -> Self {
        Self {
            source,
            kind,
            received: None,
        }
    }

    /// Creates an `Added` change with the source ID 0, for stores with only one source.
    pub fn added(object: Object<K>) -> Self {
        Self::new(SourceId::default(), DeltaKind::Added(object))
    }

    /// Creates an `Updated` change with the source ID 0, for stores with only one source.
    pub fn updated(object: Object<K>) -> Self {
        Self::new(SourceId::default(), DeltaKind::Updated(object))
    }

    /// Creates a `Deleted` change with the source ID 0, for stores with only one source.
    ///
    /// `object` is the final state of the deleted object.
    pub fn deleted(object: Object<K>) -> Self {
        Self::new(
            SourceId::default(),
            DeltaKind::Deleted(Deleted::Known(object)),
        )
    }

    /// Returns the type of the change.
    pub fn delta_type(&self) -> DeltaType {
        match &self.kind {
            DeltaKind::Added(_) => DeltaType::Added,
            DeltaKind::Updated(_) => DeltaType::Updated,
            DeltaKind::Deleted(_) => DeltaType::Deleted,
            DeltaKind::Replaced(_) => DeltaType::Replaced,
            DeltaKind::Sync(_) => DeltaType::Sync,
            DeltaKind::ReplacedAll { .. } => DeltaType::ReplacedAll,
            DeltaKind::SyncAll => DeltaType::SyncAll,
            DeltaKind::Bookmark { .. } => DeltaType::Bookmark,
        }
    }

    /// Returns the object of the change. Returns `None` for a list, a `SyncAll`, a bookmark, and a deletion
    /// without a known last state.
    pub fn object(&self) -> Option<&Object<K>> {
        match &self.kind {
            DeltaKind::Added(object)
            | DeltaKind::Updated(object)
            | DeltaKind::Replaced(object)
            | DeltaKind::Sync(object) => Some(object),
            DeltaKind::Deleted(deleted) => deleted.object(),
            DeltaKind::ReplacedAll { .. } | DeltaKind::SyncAll | DeltaKind::Bookmark { .. } => None,
        }
    }

    /// Returns the name of the changed object; `None` for a list, a `SyncAll` and a bookmark.
    pub fn object_name(&self) -> Option<&ObjectName> {
        match &self.kind {
            DeltaKind::Deleted(deleted) => Some(deleted.object_name()),
            _ => self.object().map(Object::object_name),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_core::ObjectMeta;

    use super::*;

    #[test]
    fn every_revision_of_a_delta_has_the_epoch_of_its_source() {
        let object = Object::new(ConfigMap {
            metadata: ObjectMeta {
                name: Some("a".to_owned()),
                resource_version: Some("3".to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        });
        let object = object.unwrap();
        let later = Epoch::FIRST.after_rollback(Epoch::FIRST);
        let revision = ResourceVersion::from(5);
        for kind in [
            DeltaKind::Added(object.clone()),
            DeltaKind::Updated(object.clone()),
            DeltaKind::Replaced(object.clone()),
            DeltaKind::Deleted(Deleted::Known(object.clone())),
            DeltaKind::ReplacedAll {
                objects: vec![object.clone(); 2],
                revision: revision.clone(),
            },
            DeltaKind::Bookmark { revision },
        ] {
            let delta = Delta::new(SourceId::default(), kind.in_epoch(later));
            let mut revisions: Vec<_> = delta.object().map(Object::revision).into_iter().collect();
            match &delta.kind {
                DeltaKind::ReplacedAll { objects, revision } => {
                    revisions.extend(objects.iter().map(Object::revision));
                    revisions.push(revision);
                }
                DeltaKind::Bookmark { revision } => revisions.push(revision),
                _ => {}
            }
            assert!(!revisions.is_empty(), "{delta:?}");
            let all = revisions.iter().all(|revision| revision.epoch() == later);
            assert!(all, "{delta:?}");
        }
        assert_eq!(
            object.revision().epoch(),
            Epoch::FIRST,
            "other handles of the object are unchanged"
        );
    }
}
