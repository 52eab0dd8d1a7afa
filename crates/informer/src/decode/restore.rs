//! Makes objects of saved JSON, in the form in which a cache keeps them. A packed or lazy cache decodes none of
//! them.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::Decoder;
use crate::{
    codec::Encoded,
    object::{Object, ObjectName, ResourceVersion, UidHash},
};

impl<K: Resource + DeserializeOwned> Decoder<K> {
    /// The object under the identity that it was saved with. It is neither pruned nor transformed: it was
    /// before it was saved. `None` if it does not decode and the cache keeps decoded objects.
    pub(crate) fn restored(
        &self,
        name: ObjectName,
        revision: &str,
        encoded: Encoded<'_>,
        saved_bytes: usize,
    ) -> Option<Object<K>> {
        let keeps_bytes = self.form.always_keeps_bytes() || self.is_on_demand();
        if let Some(mut identity) = keeps_bytes.then(|| encoded.identity_in_place()).flatten() {
            // A transform may have dropped it.
            identity.metadata.resource_version = revision.into();
            return self.form.keep(name, &identity, encoded, saved_bytes);
        }
        let decoded = encoded.measured::<K>().ok()?;
        let uid = UidHash::of_object(&decoded.value);
        let revision = ResourceVersion::from(revision);
        let object = Object::identified(name, revision, uid, decoded.value, saved_bytes);
        let object = object.counted(decoded.heap_bytes);
        Some(self.form.convert(object))
    }
}
