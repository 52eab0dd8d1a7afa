//! Tests that paths and methods are mapped to the same verbs and resources as in Kubernetes.

use http::Method;

use super::{Destination, Query, Verb};
use crate::kinds::{Kind, Kinds, Scope};
use crate::resource::Registry;

fn describe(method: &Method, path: &str) -> String {
    let registry = Registry::new(&Kinds::builtin());
    let destination = Destination::find(&registry, path);
    let verb = destination.verb(method, false);
    match &destination {
        Destination::Resource(target) => {
            let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            format!(
                "{verb} {} {} {} {}",
                target.resource.kind.group_resource(),
                or_dash(&target.namespace),
                or_dash(&target.name),
                or_dash(&target.subresource)
            )
        }
        other => format!("{verb} {other:?}"),
    }
}

#[test]
fn resource_paths_contain_namespace_object_and_subresource() {
    for (path, expected) in [
        ("/api/v1/pods", "list pods - - -"),
        ("/api/v1/namespaces/a/pods", "list pods a - -"),
        ("/api/v1/namespaces/a/pods/b", "get pods a b -"),
        ("/api/v1/namespaces/a/pods/b/status", "get pods a b status"),
        ("/api/v1/namespaces", "list namespaces - - -"),
        ("/api/v1/namespaces/a", "get namespaces - a -"),
        ("/api/v1/namespaces/a/status", "get namespaces - a status"),
        (
            "/api/v1/namespaces/a/finalize",
            "get namespaces - a finalize",
        ),
        ("/api/v1/nodes/n", "get nodes - n -"),
        (
            "/apis/apps/v1/namespaces/a/deployments/b",
            "get deployments.apps a b -",
        ),
        ("/apis/apps/v1/deployments/", "list deployments.apps - - -"),
        ("/apis/apps/v1/deployments//", "list deployments.apps - - -"),
        ("/api/v1/namespaces//pods", "list pods - - -"),
        ("/api/v1/namespaces//pods/a", "get pods - a -"),
        ("/api/v1/namespaces//", "list namespaces - - -"),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "get clusterroles.rbac.authorization.k8s.io - system:node -",
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles%2Fa",
            "get clusterroles.rbac.authorization.k8s.io - a -",
        ),
    ] {
        assert_eq!(describe(&Method::GET, path), expected, "{path}");
    }
}

#[test]
fn other_paths_are_discovery_health_or_unserved() {
    for (path, expected) in [
        ("/api", "other CoreVersions"),
        ("/apis", "other Groups"),
        ("/apis/apps", "other Group(\"apps\")"),
        ("/api/v1", "other GroupVersion(\"\", \"v1\")"),
        ("/apis/apps/v1", "other GroupVersion(\"apps\", \"v1\")"),
        ("/version", "other Version"),
        ("/readyz", "other Health"),
        ("/", "other Root"),
        ("/nothing", "other Nowhere"),
        ("/apis/nobody.example.com/v1/things", "other Nowhere"),
        ("/apis/apps/v9/deployments", "other Unknown"),
        ("/api/v1/none", "other Unknown"),
        ("/api/v1/pods/a", "other Unknown"),
        ("/api/v1/namespaces/a/nodes", "other Unknown"),
        ("/api/v1/namespaces/a/pods/b/c/d", "other Unknown"),
        ("/api/v1/nodes/%zz", "other Malformed"),
        ("/api/v1/nodes/%f", "other Malformed"),
        ("/api/v1/nodes/%+f", "other Malformed"),
        ("/api/v1//nodes", "other Unknown"),
        ("//api/v1/nodes", "other Nowhere"),
        ("/api/v1/namespaces/a%2Fb/pods", "other Unknown"),
        ("/healthz/ping", "other Health"),
        ("/healthz/other", "other Nowhere"),
        ("/healthz/", "other Nowhere"),
        ("/version/", "other Version"),
        ("/openapi/v3/", "other OpenApiNowhere"),
        ("/openapi/v3/none", "other OpenApiNowhere"),
        ("/api/v1/namespaces/a//pods", "other Unknown"),
        ("/api/v1/namespaces//nodes", "other Unknown"),
    ] {
        assert_eq!(describe(&Method::GET, path), expected, "{path}");
    }
}

