//! Makes objects of saved JSON, in the form in which a cache keeps them. A packed or lazy cache decodes none of
//! them.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{Decoder, expected, fast_path, heap_size};
use crate::object::{Identity, Object, ObjectName, ResourceVersion, UidHash};

impl<K: Resource + DeserializeOwned> Decoder<K> {
    /// The object under the identity that it was saved with. It is neither pruned nor transformed: it was
    /// before it was saved. `None` if it does not decode and the cache keeps decoded objects.
    pub(crate) fn restored(
        &self,
        name: ObjectName,
        revision: &str,
        json: &[u8],
        saved_bytes: usize,
    ) -> Option<Object<K>> {
        let keeps_json = self.form.always_keeps_json() || self.is_on_demand();
        if let Some(mut identity) = keeps_json.then(|| identity(json)).flatten() {
            // A transform may have dropped it.
            identity.metadata.resource_version = revision.into();
            return self.form.keep(name, &identity, json, saved_bytes);
        }
        let decoded = heap_size::from_slice::<K>(json).ok()?;
        let uid = UidHash::of_object(&decoded.value);
        let revision = ResourceVersion::from(revision);
        let object = Object::identified(name, revision, uid, decoded.value, saved_bytes);
        let object = object.counted(decoded.heap_bytes);
        Some(self.form.convert(object))
    }
}

fn identity(json: &[u8]) -> Option<Identity<'_>> {
    let at = expected::metadata_at(json);
    let usual =
        at.and_then(|at| fast_path::identity(json, at).or_else(|| Identity::begins_at(json, at)));
    usual.or_else(|| serde_json::from_slice(json).ok())
}
