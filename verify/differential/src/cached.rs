//! Objects as the library caches them, and the notation of both sides.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use kube_informer::{
    object::{Deleted, Known, Object, ObjectName, SourceId},
    reflector::{Delta, DeltaKind},
};

use crate::sequence::Thing;

/// The kind of the cached objects. The comparison does not depend on it.
pub(crate) type K = ConfigMap;

/// Creates an object as users receive it. Its data contains the index values.
pub(crate) fn live(thing: &Thing) -> K {
    let (namespace, name) = match thing.key.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, thing.key.as_str()),
    };
    let values = thing.values.iter();
    let values = values.map(|(index, values)| ((*index).to_owned(), values.clone()));
    ConfigMap {
        metadata: ObjectMeta {
            namespace,
            name: Some(name.to_owned()),
            resource_version: Some(thing.revision.clone()),
            ..ObjectMeta::default()
        },
        data: Some(values.collect()),
        ..ConfigMap::default()
    }
}

/// Creates an object as caches store it.
pub(crate) fn object(thing: &Thing) -> Object<K> {
    Object::new(live(thing)).expect("every drawn object has a name")
}

/// Returns the name of a drawn key.
pub(crate) fn name(key: &str) -> ObjectName {
    key.parse().expect("every drawn key is a name")
}

/// Creates a deletion that a watch has delivered.
pub(crate) fn deleted(thing: &Thing) -> Deleted<K> {
    Deleted::Known(object(thing))
}

/// Creates a tombstone: a deletion that no watch has delivered.
pub(crate) fn missed(thing: &Thing) -> Deleted<K> {
    Deleted::FinalStateUnknown {
        name: name(&thing.key),
        last_known: Some(object(thing)),
    }
}

/// Formats an object.
pub(crate) fn show(object: &Object<K>) -> String {
    format!("{}@{}", object.object_name(), object.revision())
}

/// Formats the object of a delta, or its tombstone.
pub(crate) fn show_state(delta: &Delta<K>) -> String {
    match &delta.kind {
        DeltaKind::Deleted(Deleted::FinalStateUnknown { name, last_known }) => {
            let last = last_known.as_ref().map_or_else(|| "nothing".into(), show);
            format!("?{name}({last})")
        }
        _ => delta.object().map(show).unwrap_or_default(),
    }
}

/// Formats a delta.
pub(crate) fn show_delta(delta: &Delta<K>) -> String {
    let kind = delta.delta_type();
    match &delta.kind {
        DeltaKind::ReplacedAll { objects, revision } => {
            let names: Vec<_> = objects.iter().map(|o| format!(" {}", show(o))).collect();
            format!("{kind:?} {revision}:{}", names.concat())
        }
        DeltaKind::Bookmark { revision } => format!("{kind:?} {revision}"),
        DeltaKind::SyncAll => format!("{kind:?}"),
        _ => format!("{kind:?} {}", show_state(delta)),
    }
}

/// Formats the content of one pop.
pub(crate) fn show_unit(deltas: &[Delta<K>], initial: bool) -> String {
    let deltas: Vec<_> = deltas.iter().map(show_delta).collect();
    let initial = if initial { " initial" } else { "" };
    format!("[{}]{initial}", deltas.join(", "))
}

/// Returns the name of a delta's type for counting.
pub(crate) fn delta_label(delta: &Delta<K>) -> &'static str {
    match &delta.kind {
        DeltaKind::Added(_) => "delta Added",
        DeltaKind::Updated(_) => "delta Updated",
        DeltaKind::Deleted(Deleted::Known(_)) => "delta Deleted",
        DeltaKind::Deleted(Deleted::FinalStateUnknown { .. }) => "delta Deleted, a tombstone",
        DeltaKind::Replaced(_) => "delta Replaced",
        DeltaKind::Sync(_) => "delta Sync",
        DeltaKind::ReplacedAll { .. } => "delta ReplacedAll",
        DeltaKind::SyncAll => "delta SyncAll",
        DeltaKind::Bookmark { .. } => "delta Bookmark",
    }
}

/// The content of a store, lent to a queue.
#[derive(Debug, Default)]
pub(crate) struct Store(pub(crate) BTreeMap<ObjectName, Object<K>>);

impl Known<K> for Store {
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        let object = self.0.get(name)?;
        Some((SourceId::default(), object.clone()))
    }

    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        for (name, object) in &self.0 {
            visit(SourceId::default(), name, object);
        }
    }
}

impl Store {
    /// Applies popped deltas, as an informer's store does.
    pub(crate) fn apply(&mut self, deltas: &[Delta<K>]) {
        for delta in deltas {
            match &delta.kind {
                DeltaKind::Deleted(deleted) => {
                    self.0.remove(deleted.object_name());
                }
                _ => {
                    if let Some(object) = delta.object() {
                        self.0.insert(object.object_name().clone(), object.clone());
                    }
                }
            }
        }
    }
}
