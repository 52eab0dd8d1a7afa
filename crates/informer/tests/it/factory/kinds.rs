//! Tests of informers for kinds that are only known at run time, including validation and discovery of kinds.

use std::collections::BTreeSet;

use kube_core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_informer::{
    SharedInformer,
    factory::{DiscoverError, Discovered, KindError},
    transport::Class,
};
use kube_informer_apiserver::{Kind, Scope, Verb};

use super::*;
use crate::setting::factory_builder;

fn server() -> Server {
    let kind = |kind, plural, scope| Kind::custom("example.com", "v1", kind, plural, scope);
    Server::builder()
        .kind(kind("Widget", "widgets", Scope::Namespaced))
        .kind(kind("Realm", "realms", Scope::Cluster))
        .enforce_namespaces(false)
        .build()
}

fn factory(server: &Server) -> SharedInformerFactory {
    factory_builder(server.client())
        .initial_list(InitialList::List)
        .build()
}

/// Returns the field of an `ApiResource` that a test case makes invalid.
type Place = fn(&mut ApiResource) -> &mut String;

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_invalid_in_a_url_is_rejected_at_once() {
    let server = server();
    let factory = factory(&server);
    let widget = || {
        let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
        ApiResource::from_gvk_with_plural(&gvk, "widgets")
    };
    factory.for_resource(&widget()).unwrap();
    let change: [(&str, &str, Place); 11] = [
        ("version", "", |kind| &mut kind.version),
        ("kind", "", |kind| &mut kind.kind),
        ("plural", "", |kind| &mut kind.plural),
        ("group", "example.com/v1", |kind| &mut kind.group),
        ("version", "v1/namespaces/kube-system", |kind| {
            &mut kind.version
        }),
        ("plural", "..", |kind| &mut kind.plural),
        ("plural", ".", |kind| &mut kind.plural),
        ("plural", "widgets?limit=1#", |kind| &mut kind.plural),
        ("plural", "widgets%2f", |kind| &mut kind.plural),
        ("kind", "Wid get", |kind| &mut kind.kind),
        ("apiVersion", "example.com/v2", |kind| &mut kind.api_version),
    ];
    for (field, value, place) in change {
        let mut kind = widget();
        value.clone_into(place(&mut kind));
        // Fields that must agree are changed together, so that only the field itself is invalid.
        if field != "apiVersion" {
            kind.api_version = format!("{}/{}", kind.group, kind.version);
        }
        let error = factory.for_resource(&kind).unwrap_err();
        let value = value.to_owned();
        assert_eq!(error, KindError::Malformed { field, value });
    }
    let error = KindError::Malformed {
        field: "plural",
        value: "..".to_owned(),
    };
    assert_eq!(error.to_string(), r#"invalid plural ".." of a kind"#);
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_kind_that_the_server_does_not_know_fails_fast_and_names_it() {
    let server = server();
    let factory = factory(&server);
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Nothing");
    factory
        .for_resource(&ApiResource::from_gvk_with_plural(&gvk, "nothings"))
        .unwrap();
    factory.informer::<Pod>();
    factory.start();
    let error = factory.wait_for_cache_sync().fail_fast().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(" (example.com/v1 Nothing) can't sync, as the server rejects the requests: "),
        "{text}"
    );
    assert_eq!(error.unsynced.len(), 1, "{text}");
    let cause = error.unsynced[0].status.last_error().unwrap();
    assert_eq!(cause.class(), Class::NotFound);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wrongly_guessed_plural_does_not_replace_the_right_one() {
    let server = server();
    let factory = factory(&server);
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let named = |plural| ApiResource::from_gvk_with_plural(&gvk, plural);
    let wrong = factory.for_resource(&named("widgetes")).unwrap();
    let right = factory.for_resource(&named("widgets")).unwrap();
    factory.start();
    right.wait_for_sync().deadline(LONG).await.unwrap();
    assert!(wrong.wait_for_sync().fail_fast().await.is_err());
    factory.shutdown().await;
}

fn names(found: &Discovered) -> String {
    let resource = &found.resource;
    let scope = if found.namespaced { "" } else { " (cluster)" };
    format!("{} {}{scope}", resource.api_version, resource.plural)
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_found_by_every_name_that_kubectl_accepts() {
    let server = server();
    let factory = factory(&server);
    let rows = [
        ("pods", "v1 pods", 1),
        ("pod", "v1 pods", 1),
        ("Pod", "v1 pods", 1),
        ("PODS", "v1 pods", 1),
        ("pods.v1.", "v1 pods", 1),
        ("nodes", "v1 nodes (cluster)", 1),
        ("po", "v1 pods", 2),
        ("deployments", "apps/v1 deployments", 2),
        ("deploy", "apps/v1 deployments", 2),
        ("deployments.apps", "apps/v1 deployments", 1),
        ("deploy.apps", "apps/v1 deployments", 1),
        ("deployments.v1.apps", "apps/v1 deployments", 1),
        ("events", "v1 events", 1),
        ("events.events.k8s.io", "events.k8s.io/v1 events", 1),
        ("events.v1.events.k8s.io", "events.k8s.io/v1 events", 1),
        ("widgets.example.com", "example.com/v1 widgets", 1),
        ("widget.v1.example.com", "example.com/v1 widgets", 1),
        ("Realm", "example.com/v1 realms (cluster)", 2),
    ];
    for (name, expected, requests) in rows {
        server.requests().clear();
        let found = factory.discover(name).await.unwrap();
        assert_eq!(names(&found), expected, "{name}");
        assert!(found.serves("watch") && !found.serves("connect"), "{name}");
        assert_eq!(server.requests().len(), requests, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_an_error_and_an_empty_name_sends_no_request() {
    let server = server();
    let factory = factory(&server);
    for name in [
        "nothings",
        "pods.apps",
        "deployments.v2.apps",
        "widgets.example",
        "pods/log",
    ] {
        let error = factory.discover(name).await.unwrap_err();
        let expected = format!("the server has no kind named {name:?}");
        assert_eq!(error.to_string(), expected);
    }
    server.requests().clear();
    for name in ["", ".", ".apps"] {
        let error = factory.discover(name).await.unwrap_err();
        assert!(matches!(error, DiscoverError::Unknown { .. }), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_discovery_request_is_not_reported_as_an_unknown_kind() {
    let server = server();
    let factory = factory(&server);
    let class = async |name: &str| match factory.discover(name).await {
        Err(DiscoverError::Server(error)) => error.class(),
        other => panic!("{other:?}"),
    };
    server.faults().refuse_connections(true);
    assert_eq!(class("pods").await, Class::ConnectionRefused);
    let error = factory.discover_all().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the discovery of the server's kinds failed"
    );
    server.faults().refuse_connections(false);
    for (status, expected) in [(403, Class::Forbidden), (503, Class::Unavailable)] {
        server.faults().answer(Match::any(), status).times(1);
        assert_eq!(class("deployments.apps").await, expected);
    }
    assert!(factory.discover("pods").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_kind_ignores_the_namespaces_of_the_factory() {
    let server = server();
    for object in [
        json!({"apiVersion": "example.com/v1", "kind": "Realm", "metadata": {"name": "r"}}),
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "ours", "namespace": "shop"}}),
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "theirs", "namespace": "other"}}),
    ] {
        server.create(object).unwrap();
    }
    let factory = factory_builder(server.client())
        .namespaces(["shop"])
        .build();
    let realm = factory.discover("realms").await.unwrap();
    let realms = factory.for_resource(&realm).unwrap();
    let widget = factory.discover("widgets").await.unwrap();
    let widgets = factory.for_resource(&widget).unwrap();
    // The result of kube's own discovery works too.
    let client = server.client();
    let group = kube_client::discovery::group(&client, "example.com");
    let group = group.await.unwrap();
    let kubes = group.recommended_kind("Realm").unwrap();
    assert!(factory.for_resource(&kubes).unwrap().is_same(&realms));
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    let names = |informer: &SharedInformer<DynamicObject>| {
        let objects = informer.indexer().list();
        let names = objects
            .iter()
            .map(|object| object.object_name().to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&realms), ["r"]);
    assert_eq!(names(&widgets), ["shop/ours"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_and_watched_has_no_informer() {
    let server = server();
    let factory = factory(&server);
    let review = factory.discover("tokenreviews").await.unwrap();
    let error = factory.for_resource(&review).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server does not support list and watch of tokenreviews.authentication.k8s.io"
    );
}

#[tokio::test(start_paused = true)]
async fn every_kind_that_the_server_lists_and_watches_has_an_informer_that_syncs() {
    let server = server();
    let factory = factory(&server);
    let kinds = factory.discover_all().await.unwrap();
    assert_eq!(server.requests().len(), 2);
    let unique: BTreeSet<_> = kinds
        .iter()
        .map(|kind| (&kind.resource.group, &kind.resource.plural))
        .collect();
    assert_eq!(unique.len(), kinds.len(), "each kind has one version");

    let watched = |kind: &&Discovered| kind.serves("list") && kind.serves("watch");
    let informers: Vec<_> = kinds
        .iter()
        .filter(watched)
        .map(|kind| factory.for_resource(kind).unwrap())
        .collect();
    assert!(informers.len() > 60, "only {} kinds", informers.len());
    factory.start();
    let synced = factory.wait_for_cache_sync().fail_fast();
    synced.deadline(LONG).await.unwrap();
    assert_eq!(server.requests().verb(Verb::List).len(), informers.len());

    let object = |api_version: &str, kind: &str, namespace: Option<&str>| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "new", "namespace": namespace}});
    let mut pod = pod("new");
    pod["metadata"]["namespace"] = json!("default");
    for created in [
        pod,
        object("v1", "ConfigMap", Some("default")),
        object("v1", "Node", None),
        object("example.com/v1", "Realm", None),
        object("example.com/v1", "Widget", Some("default")),
        object("coordination.k8s.io/v1", "Lease", Some("default")),
    ] {
        let kind = created["kind"].as_str().unwrap().to_owned();
        server.create(created).unwrap();
        let mut informers = informers.iter();
        let informer = informers.find(|informer| informer.kind() == kind).unwrap();
        let reached = informer.wait_for_revision(server.revision(), LONG);
        reached.await.unwrap();
        let cached = informer.indexer().list();
        let new = cached.iter().find(|object| object.name() == "new");
        let types = new.unwrap().get().unwrap().types.clone().unwrap();
        assert_eq!(types.kind, kind);
    }
    factory.shutdown().await;
    assert!(informers.iter().all(SharedInformer::is_stopped));
}
