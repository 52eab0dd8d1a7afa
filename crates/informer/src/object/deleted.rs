//! [`Deleted`] describes the deletion of one object: the object's name and its last known state.

use super::{Object, ObjectName};
use derive_where::derive_where;

/// The deletion of an object, as it is stored in queues and delivered to handlers.
#[doc(alias = "DeletedFinalStateUnknown")]
#[doc(alias = "DeletedObject")]
#[derive(Debug)]
#[derive_where(Clone)]
pub enum Deleted<K> {
    /// The watch reported the deletion. The value is the object's final state, at the revision of the
    /// deletion.
    Known(Object<K>),
    /// The watch missed the deletion, and a later list no longer contained the object.
    #[doc(alias = "DeletedFinalStateUnknown")]
    FinalStateUnknown {
        /// The name of the deleted object.
        name: ObjectName,
        /// The last state of the object in the cache, which may be stale. A handler always receives `Some`.
        /// In a queue, `None` means that the cache had no state of the object.
        last_known: Option<Object<K>>,
    },
}

impl<K> Deleted<K> {
    /// Returns the name of the deleted object.
    #[doc(alias = "DeletionHandlingMetaNamespaceKeyFunc")]
    #[doc(alias = "DeletionHandlingObjectToName")]
    #[doc(alias = "GetObjectName")]
    #[doc(alias = "GetKey")]
    pub fn object_name(&self) -> &ObjectName {
        match self {
            Self::Known(object) => object.object_name(),
            Self::FinalStateUnknown { name, .. } => name,
        }
    }

    /// Returns the last known state of the object.
    ///
    /// This is the final state if the watch reported the deletion, and otherwise the last state in the cache.
    /// A handler always receives a deletion with a state. In a queue, `None` means that the cache had no
    /// state of the object.
    #[doc(alias = "OptionalObj")]
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Known(object) => Some(object),
            Self::FinalStateUnknown { last_known, .. } => last_known.as_ref(),
        }
    }

    /// Returns whether the watch missed the deletion. The state that [`Deleted::object`] returns may then be
    /// stale.
    #[doc(alias = "FinalStateUnknown")]
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Self::FinalStateUnknown { .. })
    }
}
