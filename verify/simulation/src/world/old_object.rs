//! Creates the fault plan of the fault "old object sent again", which depends on the state of the cache.

use serde_json::{Value, json};

use kube_informer::object::Known as _;

use super::{World, path};
use crate::{
    life::{Key, Scope, Store},
    stored::Stored,
    wire,
};

impl<K: Stored> World<'_, K> {
    /// Returns a fault plan that sends a cached object's current state to a watch once more.
    ///
    /// The state must be older than the watch's newest revision, and the run must use JSON.
    pub(super) fn old_object(&self) -> Option<String> {
        if self.life.setting.protobuf {
            return None;
        }
        let snapshot = self.informer.informer.indexer().snapshot();
        let namespace_of = |namespace: &str| match self.life.setting.scope {
            Scope::TwoNamespaces => format!(" in {namespace}"),
            Scope::Everywhere | Scope::Labelled => String::new(),
        };
        Key::all().find_map(|key| {
            let (source, cached) = snapshot.known(&key.object_name())?;
            let mut object = self.server.get("v1", "pods", &path(key))?;
            let revision = object["metadata"]["resourceVersion"].as_str()?;
            let is_old = *cached.revision() < snapshot.source_revision(source);
            if !is_old || cached.revision().to_string() != revision {
                return None;
            }
            if self.life.setting.store == Store::Metadata {
                object = json!({
                    "apiVersion": "meta.k8s.io/v1",
                    "kind": "PartialObjectMetadata",
                    "metadata": object["metadata"],
                });
            }
            let event = format!(
                "{{\"type\":\"MODIFIED\",\"object\":{object},{}}}\n",
                wire::OLD_OBJECT
            );
            let text = Value::String(event);
            Some(format!(
                "send {text} to watch pods{}",
                namespace_of(key.namespace())
            ))
        })
    }
}
