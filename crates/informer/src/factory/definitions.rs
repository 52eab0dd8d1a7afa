//! Watches `CustomResourceDefinition` objects, and reports their state to the informers of custom resources.
//!
//! The state is whether a definition exists or was deleted. One informer caches the metadata of all
//! definitions. This module does not decide how an informer reacts to the state.

use std::{collections::BTreeMap, sync::Arc};

use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    SharedInformerFactory, discovery::qualified, lifecycle::Hold, options::InformerOptions,
    registry::Key, request::Request,
};
use crate::{
    controller::Definition,
    event_handler::{Event, EventHandler},
    indexer::Indexer,
    object::ObjectName,
    selector::Selector,
    shared_informer::{SharedInformer, Stopped},
};

/// The cached metadata of a `CustomResourceDefinition`.
type Metadata = PartialObjectMeta<DynamicObject>;

/// Keeps the informer of definitions running, and receives the state of one definition.
pub(super) type Followed = (Hold<Metadata>, watch::Receiver<Definition>);

#[derive(Default)]
pub(super) struct Definitions {
    /// Sender of the state of each `CustomResourceDefinition` to which an informer has subscribed.
    ///
    /// The key is the name of the `CustomResourceDefinition`, `<plural>.<group>`.
    followed: Arc<Mutex<BTreeMap<String, watch::Sender<Definition>>>>,
    /// The informer on which [`Hearing`] is registered; `None` before the registration.
    heard: Mutex<Option<SharedInformer<Metadata>>>,
}

/// Event handler that sends the state of a `CustomResourceDefinition` to the informers of the defined kind.
///
/// The handler reads the state from the cache `definitions`, so the state is never older than the event.
struct Hearing {
    followed: Arc<Mutex<BTreeMap<String, watch::Sender<Definition>>>>,
    definitions: Indexer<Metadata>,
}

impl EventHandler<Metadata> for Hearing {
    async fn handle(&mut self, event: Event<Metadata>) {
        let Some(name) = event.object_name() else {
            return;
        };
        if let Some(told) = self.followed.lock().get(name.name()) {
            told.send_replace(known(&self.definitions, name).unwrap_or(Definition::Deleted));
        }
    }
}

fn known(definitions: &Indexer<Metadata>, name: &ObjectName) -> Option<Definition> {
    let definition = definitions.get(name);
    definition.map(|_| Definition::There)
}

fn definition_kind() -> ApiResource {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    ApiResource::from_gvk_with_plural(&gvk, "customresourcedefinitions")
}

impl Definitions {
    /// Registers the event handler with the informer `definitions`, unless the handler is already registered.
    fn hear(&self, definitions: &SharedInformer<Metadata>) -> Result<(), Stopped> {
        let mut heard = self.heard.lock();
        if heard
            .as_ref()
            .is_some_and(|heard| heard.is_same(definitions))
        {
            return Ok(());
        }
        let hearing = Hearing {
            followed: Arc::clone(&self.followed),
            definitions: definitions.indexer(),
        };
        let handler = definitions.handler(hearing).name("definitions of kinds");
        handler.register()?;
        *heard = Some(definitions.clone());
        Ok(())
    }

    fn follow(
        &self,
        name: &ObjectName,
        definitions: &Indexer<Metadata>,
    ) -> watch::Receiver<Definition> {
        let mut followed = self.followed.lock();
        followed.retain(|_, told| told.receiver_count() > 0);
        let told = followed
            .entry(name.name().to_owned())
            .or_insert_with(|| watch::Sender::new(known(definitions, name).unwrap_or_default()));
        told.subscribe()
    }
}

impl SharedInformerFactory {
    /// Returns a function that subscribes to the `CustomResourceDefinition` of the kind in `key`.
    ///
    /// The returned function returns `None` in each of these cases:
    /// - the factory does not watch definitions;
    /// - the factory has been dropped or shut down;
    /// - no `CustomResourceDefinition` can define the kind.
    pub(super) fn will_follow(
        &self,
        key: &Key,
    ) -> impl FnOnce() -> Option<Followed> + Send + Sync + 'static {
        // A weak reference: the registry stores this function, and must not keep its factory alive.
        let (factory, key) = (Arc::downgrade(&self.inner), key.clone());
        move || {
            let inner = factory.upgrade()?;
            Self { inner }.followed(&key)
        }
    }

    fn followed(&self, key: &Key) -> Option<Followed> {
        let definitions = self.inner.definitions.as_ref()?;
        let ApiResource { group, plural, .. } = &key.kind;
        let kind = definition_kind();
        // A custom resource's group contains a dot. The group of the definitions themselves is excluded.
        if !group.contains('.') || *group == kind.group {
            return None;
        }
        let everything = InformerOptions::new()
            .labels(Selector::everything())
            .fields("");
        let request = Request::of_kind(kind, everything, Some(false));
        let informer = self.hold_requested(request);
        // The registration fails only after the shutdown of the factory.
        definitions.hear(&informer).ok()?;
        let name = ObjectName::new(None, &qualified(plural, group));
        let told = definitions.follow(&name, &informer.indexer());
        Some((informer, told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexer::{self, Indexers};

    #[test]
    fn a_subscription_starts_with_the_known_state_and_is_removed_when_dropped() {
        let (indexer, mut writer) = indexer::new(Indexers::<Metadata>::new()).unwrap();
        let definition = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
        });
        writer
            .add(serde_json::from_value(definition).unwrap())
            .unwrap();
        let definitions = Definitions::default();
        let [known, unknown] =
            ["widgets.example.com", "gadgets.example.com"].map(ObjectName::cluster);
        let widgets = definitions.follow(&known, &indexer);
        assert_eq!(*widgets.borrow(), Definition::There);
        let gadgets = definitions.follow(&unknown, &indexer);
        assert_eq!(
            *gadgets.borrow(),
            Definition::Unknown,
            "the kind may have no definition"
        );
        assert_eq!(definitions.followed.lock().len(), 2);
        drop(widgets);
        let _again = definitions.follow(&unknown, &indexer);
        assert_eq!(definitions.followed.lock().len(), 1);
    }
}
