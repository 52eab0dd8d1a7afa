//! Tests of the Rust types that can represent an informer's objects.
//!
//! The types are a built-in type, a custom type, a type with only the metadata, and a dynamic object.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube_core::{ApiResource, GroupVersionKind, PartialObjectMeta};
use kube_derive::CustomResource;
use kube_informer::{
    Event, InitialList,
    status::SyncFailure,
    transport::{Class, Encoding},
};
use kube_informer_apiserver::{Kind, Scope, Server};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::setting::{LONG, factory_builder, pod};

#[tokio::test(start_paused = true)]
async fn typed_metadata_only_and_dynamic_informers_see_the_same_object() {
    let widget = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = Server::builder()
        .kind(widget)
        .seed([
            pod("a"),
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 3}}),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}),
        ])
        .build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .namespaces(["default"])
        .build();
    let pods = factory.informer::<Pod>();
    let names = factory.informer::<PartialObjectMeta<Pod>>();
    let nodes = factory.informer::<Node>();
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widgets = factory
        .for_resource(&ApiResource::from_gvk_with_plural(&gvk, "widgets"))
        .unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();

    assert!(
        pods.lister()
            .namespace("default")
            .get("a")
            .unwrap()
            .spec
            .is_some()
    );
    let meta = names.lister().namespace("default").get("a").unwrap();
    assert_eq!(meta.metadata.name.as_deref(), Some("a"));
    assert_eq!(
        nodes.indexer().len(),
        1,
        "cluster-scoped kinds have no namespace"
    );
    let widget = widgets.lister().namespace("default").get("w").unwrap();
    assert_eq!(widget.data["spec"]["size"], 3);
    assert_eq!(widget.types.as_ref().unwrap().kind, "Widget");

    let mut events = widgets.subscribe().unwrap();
    server
        .delete("example.com/v1", "widgets", "default/w")
        .unwrap();
    let mut last = None;
    while let Some(event) = events.next().await {
        if let Event::Deleted(gone) = event {
            last = Some(gone.object_name().to_string());
            break;
        }
    }
    assert_eq!(last.as_deref(), Some("default/w"));
    let log = server.requests();
    assert_eq!(
        log.lists("pods").len(),
        2,
        "another representation is another informer"
    );
    factory.shutdown().await;
}

#[derive(Clone, Debug, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Gadget",
    namespaced,
    schema = "disabled",
    crates(
        kube_core = "kube_core",
        k8s_openapi = "k8s_openapi",
        serde = "serde",
        serde_json = "serde_json"
    )
)]
struct GadgetSpec {
    size: u32,
}

#[tokio::test(start_paused = true)]
async fn a_derived_custom_resource_has_typed_and_metadata_informers() {
    let gadget = |name: &str, size: u32| {
        let metadata = json!({"name": name, "namespace": "default"});
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata, "spec": {"size": size}})
    };
    let kind = Kind::custom("example.com", "v1", "Gadget", "gadgets", Scope::Namespaced);
    let server = Server::builder().kind(kind).seed([gadget("g", 1)]).build();
    let factory = factory_builder(server.client()).build();
    let gadgets = factory.informer::<Gadget>();
    let names = factory.informer::<PartialObjectMeta<Gadget>>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    gadgets
        .add_index("size", |gadget: &Gadget| [gadget.spec.size.to_string()])
        .await
        .unwrap();
    server.create(gadget("h", 2)).unwrap();
    gadgets
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    names
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    let of_size_2 = gadgets.indexer().index_keys("size", "2").unwrap();
    assert_eq!(format!("{of_size_2:?}"), "[default/h]");
    assert_eq!(names.indexer().len(), 2);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_state_their_kind_in_both_encodings() {
    let server = Server::builder().seed([pod("a")]).build();
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let factory = factory_builder(server.client()).encoding(encoding).build();
        let names = factory.informer::<PartialObjectMeta<Pod>>();
        factory.start();
        factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
        let watched = format!("watched-{encoding:?}").to_lowercase();
        server.create(pod(&watched)).unwrap();
        let revision = server.revision();
        names.wait_for_revision(revision, LONG).await.unwrap();
        for name in ["a", &watched] {
            let object = names.lister().namespace("default").get(name).unwrap();
            let types = object.types.as_ref().unwrap();
            assert_eq!(types.api_version, "meta.k8s.io/v1");
            assert_eq!(types.kind, "PartialObjectMetadata");
        }
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_behave_as_one_informer() {
    let map = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}});
    let server = Server::builder()
        .seed([map("shop", "a"), map("billing", "b"), map("other", "c")])
        .build();
    let factory = factory_builder(server.client())
        .namespaces(["shop", "billing"])
        .build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    maps.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(
        format!("{:?}", maps.indexer().list()),
        "[billing/b@2, shop/a@1]"
    );

    // A relist of one namespace deletes only objects of that namespace.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    server.faults().cut_watches();
    server.delete("v1", "configmaps", "shop/a").unwrap();
    server.faults().expire_history();
    let mut status = maps.status();
    status
        .wait_for(|_| maps.indexer().len() == 1)
        .await
        .unwrap();
    assert_eq!(format!("{:?}", maps.indexer().list()), "[billing/b@2]");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_kind_unknown_to_the_server_fails_at_once() {
    let server = Server::builder().build();
    let factory = factory_builder(server.client()).build();
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Nothing");
    let nothings = factory.for_resource(&ApiResource::from_gvk(&gvk)).unwrap();
    factory.start();
    let error = nothings.wait_for_sync().fail_fast().await.unwrap_err();
    assert_eq!(error.failure, SyncFailure::Refused);
    let class = error.status.last_error().unwrap().class();
    assert_eq!(class, Class::NotFound, "{error}");
    factory.shutdown().await;
}
