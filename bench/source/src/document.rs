//! Generates the JSON documents that describe the server to a client: version, health and discovery.
//!
//! Guarantees: discovery contains only the kind of the served objects.

use serde_json::{Value, json};

use crate::kind::Kind;

/// Returns the JSON document at the URL path `path`, or `None` for an unknown path.
pub(crate) fn at(path: &str, kind: &Kind) -> Option<Value> {
    let group = || group(kind);
    match path.trim_end_matches('/') {
        "/version" => Some(json!({
            "major": "1",
            "minor": "36",
            "gitVersion": "v1.36.0",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "2026-04-22T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "linux/amd64",
        })),
        "/healthz" | "/livez" | "/readyz" => Some(json!("ok")),
        "/api" => {
            let versions: Vec<_> = kind.group.is_empty().then_some("v1").into_iter().collect();
            Some(
                json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}),
            )
        }
        "/apis" => {
            let groups: Vec<_> = (!kind.group.is_empty()).then(group).into_iter().collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        path if path == format!("/apis/{}", kind.group) => {
            let mut group = group();
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            Some(group)
        }
        path if path == kind.folder().trim_end_matches('/') => {
            let short_names: Vec<_> = Some(kind.short_name)
                .into_iter()
                .filter(|name| !name.is_empty())
                .collect();
            let resource = json!({
                "name": kind.plural,
                "singularName": kind.singular,
                "namespaced": true,
                "kind": kind.kind,
                "verbs": ["list", "watch"],
                "shortNames": short_names,
            });
            Some(resources(&kind.api_version(), &json!([resource])))
        }
        _ => None,
    }
}

fn group(kind: &Kind) -> Value {
    let version = json!({"groupVersion": kind.api_version(), "version": kind.version});
    json!({"name": kind.group, "versions": [version], "preferredVersion": version})
}

fn resources(group_version: &str, resources: &Value) -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}
