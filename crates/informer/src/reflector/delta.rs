//! [`Delta`]: what changed on the server, in the order in which it was learnt.

use derive_where::derive_where;
use tokio::time::Instant;

use crate::object::{Deleted, Epoch, Object, ObjectName, ResourceVersion, SourceId};

/// One change, from the source that told it.
#[derive(Debug)]
#[derive_where(Clone)]
#[non_exhaustive]
pub struct Delta<K> {
    /// Which reflector it comes from.
    pub source: SourceId,
    /// What changed.
    pub kind: DeltaKind<K>,
    /// When its bytes were read, if that is measured.
    pub(crate) received: Option<Instant>,
}

/// What a [`Delta`] says. A reflector makes `Added`, `Updated`, `Deleted`, `ReplacedAll` and
/// `Bookmark`; queues make the others out of these.
#[derive(Debug)]
#[derive_where(Clone)]
pub enum DeltaKind<K> {
    /// The watch told of a new object (or of one that was there when it began).
    Added(Object<K>),
    /// The watch told of a newer state.
    Updated(Object<K>),
    /// The watch told of a deletion, or a relist found an object missing.
    Deleted(Deleted<K>),
    /// An item of a list; whether it differs from what is known is not known yet.
    Replaced(Object<K>),
    /// The periodic resync of one object.
    Sync(Object<K>),
    /// A whole list, to be applied at one go.
    #[doc(alias = "ReplacedAllInfo")]
    ReplacedAll {
        /// Every object that the source has.
        objects: Vec<Object<K>>,
        /// The revision of the list.
        revision: ResourceVersion,
    },
    /// The periodic resync of everything in the store.
    #[doc(alias = "SyncAllInfo")]
    SyncAll,
    /// Nothing happened up to this revision.
    #[doc(alias = "BookmarkInfo")]
    Bookmark {
        /// The revision.
        revision: ResourceVersion,
    },
}

/// The kinds of a [`Delta`], without their content.
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
    /// The same, with every revision of what has just been decoded in this epoch.
    pub(super) fn in_epoch(self, epoch: Epoch) -> Self {
        if epoch == Epoch::FIRST {
            return self; // as everything is that is decoded
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
            // What the store has itself, or knew last.
            Self::Sync(_) | Self::SyncAll | Self::Deleted(Deleted::FinalStateUnknown { .. }) => {
                self
            }
        }
    }
}

impl<K> Delta<K> {
    /// A change told by `source`.
    pub fn new(source: SourceId, kind: DeltaKind<K>) -> Self {
        Self {
            source,
            kind,
            received: None,
        }
    }

    /// An object was added; from source 0, as is right where there is one source.
    pub fn added(object: Object<K>) -> Self {
        Self::new(SourceId::default(), DeltaKind::Added(object))
    }

    /// An object changed; from source 0.
    pub fn updated(object: Object<K>) -> Self {
        Self::new(SourceId::default(), DeltaKind::Updated(object))
    }

    /// An object was deleted, this is its last state; from source 0.
    pub fn deleted(object: Object<K>) -> Self {
        Self::new(
            SourceId::default(),
            DeltaKind::Deleted(Deleted::Known(object)),
        )
    }

    /// The kind, without the content.
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

    /// The object it is about, if it is about one and its state is known.
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

    /// The name of the object it is about, if it is about one.
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
    fn every_revision_of_a_change_is_of_the_epoch_that_it_was_heard_on() {
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
        assert_eq!(object.revision().epoch(), Epoch::FIRST, "nor others'");
    }
}
