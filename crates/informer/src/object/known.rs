//! [`Known`]: read access to a store, for a queue before it.

use super::{Object, ObjectName, SourceId};

/// The objects of a store, passed to a queue for one `replace` or `resync`.
#[doc(alias = "KeyListerGetter")]
#[doc(alias = "KnownObjects")]
#[doc(alias = "KeyLister")]
#[doc(alias = "KeyGetter")]
pub trait Known<K> {
    /// Returns the newest state of an object, and its source.
    #[doc(alias = "GetByKey")]
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)>;

    /// Visits all objects, ordered by name.
    #[doc(alias = "ListKeys")]
    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>));
}

/// An empty store.
impl<K> Known<K> for () {
    fn known(&self, _: &ObjectName) -> Option<(SourceId, Object<K>)> {
        None
    }

    fn for_each(&self, _: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {}
}
