//! Tests of a factory's informers before the factory starts and after it shuts down.
//!
//! Also tests adopted informers: the factory shares them, but neither starts nor stops them.

use std::fmt::Write;

use kube_core::DynamicObject;
use kube_informer::{
    pruning::{FieldPath, Pruned},
    shared_informer::Stopped,
    status::SyncFailure,
};
use tokio::task::JoinSet;

use super::*;
use crate::setting::factory_builder;

#[tokio::test(start_paused = true)]
async fn an_adopted_informer_is_shared_and_awaited_but_neither_started_nor_stopped() {
    let server = Server::builder().seed([pod("a")]).build();
    let (theirs, ours) = (factory(&server), factory(&server));
    let pods = theirs.informer::<Pod>();
    ours.adopt(pods.clone()).unwrap();
    ours.adopt(pods.clone())
        .expect("adopting the same informer again succeeds");
    assert!(ours.informer::<Pod>().is_same(&pods));
    let conflict = ours.adopt(factory(&server).informer::<Pod>());
    assert_eq!(
        conflict.unwrap_err().to_string(),
        "the factory already has another informer of Pod; stop that one first, or use it"
    );
    ours.informer::<ConfigMap>();
    ours.start();
    let error = ours
        .wait_for_cache_sync()
        .deadline(MINUTE)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(" (v1 Pod) did not sync") && text.ends_with("not synced, not started"),
        "{text}"
    );

    theirs.start();
    ours.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(ours.lister::<Pod>().namespace("default").get("a").is_ok());
    assert_eq!(server.requests().lists("pods").len(), 1);
    ours.shutdown().await;

    server.create(pod("b")).unwrap();
    let reached = pods.wait_for_revision(server.revision(), LONG);
    reached
        .await
        .expect("the informer outlives the factory that adopted it");
    assert!(ours.informer::<Pod>().is_same(&pods));
    theirs.shutdown().await;
    assert!(pods.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_factory_lists_the_coverage_and_status_of_its_informers() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let factory = factory_builder(server.client())
        .namespaces(["default", "shop"])
        .build();
    let status: FieldPath = "status".parse().unwrap();
    let options = InformerOptions::<Pruned<Pod>>::new().labels("!batch".parse().unwrap());
    let pods = factory
        .informer_with(options.keep([status]).packed())
        .unwrap();
    pods.on_delete(|_| {}).name("cleanup").register().unwrap();
    let (theirs, _controller) = own(server.client(), Duration::ZERO);
    factory.adopt(theirs).unwrap();
    factory.informer::<PartialObjectMeta<Node>>();
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    pods.handlers_idle().await;

    let mut listing = String::new();
    for informer in factory.informers() {
        let kind = informer.kind();
        writeln!(
            listing,
            "{} ({} {})",
            informer.name(),
            kind.api_version,
            kind.kind
        )
        .unwrap();
        let handlers = informer.handlers();
        let names: Vec<_> = handlers.iter().map(|handler| &*handler.name).collect();
        let objects = informer.memory().objects;
        writeln!(listing, "  {objects} objects, handlers {names:?}").unwrap();
        let Some(coverage) = informer.coverage() else {
            listing += "  unknown\n";
            continue;
        };
        let (form, metadata) = (coverage.representation, coverage.is_metadata_only);
        writeln!(listing, "  {form:?}, metadata only: {metadata}").unwrap();
        if let Some(kept) = &coverage.kept_fields {
            let kept: Vec<_> = kept.iter().map(ToString::to_string).collect();
            writeln!(listing, "  keeps {kept:?}").unwrap();
        }
        for section in &coverage.sections {
            let namespace = section.namespace.as_deref().unwrap_or("all");
            writeln!(
                listing,
                "  in {namespace}: labels [{}], fields [{}]",
                section.labels, section.fields
            )
            .unwrap();
        }
    }
    expect![[r#"
        pods in default, shop with labels !batch (v1 Pod)
          2 objects, handlers ["cleanup"]
          Packed, metadata only: false
          keeps ["status"]
          in default: labels [!batch], fields []
          in shop: labels [!batch], fields []
        own (v1 Pod)
          0 objects, handlers []
          unknown
        metadata of nodes (v1 Node)
          0 objects, handlers []
          Decoded, metadata only: true
          in all: labels [], fields []
    "#]]
    .assert_eq(&listing);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_adopted_informer_that_has_stopped_is_replaced() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let (pods, controller) = own(server.client(), Duration::ZERO);
    factory.adopt(pods.clone()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(sleep(MINUTE)));
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(factory.informer::<Pod>().is_same(&pods));
    tasks.join_next().await.unwrap().unwrap().unwrap();

    let fresh = factory.informer::<Pod>();
    assert!(!fresh.is_same(&pods) && !fresh.is_stopped());
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert_eq!((fresh.indexer().len(), pods.indexer().len()), (1, 1));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_a_factory_returns_the_same_stopped_informers() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    let never_ran = factory.informer::<ConfigMap>();
    factory.shutdown().await;

    assert!(factory.informer::<Pod>().is_same(&pods));
    assert!(
        factory
            .lister::<Pod>()
            .namespace("default")
            .get("a")
            .is_ok()
    );
    assert_eq!(pods.on_delete(|_| {}).register().unwrap_err(), Stopped);
    assert!(factory.informer::<ConfigMap>().is_same(&never_ran));
    let late = factory.informer::<PartialObjectMeta<Pod>>();
    let constructed = factory.informer_for::<Node>(|client, _| {
        SharedInformer::builder(ListWatch::<Node>::new(client)).build()
    });
    let constructed = constructed.unwrap();
    for wait in [
        never_ran.wait_for_sync(),
        late.wait_for_sync(),
        constructed.wait_for_sync(),
    ] {
        let error = wait.deadline(LONG).await.unwrap_err().to_string();
        let expected = "was stopped before it synced: not synced, stopped";
        assert!(error.ends_with(expected), "{error}");
    }
    factory.start();
    assert!(factory.informer::<PartialObjectMeta<Pod>>().is_same(&late));
    assert_eq!(late.subscribe().unwrap_err(), Stopped);
    factory.shutdown().await;
    assert_eq!(
        server.requests().lists("pods").len(),
        1,
        "no other informer ran"
    );
    assert_eq!(server.requests().lists("nodes").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_on_a_factory_that_was_not_started_fails_at_once_and_names_its_informers() {
    let server = Server::builder().build();
    let (ours, theirs) = (factory(&server), factory(&server));
    assert!(
        ours.wait_for_cache_sync().await.is_ok(),
        "the factory has no informer"
    );
    let nodes = theirs.hold::<Node>();
    ours.adopt((*nodes).clone()).unwrap();
    ours.wait_for_cache_sync()
        .await
        .expect("informers of other factories are awaited");
    ours.informer::<Pod>();
    let error = ours.wait_for_cache_sync().await.unwrap_err();
    let [error] = &*error.unsynced else {
        panic!("one of them was not started: {error}");
    };
    assert_eq!(error.failure, SyncFailure::NotStarted);
    let expected = "pods (v1 Pod) can't sync, as its factory was not started: not synced, not started; call start of the factory before the wait";
    assert_eq!(error.to_string(), expected);
    ours.start();
    ours.informer::<ConfigMap>();
    ours.wait_for_cache_sync()
        .await
        .expect("the informers requested before the start were started");
    ours.shutdown().await;
    drop(nodes);
    theirs.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_wait_covers_informers_of_several_types_and_factories() {
    let server = Server::builder().seed([pod("a")]).build();
    let (one, two) = (factory(&server), factory(&server));
    let pods: SharedInformer<Pod> = one.informer();
    let maps: SharedInformer<DynamicObject> = two
        .for_resource(&ApiResource::erase::<ConfigMap>(&()))
        .unwrap();
    let (alone, controller) = own(server.client(), Duration::ZERO);
    let waits = || {
        wait_for_cache_sync([
            pods.wait_for_sync(),
            maps.wait_for_sync(),
            alone.wait_for_sync(),
        ])
    };
    one.start();
    let error = waits().deadline(MINUTE).await.unwrap_err();
    let unsynced = error.unsynced.iter();
    let kinds: Vec<_> = unsynced.map(|error| &*error.expects).collect();
    assert_eq!(kinds, ["v1 ConfigMap", "v1 Pod"]);
    two.start();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(std::future::pending()));
    waits().deadline(LONG).await.unwrap();
    assert!(pods.has_synced() && maps.has_synced() && alone.has_synced());
    one.shutdown().await;
    two.shutdown().await;
}
