//! Creates the objects that each namespace of a complete cluster has: the `ServiceAccount` `default` and the `ConfigMap`
//! `kube-root-ca.crt`.
//!
//! In Kubernetes, two controllers of kube-controller-manager create them. Here it is the write that creates the namespace
//! or removes one of the objects, if [`Builder::default_service_accounts`](crate::Builder::default_service_accounts) is
//! on.
//!
//! Guarantees:
//! - the objects exist when the write of the namespace is visible, or soon after it, each with an event of its own;
//! - in a namespace that is being deleted, no object is created.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::object::Object;
use crate::resource::Resource;
use crate::shared::{Shared, State};
use crate::storage::Entry;

/// Name of the service account of pods that name none.
const ACCOUNT: &str = "default";

/// Name of the map with the certificate of the authority of kube-apiserver.
const ROOT_CA: &str = "kube-root-ca.crt";

/// A certificate whose key does not exist: no pod runs that would verify a server with it.
pub(crate) const CERTIFICATE: &str = include_str!("root_ca.pem");

const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Returns the objects of a namespace, without their uids and times.
pub(crate) fn content(namespace: &str, root_ca: &str) -> [Value; 2] {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": namespace},
    });
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": ROOT_CA,
            "namespace": namespace,
            "annotations": {"kubernetes.io/description": DESCRIPTION},
        },
        "data": {"ca.crt": root_ca},
    });
    [account, map]
}

/// Creates what is missing in a namespace after the object with this key was created or removed.
pub(super) fn complete(shared: &Shared, state: &mut State, resource: &Resource, key: &str) {
    let Some(root_ca) = shared.settings.root_ca else {
        return;
    };
    let kind = &resource.kind;
    let namespace = match key.split_once('/') {
        None if kind.is_builtin("namespaces") => key,
        Some((namespace, ACCOUNT)) if kind.is_builtin("serviceaccounts") => namespace,
        Some((namespace, ROOT_CA)) if kind.is_builtin("configmaps") => namespace,
        _ => return,
    };
    fill(shared, state, namespace, root_ca);
}

/// Creates what is missing in all namespaces, after a start.
pub(super) fn complete_all(shared: &Shared) {
    let Some(namespaces) = &shared.builtin.namespaces else {
        return;
    };
    let mut state = shared.lock();
    let stored = state.newest_below(namespaces.collection, "");
    let keys: Vec<_> = stored.map(|entry| Arc::clone(&entry.key)).collect();
    for key in keys {
        complete(shared, &mut state, namespaces, &key);
    }
}

fn fill(shared: &Shared, state: &mut State, namespace: &str, root_ca: &str) {
    let namespaces = shared.builtin.namespaces.as_ref();
    let is_active = namespaces.is_some_and(|namespaces| {
        let entry = state.newest(namespaces.collection, namespace);
        entry.is_some_and(|entry| !entry.is_in_phase(namespaces, "Terminating"))
    });
    if !is_active {
        return;
    }
    let registry = shared.registry();
    for value in content(namespace, root_ca) {
        let text = |member: &str| value[member].as_str().unwrap_or_default();
        let Some(resource) = registry.by_kind(text("apiVersion"), text("kind")) else {
            continue;
        };
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        let key: Arc<str> = resource.key(Some(namespace), name).into();
        if state.newest(resource.collection, &key).is_some() {
            continue;
        }
        let mut object = Object::stored(value.as_object().cloned().unwrap_or_default());
        let now = shared.settings.clock.now().to_string();
        object.set_meta("creationTimestamp", Some(json!(now)));
        object.set_meta("uid", Some(json!(state.new_uid())));
        resource.complete(&mut object);
        let revision = state.next_revision();
        let entry = Entry::new(resource, Arc::clone(&key), object.members(), revision);
        shared.commit(state, resource, &key, Some(Arc::new(entry)));
    }
}
