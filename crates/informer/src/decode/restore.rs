//! Makes objects of saved JSON, in the form in which a cache keeps them. A packed or lazy cache decodes none of
//! them.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{Decoder, expected, heap, usual};
use crate::object::{Head, Object, ObjectName, ResourceVersion, UidMark};

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
        let keeps_json = self.opener.is_some() || self.is_on_demand();
        if let Some(mut head) = keeps_json.then(|| head(json)).flatten() {
            // A transform may have dropped it.
            head.metadata.resource_version = revision.into();
            if let Some(opener) = &self.opener {
                return Some(Object::packed(name, &head, json, saved_bytes, opener));
            }
            if let Some(lazy) = &self.lazy {
                return Some(Object::lazy(name, &head, json, saved_bytes, lazy));
            }
        }
        let decoded = heap::from_slice::<K>(json).ok()?;
        let uid = UidMark::of_object(&decoded.value);
        let revision = ResourceVersion::from(revision);
        let object = Object::identified(name, revision, uid, decoded.value, saved_bytes);
        let object = object.counted(decoded.heap_bytes);
        Some(match &self.opener {
            Some(opener) => object.pack(opener),
            None => object,
        })
    }

    /// Makes a dictionary if one is due, and packs with it what was restored before. Takes its time: for
    /// threads that may block.
    pub(crate) fn tend_packing(&self, restored: &[Vec<Object<K>>], more_comes: bool) {
        let Some(opener) = &self.opener else {
            return;
        };
        let packing = opener.packing();
        if packing.is_due(more_comes) && packing.train(more_comes) {
            restored.iter().flatten().for_each(Object::repack);
        }
    }
}

fn head(json: &[u8]) -> Option<Head<'_>> {
    let at = expected::metadata_at(json);
    let usual = at.and_then(|at| usual::head(json, at).or_else(|| Head::begins_at(json, at)));
    usual.or_else(|| serde_json::from_slice(json).ok())
}
