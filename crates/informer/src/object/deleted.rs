//! [`Deleted`]: what is known of an object that is gone.

use super::{Object, ObjectName};
use derive_where::derive_where;

/// A deletion, as queues carry it and handlers hear it.
#[doc(alias = "DeletedFinalStateUnknown")]
#[doc(alias = "DeletedObject")]
#[derive(Debug)]
#[derive_where(Clone)]
pub enum Deleted<K> {
    /// The server told of the deletion: this is the last state, at the revision of the deletion.
    Known(Object<K>),
    /// The deletion was missed (the watch was down) and found out by a relist.
    #[doc(alias = "DeletedFinalStateUnknown")]
    FinalStateUnknown {
        /// Which object is gone.
        name: ObjectName,
        /// The last state anybody here knew; it may be stale. A handler always gets one.
        last_known: Option<Object<K>>,
    },
}

impl<K> Deleted<K> {
    /// Which object is gone; never fails.
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

    /// The last state: the final one, or the last one known.
    #[doc(alias = "OptionalObj")]
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Known(object) => Some(object),
            Self::FinalStateUnknown { last_known, .. } => last_known.as_ref(),
        }
    }

    /// Whether the deletion was missed, so that [`Deleted::object`] may be stale.
    #[doc(alias = "FinalStateUnknown")]
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Self::FinalStateUnknown { .. })
    }
}
