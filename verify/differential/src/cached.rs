//! Converts randomly drawn objects into the types of `kube_informer`.
//!
//! Also formats objects and deltas as text, in the same format as the Go programs in
//! `verify/differential/oracle`, which run client-go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use kube_informer::{
    object::{Deleted, Known, Object, ObjectName, SourceId},
    reflector::{Delta, DeltaKind},
};

use crate::sequence::Thing;

/// The Rust type of all cached objects.
pub(crate) type K = ConfigMap;

/// Converts a randomly drawn object into a `ConfigMap`. Its `data` maps each index name to the object's
/// values in this index.
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

/// Converts a randomly drawn object into an [`Object`], the type that informer caches store.
pub(crate) fn object(thing: &Thing) -> Object<K> {
    Object::new(live(thing)).expect("every drawn object has a name")
}

/// Parses the key of a randomly drawn object: `namespace/name`, or a name alone.
pub(crate) fn name(key: &str) -> ObjectName {
    key.parse().expect("every drawn key is a name")
}

/// Returns the deletion of a randomly drawn object, as a watch delivers it.
pub(crate) fn deleted(thing: &Thing) -> Deleted<K> {
    Deleted::Known(object(thing))
}

/// Returns the deletion of a randomly drawn object as a tombstone (`DeletedFinalStateUnknown` in client-go).
pub(crate) fn missed(thing: &Thing) -> Deleted<K> {
    Deleted::FinalStateUnknown {
        name: name(&thing.key),
        last_known: Some(object(thing)),
    }
}

/// Formats an object as `NAME@REVISION`.
pub(crate) fn show(object: &Object<K>) -> String {
    format!("{}@{}", object.object_name(), object.revision())
}

/// Formats the object of a delta, or returns an empty text for a delta without one.
pub(crate) fn show_state(delta: &Delta<K>) -> String {
    match &delta.kind {
        DeltaKind::Deleted(Deleted::FinalStateUnknown { name, last_known }) => {
            let last = last_known.as_ref().map_or_else(|| "nothing".into(), show);
            format!("?{name}({last})")
        }
        _ => delta.object().map(show).unwrap_or_default(),
    }
}

/// Formats a delta: its type, and its object, list or revision.
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

/// Formats a list of deltas, and appends the word `initial` if the deltas belong to the initial list.
pub(crate) fn show_unit(deltas: &[Delta<K>], initial: bool) -> String {
    let deltas: Vec<_> = deltas.iter().map(show_delta).collect();
    let initial = if initial { " initial" } else { "" };
    format!("[{}]{initial}", deltas.join(", "))
}

/// Returns the name of the delta's type in the coverage report.
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
    /// Applies deltas as the store of an informer does.
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
