//! What the server had, at every revision at which it was looked at.

use std::collections::{BTreeMap, BTreeSet};

use kube_core::Resource;
use kube_informer::{Object, ObjectName, Snapshot};
use kube_informer_apiserver::Server;
use serde_json::Value;

use crate::life::Setting;

/// What of an object is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) revision: String,
    pub(crate) uid: String,
    pub(crate) value: String,
    pub(crate) web: bool,
}

/// The objects of a collection.
pub(crate) type States = BTreeMap<ObjectName, State>;

/// What an informer should have had.
pub(crate) struct Truth {
    /// By revision. There are several of one after the server was put back.
    seen: BTreeMap<u64, Vec<States>>,
    /// What has not changed since the informer began.
    lasting: States,
}

impl State {
    /// Of an object of a cache.
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

/// What a cache has.
pub(crate) fn cached<K: Resource>(snapshot: &Snapshot<K>) -> States {
    let states = snapshot
        .iter()
        .map(|object| (object.object_name().clone(), State::of(object)));
    states.collect()
}

/// The objects that don't decode; of packed and lazy ones that is not known
/// before.
pub(crate) fn broken<K>(snapshot: &Snapshot<K>) -> BTreeSet<ObjectName> {
    let known = snapshot.broken().map(|(name, _)| name.clone());
    let kept = snapshot.iter().filter(|object| object.get().is_err());
    known
        .chain(kept.map(|object| object.object_name().clone()))
        .collect()
}

/// All but these.
pub(crate) fn without(mut states: States, names: &BTreeSet<ObjectName>) -> States {
    states.retain(|name, _| !names.contains(name));
    states
}

/// Whatever form they are kept in, bodies are what their handles say.
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

/// What the server has of what an informer is about.
pub(crate) fn on_server(server: &Server, setting: &Setting) -> States {
    let objects = server.list("v1", "pods");
    let states = objects.iter().map(State::of_server);
    states
        .filter(|(name, state)| setting.wants(name.namespace().unwrap_or_default(), state.web))
        .collect()
}

/// Those of one namespace, or all.
pub(crate) fn part(states: &States, namespace: Option<&str>) -> States {
    let wanted = |name: &ObjectName| namespace.is_none() || name.namespace() == namespace;
    let states = states.iter().filter(|(name, _)| wanted(name));
    states
        .map(|(name, state)| (name.clone(), state.clone()))
        .collect()
}

/// What differs, a line each.
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

    /// An informer begins.
    pub(crate) fn begin(&mut self, server: &Server, setting: &Setting) {
        self.note(server, setting);
        self.lasting = on_server(server, setting);
    }

    /// What there was when the informer began, and is still there as it was.
    pub(crate) fn lasting(&self) -> &States {
        &self.lasting
    }

    /// Notes what there is now.
    pub(crate) fn note(&mut self, server: &Server, setting: &Setting) {
        let states = on_server(server, setting);
        self.lasting
            .retain(|name, state| states.get(name) == Some(state));
        let at = self.seen.entry(server.revision()).or_default();
        if at.last() != Some(&states) {
            at.push(states);
        }
    }

    /// Whether a namespace, or all, was like this at a revision; `None` if that was not looked at.
    pub(crate) fn was(
        &self,
        revision: u64,
        namespace: Option<&str>,
        have: &States,
    ) -> Option<bool> {
        let seen = self.seen.get(&revision)?;
        Some(seen.iter().any(|states| part(states, namespace) == *have))
    }

    /// What there was at a revision.
    pub(crate) fn at(&self, revision: u64) -> Option<&States> {
        self.seen.get(&revision)?.last()
    }

    /// Whether a namespace, or all, was like this at any revision.
    pub(crate) fn was_ever(&self, namespace: Option<&str>, have: &States) -> bool {
        let mut seen = self.seen.values().flatten();
        seen.any(|states| part(states, namespace) == *have)
    }
}
