//! The server's state at every revision at which it was recorded.

use std::collections::{BTreeMap, BTreeSet};

use kube_core::Resource;
use kube_informer::{Object, ObjectName, Snapshot};
use kube_informer_apiserver::Server;
use serde_json::Value;

use crate::life::Setting;

/// The compared parts of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) revision: String,
    pub(crate) uid: String,
    pub(crate) value: String,
    pub(crate) web: bool,
}

/// The objects of a collection.
pub(crate) type States = BTreeMap<ObjectName, State>;

/// The expected states of an informer.
pub(crate) struct Truth {
    /// States by revision. A revision has several states after the server was restored to an older one.
    seen: BTreeMap<u64, Vec<States>>,
    /// Objects that have not changed since the informer started.
    lasting: States,
}

impl State {
    /// Returns the compared parts of a cached object.
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

/// Returns the states in a cache.
pub(crate) fn cached<K: Resource>(snapshot: &Snapshot<K>) -> States {
    let states = snapshot
        .iter()
        .map(|object| (object.object_name().clone(), State::of(object)));
    states.collect()
}

/// Returns the objects that fail to decode; for packed and lazy objects this is known only after a read.
pub(crate) fn broken<K>(snapshot: &Snapshot<K>) -> BTreeSet<ObjectName> {
    let known = snapshot.broken().map(|(name, _)| name.clone());
    let kept = snapshot.iter().filter(|object| object.get().is_err());
    known
        .chain(kept.map(|object| object.object_name().clone()))
        .collect()
}

/// Returns the states without these names.
pub(crate) fn without(mut states: States, names: &BTreeSet<ObjectName>) -> States {
    states.retain(|name, _| !names.contains(name));
    states
}

/// Checks that bodies match their handles in every representation.
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

/// Returns the states of the observed objects on the server.
pub(crate) fn on_server(server: &Server, setting: &Setting) -> States {
    let objects = server.list("v1", "pods");
    let states = objects.iter().map(State::of_server);
    states
        .filter(|(name, state)| setting.wants(name.namespace().unwrap_or_default(), state.web))
        .collect()
}

/// Returns the states in one namespace, or all.
pub(crate) fn part(states: &States, namespace: Option<&str>) -> States {
    let wanted = |name: &ObjectName| namespace.is_none() || name.namespace() == namespace;
    let states = states.iter().filter(|(name, _)| wanted(name));
    states
        .map(|(name, state)| (name.clone(), state.clone()))
        .collect()
}

/// Returns the differences, one line each.
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

    /// Records the start of an informer.
    pub(crate) fn begin(&mut self, server: &Server, setting: &Setting) {
        self.note(server, setting);
        self.lasting = on_server(server, setting);
    }

    /// Returns the objects that existed when the informer started and have not changed.
    pub(crate) fn lasting(&self) -> &States {
        &self.lasting
    }

    /// Records the current state.
    pub(crate) fn note(&mut self, server: &Server, setting: &Setting) {
        let states = on_server(server, setting);
        self.lasting
            .retain(|name, state| states.get(name) == Some(state));
        let at = self.seen.entry(server.revision()).or_default();
        if at.last() != Some(&states) {
            at.push(states);
        }
    }

    /// Returns whether a namespace, or everything, had this state at a revision; `None` if none was recorded.
    pub(crate) fn was(
        &self,
        revision: u64,
        namespace: Option<&str>,
        have: &States,
    ) -> Option<bool> {
        let seen = self.seen.get(&revision)?;
        Some(seen.iter().any(|states| part(states, namespace) == *have))
    }

    /// Returns the recorded state at a revision.
    pub(crate) fn at(&self, revision: u64) -> Option<&States> {
        self.seen.get(&revision)?.last()
    }

    /// Returns whether a namespace, or everything, had this state at any revision.
    pub(crate) fn was_ever(&self, namespace: Option<&str>, have: &States) -> bool {
        let mut seen = self.seen.values().flatten();
        seen.any(|states| part(states, namespace) == *have)
    }
}
