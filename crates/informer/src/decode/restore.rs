//! Restores objects from the JSON that an informer saved for a warm start.
//!
//! The cache stores restored objects in the same form as received objects:
//! - A packed cache stores compressed bytes, and decodes an object when it is read.
//! - A lazy cache stores bytes until the first read, or decoded objects if it has a transform.
//! - Any other cache stores decoded objects.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::Decoder;
use crate::{
    codec::Encoded,
    object::{Object, ObjectName, ResourceVersion, UidHash},
};

impl<K: Resource + DeserializeOwned> Decoder<K> {
    /// Creates an object from JSON that was pruned and transformed before it was saved.
    ///
    /// Returns `None` if the JSON is invalid, or if the cache stores decoded objects and the JSON does not
    /// decode.
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
