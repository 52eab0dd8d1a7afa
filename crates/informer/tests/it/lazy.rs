//! Tests of lazy caches. A lazy cache stores and delivers the same objects as a decoded cache, but decodes
//! each object only when the object is first read.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Indexers, InformerOptions, Object, ObjectName, SharedInformer,
    client::ListWatch,
    enqueue,
    queue::DeltaFifo,
    shared_informer::Builder,
    status::WarmStart,
    warm_start::SavedStore,
    workqueue::{RateLimitingQueue, rate_limiter::controller_default},
};
use kube_informer_apiserver::Server;
use serde_json::json;

use crate::{
    packed::{Counted, Looks, by_image, decoded, same_as_decoded},
    setting::{LONG, Trace, builder, factory_builder, labelled, pod, run},
};

/// Returns a server with `pods` pods, and the builder of an informer that counts pod decoding.
fn counted(pods: usize) -> (Server, Builder<Counted>) {
    let seed = (0..pods).map(|number| labelled(&format!("p{number}"), "x"));
    let server = Server::builder().seed(seed).build();
    let source = ListWatch::<Counted>::new(server.client());
    let builder = SharedInformer::<Counted>::builder(source).rng_seed(1);
    (server, builder)
}

/// Runs an informer, and calls `look` when it has synced and its handlers are idle.
async fn while_it_runs(
    builder: Builder<Counted>,
    look: impl AsyncFnOnce(&SharedInformer<Counted>),
) {
    let (pods, controller) = builder.build();
    let looked = async {
        pods.wait_for_sync().deadline(LONG).await.unwrap();
        pods.handlers_idle().await;
        look(&pods).await;
    };
    controller.run(looked).await.unwrap();
}

fn read_all(pods: &SharedInformer<Counted>) {
    let snapshot = pods.indexer().list();
    assert!(snapshot.iter().all(|object| object.get().is_ok()));
}

