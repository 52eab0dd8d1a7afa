//! A store without a server: objects of two kinds, on which the decisions of a graph are carried out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::garbage::{Change, Found, Graph, Objects, Place, Plan, Policy, Seen, Target};
use crate::kinds::Kinds;
use crate::resource::{Registry, Resource};

/// A store with its graph. An object with a `/` in its name is a `ConfigMap`, and any other is a `Node`.
pub(super) struct World {
    registry: Registry,
    graph: Graph,
    /// The metadata of the objects, by key.
    pub(super) objects: BTreeMap<String, Value>,
}

impl Default for World {
    fn default() -> World {
        World {
            registry: Registry::new(&Kinds::builtin()),
            graph: Graph::default(),
            objects: BTreeMap::new(),
        }
    }
}

/// Returns the finalizer of a policy, if it has one.
fn finalizer(policy: Policy) -> Option<&'static str> {
    match policy {
        Policy::Background => None,
        Policy::Foreground => Some("foregroundDeletion"),
        Policy::Orphan => Some("orphan"),
    }
}

fn seen(metadata: &Value) -> Seen {
    Seen::read(metadata.to_string().as_bytes()).unwrap()
}

/// Parses an owner reference: `n/a`, `n/a!` if it blocks, or `name:uid`. `cm/name` is a `ConfigMap` without a
/// namespace.
///
/// No object of the kind `Wrong` exists, and the kind `Unserved` is not served.
fn reference(text: &str) -> Value {
    let (text, blocks) = match text.strip_suffix('!') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (path, uid) = text.split_once(':').unwrap_or((text, text));
    let (kind, name) = match path.split_once('/') {
        Some((kind @ ("Unserved" | "Wrong"), name)) => (kind, name),
        Some((_, name)) => ("ConfigMap", name),
        None if uid.contains('/') => ("ConfigMap", path),
        None => ("Node", path),
    };
    json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "blockOwnerDeletion": blocks})
}

impl World {
    /// Carries out a command: `create`, `refer`, `hold`, `release`, `finalize`, `delete` or `restart`.
    pub(super) fn command(&mut self, line: &str) {
        let mut words = line.split(' ').filter(|word| *word != "<");
        let verb = words.next().unwrap();
        let Some(key) = words.next() else {
            assert_eq!(verb, "restart");
            return self.restart();
        };
        let references: Vec<Value> = words.clone().map(reference).collect();
        let mut object = self.objects.get(key).cloned();
        match verb {
            "create" => object = Some(json!({"uid": key, "ownerReferences": references})),
            "delete" => {
                let policy = match words.next() {
                    Some("foreground") => Policy::Foreground,
                    Some("orphan") => Policy::Orphan,
                    _ => Policy::Background,
                };
                return self.delete(key, policy);
            }
            _ => {}
        }
        let mut object = object.unwrap();
        match verb {
            "refer" => object["ownerReferences"] = references.into(),
            "hold" => object["finalizers"] = json!(["example.com/x"]),
            "finalize" => object["finalizers"] = json!([words.next().unwrap()]),
            "release" => return self.unfinalize(key, "example.com/x"),
            _ => {}
        }
        self.store(key, Some(object));
    }

    /// Carries out all decisions, and returns them as lines.
    pub(super) fn collect(&mut self) -> String {
        let mut trace = String::new();
        let mut graph = std::mem::take(&mut self.graph);
        for _ in 0..100_000 {
            let Some((task, plan)) = graph.next(self) else {
                self.graph = graph;
                return trace;
            };
            match plan {
                Plan::Nothing => {}
                Plan::Later => {
                    graph.failed(task, Instant::now());
                }
                Plan::Write {
                    place,
                    uid,
                    changes,
                } => {
                    self.graph = graph;
                    for change in changes {
                        let key = &*place.key;
                        assert_eq!(self.objects[key]["uid"], *uid, "{key} exists");
                        writeln!(trace, "{}", self.make(key, &change)).unwrap();
                    }
                    graph = std::mem::take(&mut self.graph);
                    graph.succeeded(task);
                }
            }
        }
        panic!("the collection does not end:\n{trace}");
    }

    pub(super) fn left(&self) -> Vec<String> {
        let objects = self.objects.iter();
        objects.map(|(key, metadata)| show(key, metadata)).collect()
    }

    pub(super) fn nodes_without_relations(&self) -> usize {
        self.graph.nodes.values().filter(|it| it.is_alone()).count()
    }

