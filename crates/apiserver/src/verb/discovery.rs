//! Builds the responses of discovery and of `/version`.
//!
//! Guarantees:
//! - discovery contains every served kind and subresource. API groups are sorted by their priorities in
//!   Kubernetes, and the resources of a version by name;
//! - aggregated discovery and the discovery of single versions list the same resources.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::kinds::{DefinitionState, Kind, Kinds, Scope, priority, version};

/// Version of Kubernetes that the server behaves like and that `/version` reports.
const GIT_VERSION: &str = "v1.36.3";

/// Verbs of the kind of a `CustomResourceDefinition`, in the order of Kubernetes.
const DEFINED_VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// Returns the response of `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "embedded",
    })
}

/// Returns the response of `/`: the list of served paths.
pub(crate) fn paths(kinds: &Kinds) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        paths.push(format!("/apis/{}", kind.group));
        paths.push(format!("/apis/{}/{}", kind.group, kind.version));
    }
    paths.extend(
        [
            "/.well-known/openid-configuration",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/openid/v1/jwks",
            "/readyz",
            "/version",
        ]
        .map(str::to_owned),
    );
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}

/// Returns the response of `/api`: the versions of the core group.
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// Returns the response of `/apis`: every API group except the core group.
pub(crate) fn groups(kinds: &Kinds) -> Value {
    let mut names = group_names(kinds);
    // The names of the groups' `APIService` objects decide between equal priorities.
    let object = |group: &str| versions(kinds, group).into_iter().min().map(str::to_owned);
    names.sort_by_cached_key(|name| {
        (
            Reverse(priority::of(name)),
            object(name),
            (*name).to_owned(),
        )
    });
    let groups: Vec<Value> = names
        .iter()
        .filter(|name| !name.is_empty())
        .map(|name| group(kinds, name))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the response of `/apis/<group>`, or `None` if the group is not served.
pub(crate) fn one_group(kinds: &Kinds, name: &str) -> Option<Value> {
    if name.is_empty() || !kinds.iter().any(|kind| kind.group == name) {
        return None;
    }
    let mut found = group(kinds, name);
    found["kind"] = json!("APIGroup");
    found["apiVersion"] = json!("v1");
    Some(found)
}

/// Returns the list of resources of one group version; `None` if the version is not served.
///
/// `group` is empty for the core group.
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let served: Vec<Value> = kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
        .flat_map(plain_resources)
        .collect();
    if served.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": served,
    }))
}

/// Returns the aggregated discovery of `/api` if `core` is true, and otherwise of `/apis`.
pub(crate) fn aggregated(kinds: &Kinds, core: bool) -> Value {
    let mut names = group_names(kinds);
    names.sort_by_key(|name| (Reverse(priority::of(name)), *name));
    let items: Vec<Value> = names
        .iter()
        .filter(|name| name.is_empty() == core)
        .map(|name| {
            let versions: Vec<Value> = versions(kinds, name)
                .iter()
                .map(|version| {
                    let served: Vec<Value> = kinds
                        .iter()
                        .filter(|kind| kind.group == *name && kind.version == *version)
                        .map(aggregated_resource)
                        .collect();
                    json!({"version": version, "resources": served, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn group_names(kinds: &Kinds) -> Vec<&str> {
    let mut names: Vec<&str> = kinds.iter().map(|kind| kind.group.as_str()).collect();
    names.dedup();
    names
}

/// Returns the versions of a group: the preferred version, and then the others from the most stable one on.
fn versions<'a>(kinds: &'a Kinds, group: &str) -> Vec<&'a str> {
    let of_group = || kinds.iter().filter(|kind| kind.group == group);
    let preferred = of_group().find(|kind| kind.preferred);
    let mut versions: Vec<&str> = of_group().map(|kind| kind.version.as_str()).collect();
    versions.sort_by(|one, other| version::compare(one, other));
    versions.dedup();
    if let Some(preferred) = preferred {
        versions.sort_by_key(|version| *version != preferred.version);
    }
    versions
}

fn group(kinds: &Kinds, name: &str) -> Value {
    let versions: Vec<Value> = versions(kinds, name)
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

/// Returns the verbs of a kind in discovery. Without those that create or change objects, if the definition of
/// the kind is being deleted.
fn verbs(kind: &Kind) -> Vec<&str> {
    match kind.definition {
        None => kind.verbs.iter().map(String::as_str).collect(),
        Some(DefinitionState::Established) => DEFINED_VERBS.to_vec(),
        Some(DefinitionState::Terminating) => {
            let remaining = ["delete", "deletecollection", "get", "list", "watch"];
            remaining.to_vec()
        }
    }
}

fn plain_resources(kind: &Kind) -> Vec<Value> {
    let namespaced = kind.scope == Scope::Namespaced;
    let mut own = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        own["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        own["categories"] = json!(kind.categories);
    }
    if let Some(hash) = &kind.storage_version_hash {
        own["storageVersionHash"] = json!(hash);
    }
    let below = kind.subresources.iter().map(|sub| {
        let mut below = json!({
            "name": format!("{}/{}", kind.plural, sub.name),
            "singularName": "",
            "namespaced": namespaced,
            "kind": sub.kind,
            "verbs": sub.verbs,
        });
        if (&sub.group, &sub.version) != (&kind.group, &kind.version) {
            below["group"] = json!(sub.group);
            below["version"] = json!(sub.version);
        }
        below
    });
    std::iter::once(own).chain(below).collect()
}

fn aggregated_resource(kind: &Kind) -> Value {
    let subresources: Vec<Value> = kind
        .subresources
        .iter()
        .map(|sub| {
            json!({
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                "verbs": sub.verbs,
            })
        })
        .collect();
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": if kind.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    resource
}
