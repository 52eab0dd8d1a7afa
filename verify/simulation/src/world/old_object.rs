//! Creates the fault "old object sent again": a watch sends an object's state a second time.
//!
//! The result is a fault plan, which is a text that the server executes. The text contains an object from the
//! cache, so it is created only when the fault starts.

use serde_json::{Value, json};

use kube_informer::object::Known as _;

use super::{World, path};
use crate::{
    life::{Key, Scope, Store},
    stored::Stored,
    wire,
};

impl<K: Stored> World<'_, K> {
    /// Returns a fault plan that sends the state of a cached object to the informer's watch a second time.
    ///
    /// Selects an object whose cached state is current, and whose revision is lower than the newest revision
    /// that the watch has reported. Returns `None` if there is no such object. Also returns `None` for an
    /// informer with protobuf, because the plan contains an event in JSON.
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
