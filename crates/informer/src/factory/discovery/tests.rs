//! Tests the parsing of kind names and discovery documents, without a server.

use super::*;

/// A discovery document. Two groups have a `Widget`. The API server of the third group does not respond
/// (`Stale`).
const DOCUMENT: &str = r#"{
  "kind": "APIGroupDiscoveryList",
  "items": [
    {"metadata": {"name": "v1.example.com"}, "versions": [
      {"version": "v2", "resources": [
        {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Namespaced", "singularResource": "widget", "verbs": ["list", "watch"], "shortNames": ["wi"]}
      ]},
      {"version": "v1", "resources": [
        {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Namespaced", "singularResource": "widget", "verbs": ["list"]},
        {"resource": "gears", "responseKind": {"kind": "CogWheel"}, "scope": "Cluster", "verbs": ["get"]},
        {"resource": "nameless"}
      ]}
    ]},
    {"metadata": {"name": "example.com"}, "versions": [
      {"version": "v1", "resources": [
        {"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Cluster", "verbs": ["create"]},
        {"resource": "wi", "responseKind": {"kind": "Wi"}, "scope": "Cluster"}
      ]}
    ]},
    {"metadata": {"name": "metrics.k8s.io"}, "versions": [
      {"version": "v1beta1", "freshness": "Stale"}
    ]}
  ]
}"#;

fn look_up(name: &str) -> Option<String> {
    let mut catalogue = Catalogue::default();
    catalogue.add(DOCUMENT.as_bytes()).unwrap();
    let wanted = Wanted::all(name);
    let found = catalogue
        .find(&wanted, Discovered::is_named)
        .or_else(|| catalogue.find(&wanted, Discovered::is_short))?;
    let ApiResource {
        api_version, kind, ..
    } = found.resource;
    let scope = if found.namespaced { "" } else { " (cluster)" };
    Some(format!("{api_version} {kind}{scope}"))
}

#[test]
fn a_name_is_found_in_order_and_in_the_version_its_group_prefers() {
    for (name, found) in [
        ("widgets", "v1.example.com/v2 Widget"),
        ("WIDGET", "v1.example.com/v2 Widget"),
        ("CogWheel", "v1.example.com/v1 CogWheel (cluster)"),
        // A group whose name starts like a version is parsed as a version first.
        ("widgets.v1.example.com", "example.com/v1 Widget (cluster)"),
        ("widgets.v2.v1.example.com", "v1.example.com/v2 Widget"),
        ("widgets.v1.v1.example.com", "v1.example.com/v1 Widget"),
        (
            "gears.v1.example.com",
            "v1.example.com/v1 CogWheel (cluster)",
        ),
        ("widgets.example.com", "example.com/v1 Widget (cluster)"),
        // A full name has precedence over an earlier short name.
        ("wi", "example.com/v1 Wi (cluster)"),
        ("wi.v1.example.com", "example.com/v1 Wi (cluster)"),
        ("wi.v2.v1.example.com", "v1.example.com/v2 Widget"),
    ] {
        assert_eq!(look_up(name).as_deref(), Some(found), "{name}");
    }
    for name in [
        "",
        ".",
        "nameless",
        "widgets.com",
        "widgets.v3.example.com",
        "widgets.",
    ] {
        assert_eq!(look_up(name), None, "{name}");
    }
}

#[test]
fn the_error_names_a_group_with_stale_discovery() {
    let mut catalogue = Catalogue::default();
    catalogue.add(DOCUMENT.as_bytes()).unwrap();
    let error = DiscoverError::Unknown {
        name: "nodemetrics".to_owned(),
        stale: catalogue.stale,
    };
    assert_eq!(
        error.to_string(),
        r#"the server has no kind named "nodemetrics"; it may be in v1beta1.metrics.k8s.io, whose API server does not respond"#
    );
}

#[test]
fn a_document_that_is_not_aggregated_discovery_is_an_error() {
    let add = |body: &str| {
        let added = Catalogue::default().add(body.as_bytes());
        added.unwrap_err().to_string()
    };
    let plain = r#"{"kind": "APIGroupList", "groups": []}"#;
    let old = "the server has no aggregated discovery; it needs Kubernetes 1.27 or later";
    assert_eq!(add(plain), old);
    let nonsense = "the discovery response is not a discovery document";
    for body in ["", "<html>", "[]", r#"{"items": []}"#] {
        assert_eq!(add(body), nonsense, "{body}");
    }
}

#[test]
fn a_document_with_too_many_arrays_and_maps_is_rejected_before_decoding() {
    let groups = |count: usize| {
        let groups = vec!["{}"; count].join(",");
        let body = format!(r#"{{"kind":"Else","items":[{groups}]}}"#);
        let added = Catalogue::default().add(body.as_bytes());
        added.unwrap_err().to_string()
    };
    let expected = "the discovery response has more than 500000 arrays and maps";
    assert_eq!(
        groups(PARTS - 1),
        expected,
        "the arrays and maps of document and list count"
    );
    assert_ne!(groups(PARTS - 2), expected);
}
