//! [`Deleted`]: a deletion and the object's last known state.

use super::{Object, ObjectName};
use derive_where::derive_where;

/// A deletion, as stored in queues and delivered to handlers.
#[doc(alias = "DeletedFinalStateUnknown")]
#[doc(alias = "DeletedObject")]
#[derive(Debug)]
#[derive_where(Clone)]
pub enum Deleted<K> {
    /// The server reported the deletion: this is the last state, at the revision of the deletion.
    Known(Object<K>),
    /// The watch missed the deletion, and a relist detected it.
    #[doc(alias = "DeletedFinalStateUnknown")]
    FinalStateUnknown {
        /// The name of the deleted object.
        name: ObjectName,
        /// The last known state, which may be stale. It is always `Some` in a handler.
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