    pub(super) fn restart(&mut self) {
        self.graph.clear();
        for (key, metadata) in &self.objects {
            let place = self.place(key);
            self.graph.observe(&place, &seen(metadata));
        }
    }

    fn make(&mut self, key: &str, change: &Change) -> String {
        let mut object = self.objects[key].clone();
        match change {
            Change::Delete(policy) => {
                self.delete(key, *policy);
                format!("delete {key} {policy:?}")
            }
            Change::RemoveReferences(uids) => {
                let references = object["ownerReferences"].as_array_mut().unwrap();
                references.retain(|it| !uids.iter().any(|uid| it["uid"] == **uid));
                self.store(key, Some(object));
                format!("unrefer {key} < {}", uids.join(" "))
            }
            Change::Unblock => {
                let references = object["ownerReferences"].as_array_mut().unwrap();
                for reference in references {
                    reference["blockOwnerDeletion"] = json!(false);
                }
                self.store(key, Some(object));
                format!("unblock {key}")
            }
            Change::RemoveFinalizer(finalizer) => {
                self.unfinalize(key, finalizer);
                format!("unfinalize {key} {finalizer}")
            }
            Change::Report { owner, .. } => format!("report {key} < {owner}"),
        }
    }

    fn delete(&mut self, key: &str, policy: Policy) {
        let mut object = self.objects[key].clone();
        let mut finalizers: Vec<Value> = match object["finalizers"].as_array() {
            Some(finalizers) => finalizers.clone(),
            None => Vec::new(),
        };
        finalizers.retain(|it| *it != "foregroundDeletion" && *it != "orphan");
        finalizers.extend(finalizer(policy).map(Value::from));
        let stays = !finalizers.is_empty();
        object["finalizers"] = finalizers.into();
        object["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
        self.store(key, stays.then_some(object));
    }

    fn unfinalize(&mut self, key: &str, finalizer: &str) {
        let mut object = self.objects[key].clone();
        let finalizers = object["finalizers"].as_array_mut().unwrap();
        finalizers.retain(|it| it != finalizer);
        let ends = finalizers.is_empty() && !object["deletionTimestamp"].is_null();
        self.store(key, (!ends).then_some(object));
    }

    fn store(&mut self, key: &str, object: Option<Value>) {
        if let Some(object) = object {
            self.graph.observe(&self.place(key), &seen(&object));
            self.objects.insert(key.to_owned(), object);
        } else {
            self.graph.remove(key);
            self.objects.remove(key);
        }
    }

    fn place(&self, key: &str) -> Place {
        Place::new(self.resource(key.contains('/')), &Arc::from(key))
    }

    fn resource(&self, is_namespaced: bool) -> &Resource {
        let plural = if is_namespaced { "configmaps" } else { "nodes" };
        self.registry.by_path("", "v1", plural).unwrap()
    }

    fn object(&self, key: &str) -> Option<(Place, Seen)> {
        let object = self.objects.get(key)?;
        Some((self.place(key), seen(object)))
    }
}

impl Objects for World {
    fn find(&self, target: &Target, namespace: Option<&str>) -> Found {
        let key = match (&*target.kind, namespace) {
            ("Unserved", _) => return Found::NoKind,
            ("Wrong", _) => return Found::NoObject,
            ("ConfigMap", None) => return Found::NoNamespace,
            ("ConfigMap", Some(namespace)) => format!("{namespace}/{}", target.name),
            _ => target.name.clone(),
        };
        let found = self.object(&key);
        found.map_or(Found::NoObject, |(place, seen)| Found::Object(place, seen))
    }

    fn find_elsewhere(&self, target: &Target, uid: &str) -> Option<(Place, Seen)> {
        let (_, name) = uid.split_once('/')?;
        let found = self.object(uid).filter(|_| name == target.name);
        found.filter(|_| target.kind == "ConfigMap")
    }
}

/// Returns the key of an object with its references, and `†` if it is being deleted.
fn show(key: &str, metadata: &Value) -> String {
    let mark = if metadata["deletionTimestamp"].is_null() {
        ""
    } else {
        "†"
    };
    let owners = metadata["ownerReferences"].as_array();
    let owners = owners.into_iter().flatten();
    let owners: Vec<&str> = owners.filter_map(|it| it["uid"].as_str()).collect();
    match owners.as_slice() {
        [] => format!("{key}{mark}"),
        owners => format!("{key}{mark}({})", owners.join(",")),
    }
}
