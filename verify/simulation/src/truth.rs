//! Records the states of the server's objects, and compares them with the states in caches and events.
//!
//! The states are recorded by revision, after each change that the simulation makes.

use std::collections::{BTreeMap, BTreeSet};

use kube_core::Resource;
use kube_informer::{Object, ObjectName, Snapshot};
use kube_informer_apiserver::Server;
use serde_json::Value;

use crate::life::Setting;

/// The parts of an object that the simulation compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) revision: String,
    pub(crate) uid: String,
    pub(crate) value: String,
    pub(crate) web: bool,
}

/// The states of several objects, by object name.
pub(crate) type States = BTreeMap<ObjectName, State>;

/// The recorded states of the server, with which the simulation compares an informer's cache.
pub(crate) struct Truth {
    /// The server's states by revision.
    ///
    /// A server that is restored to an older revision assigns the later revisions a second time. A revision
    /// can therefore have several entries.
    seen: BTreeMap<u64, Vec<States>>,
    /// Objects that existed when the informer started, and have not changed since. A synced informer must
    /// have all of these objects.
    lasting: States,
}

impl State {
    /// Returns the compared parts of a cached or delivered object.
    pub(crate) fn of<K: Resource>(object: &Object<K>) -> Self {
        let labels = object.labels();
        Self {
            revision: object.revision().to_string(),
            uid: object.uid().to_owned(),
            value: labels.get("v").unwrap_or_default().to_owned(),
            web: labels.get("app") == Some("web"),
        }
    }

    fn of_server(object: &Value) -> (ObjectName, Self) {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let state = Self {
            revision: text(&metadata["resourceVersion"]),
            uid: text(&metadata["uid"]),
            value: text(&metadata["labels"]["v"]),
            web: metadata["labels"]["app"] == "web",
        };
        let namespace = text(&metadata["namespace"]);
        let name = ObjectName::new(Some(&namespace), &text(&metadata["name"]));
        (name, state)
    }
}

/// Returns the state of each object in a snapshot of the cache.
pub(crate) fn cached<K: Resource>(snapshot: &Snapshot<K>) -> States {
    let states = snapshot
        .iter()
        .map(|object| (object.object_name().clone(), State::of(object)));
    states.collect()
}

/// Decodes all objects of a snapshot, and returns the names of those that fail to decode.
pub(crate) fn broken<K>(snapshot: &Snapshot<K>) -> BTreeSet<ObjectName> {
    let known = snapshot.broken().map(|(name, _)| name.clone());
    let kept = snapshot.iter().filter(|object| object.get().is_err());
    known
        .chain(kept.map(|object| object.object_name().clone()))
        .collect()
}

/// Returns `states` without the states of the objects in `names`.
pub(crate) fn without(mut states: States, names: &BTreeSet<ObjectName>) -> States {
    states.retain(|name, _| !names.contains(name));
    states
}

/// Checks that each decoded object has the same metadata as its [`Object`] handle in the snapshot.
///
/// Compares the name, the namespace, the uid, the revision and the labels. Skips objects that fail to decode.
pub(crate) fn check_bodies<K: Resource>(snapshot: &Snapshot<K>) -> Result<(), String> {
    for object in snapshot.iter() {
        let Ok(body) = object.get() else {
            continue;
        };
        let (name, meta) = (object.object_name(), body.meta());
        let labels = meta.labels.iter().flatten();
        let labels = labels.map(|(key, value)| (key.as_str(), value.as_str()));
        let is_same = meta.name.as_deref() == Some(name.name())
            && meta.namespace.as_deref() == name.namespace()
            && meta.uid.as_deref() == Some(object.uid())
            && meta.resource_version == Some(object.revision().to_string())
            && labels.eq(object.labels().iter());
        if !is_same {
            return Err(format!("{object:?} has the body of another state"));
        }
    }
    Ok(())
}

/// Returns the current state on the server of each object that the informer observes.
pub(crate) fn on_server(server: &Server, setting: &Setting) -> States {
    let objects = server.list("v1", "pods");
    let states = objects.iter().map(State::of_server);
    states
        .filter(|(name, state)| setting.wants(name.namespace().unwrap_or_default(), state.web))
        .collect()
}

/// Returns the states of the objects in `namespace`, or all states for `None`.
pub(crate) fn part(states: &States, namespace: Option<&str>) -> States {
    let wanted = |name: &ObjectName| namespace.is_none() || name.namespace() == namespace;
    let states = states.iter().filter(|(name, _)| wanted(name));
    states
        .map(|(name, state)| (name.clone(), state.clone()))
        .collect()
}

/// Returns a line for each object whose states in `have` and `want` differ.
pub(crate) fn difference(have: &States, want: &States) -> String {
    let names: BTreeSet<_> = have.keys().chain(want.keys()).collect();
    let lines = names.into_iter().filter_map(|name| {
        let (have, want) = (have.get(name), want.get(name));
        (have != want).then(|| format!("{name}: {have:?} instead of {want:?}"))
    });
    lines.collect::<Vec<_>>().join("\n    ")
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self {
            seen: BTreeMap::new(),
            lasting: States::new(),
        }
    }

    /// Records the server's current state before an informer starts.
    pub(crate) fn begin(&mut self, server: &Server, setting: &Setting) {
        self.note(server, setting);
        self.lasting = on_server(server, setting);
    }

    pub(crate) fn lasting(&self) -> &States {
        &self.lasting
    }

    /// Records the server's current state under the server's current revision.
    pub(crate) fn note(&mut self, server: &Server, setting: &Setting) {
        let states = on_server(server, setting);
        self.lasting
            .retain(|name, state| states.get(name) == Some(state));
        let at = self.seen.entry(server.revision()).or_default();
        if at.last() != Some(&states) {
            at.push(states);
        }
    }

    /// Returns whether the objects in `namespace` had the states `have` at `revision`.
    ///
    /// If `namespace` is `None`, compares the objects of all namespaces. Returns `None` if no state of the
    /// server was recorded at `revision`.
    pub(crate) fn was(
        &self,
        revision: u64,
        namespace: Option<&str>,
        have: &States,
    ) -> Option<bool> {
        let seen = self.seen.get(&revision)?;
        Some(seen.iter().any(|states| part(states, namespace) == *have))
    }

    /// Returns the last state that was recorded for `revision`, if any.
    pub(crate) fn at(&self, revision: u64) -> Option<&States> {
        self.seen.get(&revision)?.last()
    }

    /// Returns whether the server had the state `have` at any recorded revision.
    pub(crate) fn was_ever(&self, namespace: Option<&str>, have: &States) -> bool {
        let mut seen = self.seen.values().flatten();
        seen.any(|states| part(states, namespace) == *have)
    }
}