#[test]
fn unserved_paths_of_custom_groups_are_nowhere() {
    let thing = Kind::custom("example.com", "v1", "Thing", "things", Scope::Namespaced);
    let mut kinds = Kinds::builtin();
    kinds.add(thing);
    let registry = Registry::new(&kinds);
    for path in [
        "/apis/example.com/v1/nothings",
        "/apis/example.com/v2",
        "/apis/example.com/v2/things",
        "/apis/example.com/v1/things/a",
        "/apis/example.com/v1//things",
    ] {
        let found = Destination::find(&registry, path);
        assert!(matches!(found, Destination::Nowhere), "{path}: {found:?}");
    }
}

#[test]
fn methods_map_to_verbs() {
    let (one, all) = ("/api/v1/nodes/n", "/api/v1/nodes");
    for (method, path, verb) in [
        (Method::GET, one, "get"),
        (Method::GET, all, "list"),
        (Method::POST, all, "create"),
        (Method::PUT, one, "update"),
        (Method::PATCH, one, "patch"),
        (Method::DELETE, one, "delete"),
        (Method::DELETE, all, "deletecollection"),
        (Method::PUT, all, "other"),
        (Method::HEAD, one, "other"),
    ] {
        let told = describe(&method, path);
        assert_eq!(told.split(' ').next(), Some(verb), "{method} {path}");
    }
    let registry = Registry::new(&Kinds::builtin());
    for (method, path, verb) in [
        (Method::GET, all, Verb::Watch),
        (Method::GET, one, Verb::Get),
        (Method::DELETE, one, Verb::Delete),
    ] {
        let destination = Destination::find(&registry, path);
        assert_eq!(destination.verb(&method, true), verb, "{method} {path}");
    }
}

#[test]
fn deprecated_watch_paths_watch_collections_and_objects() {
    for (path, expected) in [
        ("/api/v1/watch/pods", "watch pods - - -"),
        ("/api/v1/watch/namespaces/a/pods", "watch pods a - -"),
        ("/api/v1/watch/namespaces/a/pods/b", "watch pods a b -"),
        ("/api/v1/watch/namespaces/a", "watch namespaces - a -"),
        (
            "/apis/apps/v1/watch/deployments",
            "watch deployments.apps - - -",
        ),
        ("/api/v1/watch", "other Unknown"),
        ("/api/v1/watch/pods/a", "other Unknown"),
        ("/api/v1/watch/componentstatuses", "other Unknown"),
        ("/api/v1/watch/namespaces/a/pods/b/status", "other Unknown"),
    ] {
        assert_eq!(describe(&Method::GET, path), expected, "{path}");
    }
    let told = describe(&Method::POST, "/api/v1/watch/pods");
    assert_eq!(told, "other pods - - -");
}

#[test]
fn flags_and_numbers_parse_as_in_apimachinery() {
    let query = Query::parse("a=1&b=true&c=0&d=False&e=&n=12&m=x&s=a%20b");
    assert_eq!(
        ["a", "b", "c", "d", "e", "none"].map(|name| query.flag(name)),
        [
            Some(true),
            Some(true),
            Some(false),
            Some(false),
            Some(true),
            None
        ]
    );
    assert_eq!(query.number("n").unwrap(), Some(12));
    assert_eq!(query.number("none").unwrap(), None);
    for invalid in ["e", "m"] {
        assert!(query.number(invalid).is_err(), "{invalid}");
    }
    assert_eq!((query.text("s"), query.text("e")), (Some("a b"), None));
}
