//! [`Known`]: what a store has, for those that stand before it.

use super::{Object, ObjectName, SourceId};

/// What a store already has, lent to a queue for the time of one `replace` or `resync`.
#[doc(alias = "KeyListerGetter")]
#[doc(alias = "KnownObjects")]
#[doc(alias = "KeyLister")]
#[doc(alias = "KeyGetter")]
pub trait Known<K> {
    /// The newest state kept under a name, with the source that brought it.
    #[doc(alias = "GetByKey")]
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)>;

    /// Visits everything kept, in the order of names.
    #[doc(alias = "ListKeys")]
    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>));
}

/// Nothing is known.
impl<K> Known<K> for () {
    fn known(&self, _: &ObjectName) -> Option<(SourceId, Object<K>)> {
        None
    }

    fn for_each(&self, _: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {}
}
