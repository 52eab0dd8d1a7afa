//! [`Known`] is the interface through which a queue reads the objects in the store.

use super::{Object, ObjectName, SourceId};

/// Read access to the objects of a store.
///
/// The caller of a queue's `replace` or `resync` passes this access to the queue. The queue uses it only
/// during that call.
#[doc(alias = "KeyListerGetter")]
#[doc(alias = "KnownObjects")]
#[doc(alias = "KeyLister")]
#[doc(alias = "KeyGetter")]
pub trait Known<K> {
    /// Returns the state of an object in the store, with the source (a reflector) that delivered the state.
    /// Returns `None` if the store does not contain the object.
    #[doc(alias = "GetByKey")]
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)>;

    /// Calls `visit` for each object in the store, ordered by name. The arguments of `visit` are the source
    /// that delivered the object, the object's name and the object.
    #[doc(alias = "ListKeys")]
    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>));
}

/// The unit type represents a store that contains no objects.
impl<K> Known<K> for () {
    fn known(&self, _: &ObjectName) -> Option<(SourceId, Object<K>)> {
        None
    }

    fn for_each(&self, _: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {}
}
