//! Defines the objects that the run writes, and [`Selection`], the set of objects that an informer observes.
//!
//! Every write stores a new number in an annotation and a label of the object. Two states with the same
//! number are therefore the result of the same write, even if a restored server uses a revision for the
//! second time.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_client::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use kube_core::{ObjectMeta, PartialObjectMeta, Resource};
use serde_json::{Value, json};

/// Label and annotation with the number of the write.
pub(crate) const NUMBER: &str = "number";

/// Label with the name of the pod's node.
const NODE: &str = "node";

/// Namespaces of the objects.
pub(crate) const NAMESPACES: [&str; 5] = ["soak-0", "soak-1", "soak-2", "soak-3", "soak-4"];

/// The kinds of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Pod,
    ConfigMap,
    Secret,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Pod, Self::ConfigMap, Self::Secret];

    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::Pod => ApiResource::erase::<Pod>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Secret => ApiResource::erase::<Secret>(&()),
        }
    }

    /// Returns an object for a create request.
    pub(crate) fn object(self, name: &str, node: &str, number: u64) -> Value {
        let resource = self.resource();
        let text = number.to_string();
        let mut object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {
                "name": name, "annotations": {NUMBER: text},
                "labels": {NUMBER: text, "parity": parity(number)},
            },
        });
        match self {
            Self::Pod => {
                object["metadata"]["labels"][NODE] = node.into();
                object["spec"] = json!({
                    "nodeName": node, "containers": [{"name": "main", "image": "example.com/image:1"}],
                });
            }
            Self::ConfigMap => object["data"] = json!({"text": "some text ".repeat(20)}),
            Self::Secret => object["stringData"] = json!({"text": "some text ".repeat(5)}),
        }
        object
    }
}

/// Returns a merge patch that stores the number of a write.
pub(crate) fn patch(number: u64) -> Value {
    let text = number.to_string();
    json!({"metadata": {
        "annotations": {NUMBER: text}, "labels": {NUMBER: text, "parity": parity(number)},
    }})
}

fn parity(number: u64) -> &'static str {
    if number.is_multiple_of(2) {
        "even"
    } else {
        "odd"
    }
}

/// The state of an object: its uid, its revision and the number of its last write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) uid: String,
    pub(crate) revision: String,
    pub(crate) number: String,
}

/// States by `NAMESPACE/NAME`.
pub(crate) type States = BTreeMap<String, State>;

/// The objects that an informer selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All objects of the kind.
    All,
    /// The objects in these namespaces, with one source per namespace.
    Namespaces(Vec<&'static str>),
    /// The pods of a node.
    Node(String),
    /// The objects whose last write has an even number. An update can therefore add an object to the
    /// selection, or remove an object.
    Even,
}

/// An object as the server lists it.
#[derive(Clone, Debug)]
struct Listed {
    key: String,
    namespace: String,
    node: String,
    state: State,
}

/// A consistent list of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Truth(BTreeMap<Kind, Vec<Listed>>);

impl Truth {
    /// Lists the newest state of each kind.
    ///
    /// # Errors
    /// Returns an error if the server does not respond.
    pub(crate) async fn read(client: &Client) -> Result<Self> {
        let mut lists = BTreeMap::new();
        for kind in Kind::ALL {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
            let list = api.list_metadata(&ListParams::default()).await;
            let list = list.with_context(|| format!("can't list {kind:?}"))?;
            let listed = list.items.iter().filter_map(Listed::of).collect();
            lists.insert(kind, listed);
        }
        Ok(Self(lists))
    }

    /// Returns the objects that an informer must have.
    pub(crate) fn selected(&self, kind: Kind, selection: &Selection) -> States {
        let all = self.0.get(&kind).into_iter().flatten();
        let selected = all.filter(|listed| match selection {
            Selection::All => true,
            Selection::Namespaces(namespaces) => namespaces.contains(&listed.namespace.as_str()),
            Selection::Node(node) => listed.node == *node,
            Selection::Even => listed
                .state
                .number
                .parse()
                .is_ok_and(|n: u64| n.is_multiple_of(2)),
        });
        let state = |listed: &Listed| (listed.key.clone(), listed.state.clone());
        selected.map(state).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

impl Listed {
    /// Returns `None` for an object that the server created itself.
    fn of(object: &PartialObjectMeta<DynamicObject>) -> Option<Self> {
        let label = |name: &str| object.labels().get(name).cloned();
        Some(Self {
            key: key(&object.metadata),
            namespace: object.namespace().unwrap_or_default(),
            node: label(NODE).unwrap_or_default(),
            state: state(&object.metadata)?,
        })
    }
}

/// Returns `NAMESPACE/NAME`.
fn key(meta: &ObjectMeta) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", part(&meta.namespace), part(&meta.name))
}

/// Returns the state of an object that this program has written, otherwise `None`.
pub(crate) fn state(meta: &ObjectMeta) -> Option<State> {
    Some(State {
        uid: meta.uid.clone().unwrap_or_default(),
        revision: meta.resource_version.clone().unwrap_or_default(),
        number: meta.annotations.as_ref()?.get(NUMBER)?.clone(),
    })
}

/// Returns the state of a decoded object, as [`state`] does.
pub(crate) fn state_of<K: Resource>(object: &K) -> Option<State> {
    state(object.meta())
}