#[tokio::test(start_paused = true)]
async fn a_lazy_cache_stores_and_delivers_the_same_as_a_decoded_one() {
    for by_key in [false, true] {
        let server = Server::builder()
            .seed((0..10).map(|n| labelled(&format!("seed{n}"), "seed")))
            .build();
        let building = || {
            let building = builder(&server).indexers(by_image()).unwrap();
            if by_key {
                building.queue(DeltaFifo::new())
            } else {
                building
            }
        };
        same_as_decoded(run(building().lazy()), run(building()), &server).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_decoded_on_the_first_read_and_stays_decoded() {
    let (server, _) = counted(100);
    let factory = factory_builder(server.client()).build();
    let pods = factory
        .informer_with::<Counted>(InformerOptions::new().lazy())
        .unwrap();
    let by_app = Indexers::new().with_metadata("app", |pod: &Object<Counted>| {
        pod.labels().get("app").map(str::to_owned)
    });
    pods.add_indexers(by_app).await.unwrap();
    let queue = RateLimitingQueue::<ObjectName>::builder(controller_default()).build();
    pods.handler(enqueue(&queue)).register().unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    pods.handlers_idle().await;
    assert_eq!(queue.len(), 100);
    let app_is_x = "app=x".parse().unwrap();
    assert_eq!(pods.lister().list(&app_is_x).count(), 100);
    let snapshot = pods.indexer().snapshot();
    assert_eq!(snapshot.index_keys("app", "x").unwrap().len(), 100);
    assert!(snapshot.iter().all(|object| object.uid() != ""));
    assert_eq!(decoded(), 0, "neither keys nor labels need a body");

    let first = snapshot.get(&"default/p7".parse().unwrap()).unwrap();
    let first = first.get().unwrap();
    read_all(&pods);
    assert_eq!(decoded(), 100);
    read_all(&pods);
    let again = pods.lister().namespace("default").get("p7").unwrap();
    assert!(
        Arc::ptr_eq(&first, &again),
        "all readers share the decoded object"
    );
    assert_eq!(decoded(), 0, "each was decoded once");

    pods.handler(Looks).register().unwrap();
    pods.handler(Looks).register().unwrap();
    server.update(labelled("p1", "y")).unwrap();
    let revision = server.revision();
    pods.wait_for_revision(revision, LONG).await.unwrap();
    pods.handlers_idle().await;
    assert_eq!(decoded(), 1, "each state is decoded once");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_the_type_is_reported_once_and_broken_until_its_next_state() {
    let mut bad = labelled("bad", "x");
    bad["spec"]["containers"] = json!("hunter2");
    let server = Server::builder().seed([pod("a"), bad]).build();
    let errors = Trace::default();
    let heard = errors.clone();
    let building = builder(&server).on_error(move |error| heard.note(error.to_string()));
    let informer = run(building.lazy());
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    let told = "add default/a@1 (initial)\nadd default/bad@2 (initial)\nsynced\n";
    assert_eq!(trace.take(), told);
    assert_eq!(errors.take(), "", "no object was read");
    for told in [1, 0] {
        let read = informer.pods.lister().namespace("default").get("bad");
        let error = read.unwrap_err().to_string();
        assert!(error.contains("spec.containers"), "{error}");
        let errors = errors.take();
        assert_eq!(errors.lines().count(), told, "{errors}");
        assert!(!errors.contains("hunter2"));
    }
    let snapshot = informer.pods.indexer().snapshot();
    let object = snapshot.get(&"default/bad".parse().unwrap()).unwrap();
    assert_eq!(object.get().unwrap_err().field(), "spec.containers");
    assert_eq!(object.labels().get("app"), Some("x"));
    assert!(object.broken().is_none() && object.live().is_none());
    server.update(labelled("bad", "y")).unwrap();
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "update default/bad@2 → 3\n");
    let read = informer.pods.lister().namespace("default").get("bad");
    assert!(read.is_ok());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_decodes_objects_at_once() {
    let (_server, building) = counted(5);
    let building = building.lazy().transform(|pod| {
        use kube_core::ResourceExt;
        pod.labels_mut().insert("seen".into(), "yes".into());
    });
    while_it_runs(building, async |pods| {
        assert_eq!(decoded(), 5);
        for object in &pods.indexer().list() {
            assert_eq!(object.labels().get("seen"), Some("yes"));
            assert!(object.live().is_some());
        }
        assert_eq!(decoded(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_lazy_option_does_not_change_a_packed_cache() {
    let (_server, building) = counted(100);
    while_it_runs(building.lazy().packed(), async |pods| {
        assert_eq!(decoded(), 0);
        for _ in 0..2 {
            read_all(pods);
            assert_eq!(
                decoded(),
                100,
                "an object without a holder is decoded again"
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_save_decodes_no_object_and_the_next_start_loads_broken_objects() {
    let mut bad = labelled("bad", "x");
    bad["spec"]["containers"] = json!("hunter2");
    let seed = (0..20).map(|number| labelled(&format!("p{number}"), "x"));
    let server = Server::builder().seed(seed.chain([bad])).build();
    let folder = std::env::temp_dir().join(format!("kube-informer-lazy-{}", std::process::id()));
    for packed in [false, true] {
        let building = || {
            let source = ListWatch::<Pod>::new(server.client());
            let saved = SavedStore::in_file(folder.join("pods.jsonl"), "1");
            let building = SharedInformer::<Pod>::builder(source).warm_start(saved);
            if packed {
                building.packed()
            } else {
                building.lazy()
            }
        };
        let informer = run(building());
        informer.caught_up(&server).await;
        informer.pods.save().await.unwrap();
        informer.stop().await;
        let informer = run(building());
        informer.caught_up(&server).await;
        let start = informer.pods.status().get().warm_start;
        assert!(
            matches!(start, Some(WarmStart::Warm { objects: 21, .. })),
            "{start:?}"
        );
        let snapshot = informer.pods.indexer().snapshot();
        let bad = snapshot.get(&"default/bad".parse().unwrap()).unwrap();
        assert_eq!(bad.get().unwrap_err().field(), "spec.containers");
        informer.stop().await;
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let (_server, building) = counted(20);
    let saved = SavedStore::in_file(folder.join("pods.jsonl"), "1");
    while_it_runs(building.warm_start(saved).lazy(), async |pods| {
        pods.save().await.unwrap();
        decoded();
        read_all(pods);
        assert_eq!(decoded(), 20);
    })
    .await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_for_a_lazy_and_a_decoded_informer_of_one_type_conflict() {
    let server = Server::builder().build();
    let factory = factory_builder(server.client()).build();
    let options = || InformerOptions::<Pod>::new();
    let _pods = factory.informer_with(options().lazy()).unwrap();
    assert!(factory.informer_with(options().lazy()).is_ok());
    let conflict = factory.informer_with(options()).unwrap_err();
    assert!(conflict.to_string().contains("lazy decoding"), "{conflict}");
}
