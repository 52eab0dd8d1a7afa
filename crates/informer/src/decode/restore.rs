//! Creates objects from saved JSON, in the cache's form. A packed or lazy cache does not decode them.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::Decoder;
use crate::{
    codec::Encoded,
    object::{Object, ObjectName, ResourceVersion, UidHash},
};

impl<K: Resource + DeserializeOwned> Decoder<K> {
    /// Creates the object with its saved identity. It was pruned and transformed before it was saved. `None` if it
    /// does not decode and the cache stores decoded objects.
    pub(crate) fn restored(
        &self,
        name: ObjectName,
        revision: &str,
        encoded: Encoded<'_>,
        saved_bytes: usize,
    ) -> Option<Object<K>> {
        let keeps_bytes = self.form.always_keeps_bytes() || self.is_on_demand();
        if let Some(mut identity) = keeps_bytes.then(|| encoded.identity_in_place()).flatten() {
            // A transform may have dropped the revision.
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
