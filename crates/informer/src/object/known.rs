//! [`Known`] gives a queue read access to the objects in the store.

use super::{Object, ObjectName, SourceId};

/// Read access to the objects of a store. The caller passes it to a queue for one call of `replace` or
/// `resync`.
#[doc(alias = "KeyListerGetter")]
#[doc(alias = "KnownObjects")]
#[doc(alias = "KeyLister")]
#[doc(alias = "KeyGetter")]
pub trait Known<K> {
    /// Returns the newest state of an object in the store, and the source that delivered it.
    #[doc(alias = "GetByKey")]
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)>;

    /// Calls `visit` for each object in the store, ordered by name, with its source.
    #[doc(alias = "ListKeys")]
    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>));
}

/// Stands for an empty store.
impl<K> Known<K> for () {
    fn known(&self, _: &ObjectName) -> Option<(SourceId, Object<K>)> {
        None
    }

    fn for_each(&self, _: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {}
}
