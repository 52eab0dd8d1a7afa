//! Tests of `SharedInformerFactory`, which shares one informer per kind and scope.
//!
//! The tests check the start of the factory, the names of the informers, and the wait for their sync.

mod defaults;
mod kinds;
mod registry;
mod precedence;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::PartialObjectMeta;
use kube_informer::{
    InformerOptions, InitialList, SharedInformer, SharedInformerFactory,
    client::ListWatch,
    factory::{QueueKind, wait_for_cache_sync},
    reflector::RollbackDetection,
};
use kube_informer_apiserver::{Match, Server};
use serde_json::json;
use tokio::time::sleep;

use crate::setting::{LONG, Trace, factory_builder, labelled, pod, requests};

#[tokio::test(start_paused = true)]
async fn two_handles_and_three_handlers_share_one_list_one_watch_and_one_decode_per_object() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    let decoded = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&decoded);
    let options = InformerOptions::new().transform(move |_: &mut Pod| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    factory.informer_with::<Pod>(options).unwrap();
    let (first, second) = (factory.informer::<Pod>(), factory.informer::<Pod>());
    let traces = [&first, &first, &second].map(|pods| {
        let trace = Trace::default();
        trace.listen(pods);
        trace
    });
    factory.start();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    server.update(labelled("a", "x")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    first
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    first.handlers_idle().await;

    let expected = "add default/a@1 (initial)\nadd default/b@2 (initial)\nsynced\nupdate default/a@1 → 3\ndelete default/b@4\n";
    for trace in traces {
        assert_eq!(trace.take(), expected);
    }
    assert_eq!(
        decoded.load(Ordering::Relaxed),
        4,
        "two items and two events"
    );
    expect![[r#"
        list 0 limit=500: 200
        watch 2: 200
    "#]]
    .assert_eq(&requests(&server));
    factory.shutdown().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn other_selectors_create_another_informer_and_other_options_conflict() {
    let server = Server::builder()
        .seed([labelled("a", "web"), labelled("b", "db")])
        .build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    let all = factory.informer::<Pod>();
    let web = || InformerOptions::<Pod>::new().labels("app=web".parse().unwrap());
    let ours = factory.informer_with(web()).unwrap();
    let again = factory.informer_with(web()).unwrap();
    let named = factory
        .informer_with(InformerOptions::<Pod>::new().fields("metadata.name=b"))
        .unwrap();
    let conflict = factory
        .informer_with(web().queue(QueueKind::DeltaFifo))
        .unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "the factory already has an informer of Pod in this scope with another queue; use the same options, or another factory"
    );
    for (other, option) in [
        (web().batch_size(1), "batch size"),
        (web().queue_capacity(1), "queue capacity"),
        (web().name("mine"), "name"),
        (
            web().rollback_detection(RollbackDetection::Disabled),
            "rollback detection",
        ),
    ] {
        let conflict = factory.informer_with(other).unwrap_err().to_string();
        let expected = format!(" in this scope with another {option}; ");
        assert!(conflict.contains(&expected), "{conflict}");
    }
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert_eq!(
        (
            all.indexer().len(),
            ours.indexer().len(),
            again.indexer().len()
        ),
        (2, 1, 1)
    );
    assert_eq!(format!("{:?}", named.indexer().list()), "[default/b@2]");
    assert_eq!(server.requests().lists("pods").len(), 3);

    // A pod that stops matching is deleted from the selecting informer only.
    server.update(labelled("a", "db")).unwrap();
    all.wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    ours.wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    assert_eq!((all.indexer().len(), ours.indexer().len()), (2, 0));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_start_runs_the_informers_requested_since_the_first() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    factory.informer::<Pod>();
    factory.start();
    let maps = factory.informer::<ConfigMap>();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(
        !maps.has_synced(),
        "an informer that was not started is not awaited"
    );
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(maps.has_synced());
    assert_eq!(server.requests().lists("pods").len(), 1);
    factory.shutdown().await;

    let late = factory.informer::<PartialObjectMeta<Pod>>();
    assert!(
        late.wait_for_sync().await.is_err(),
        "after the shutdown an informer has stopped"
    );
    factory.start();
}

#[tokio::test(start_paused = true)]
async fn a_failed_wait_names_every_unsynced_informer_and_the_reason() {
    let server = Server::builder().seed([pod("a")]).build();
    server.faults().answer(Match::list("pods"), 403).times(1000);
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    let pods = factory.informer::<Pod>();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    let error = factory
        .wait_for_cache_sync()
        .deadline(Duration::from_secs(30))
        .await
        .unwrap_err();
    assert_eq!(error.unsynced.len(), 1);
    let text = error.to_string();
    assert!(
        text.contains("pods (v1 Pod) did not sync within 30s: "),
        "{text}"
    );
    assert!(text.contains("last error: "), "{text}");
    wait_for_cache_sync([maps.wait_for_sync()]).await.unwrap();
    wait_for_cache_sync([pods.wait_for_sync(), maps.wait_for_sync()])
        .fail_fast()
        .await
        .unwrap_err();
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn tweaked_options_reach_lists_and_watches() {
    let server = Server::builder()
        .seed([labelled("a", "web"), labelled("b", "db")])
        .build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .tweak_list_options(|options| options.label_selector = Some("app=web".to_owned()))
        .build();
    let pods = factory.informer::<Pod>();
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(pods.indexer().len(), 1);
    let selectors: Vec<_> = server
        .requests()
        .iter()
        .map(|r| r.options.label_selector.clone())
        .collect();
    assert_eq!(
        selectors,
        [Some("app=web".to_owned()), Some("app=web".to_owned())]
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn informers_are_named_by_kind_and_scope_unless_they_are_given_a_name() {
    let server = Server::builder().build();
    let factory = factory_builder(server.client()).build();
    let pods = InformerOptions::<Pod>::new;
    let web = || "app=web".parse().unwrap();
    let names = [
        pods(),
        pods().labels(web()),
        pods().namespaces(["shop"]),
        pods().namespaces(["shop", "web"]).labels(web()),
        pods().namespaces(["e", "d", "c", "b", "a"]),
        pods().namespaces(["", "shop"]),
        pods()
            .namespaces(["shop"])
            .fields("spec.nodeName=n")
            .name("mine"),
    ]
    .map(|options| factory.informer_with(options).unwrap().name().to_owned());
    expect![[r#"
        pods
        pods with labels app=web
        pods in shop
        pods in shop, web with labels app=web
        pods in a, b, c and 2 more
        pods
        mine
    "#]]
    .assert_eq(&(names.join("\n") + "\n"));
    let metadata = factory.informer::<PartialObjectMeta<Pod>>();
    assert_eq!(metadata.name(), "metadata of pods");
    let again = factory.informer_with(pods().namespaces(["shop"]).fields("spec.nodeName=n"));
    assert_eq!(
        again.unwrap().name(),
        "mine",
        "a request without a name accepts any"
    );

    let source = || ListWatch::<Pod>::new(server.client()).namespace("shop");
    let (alone, _) = SharedInformer::<Pod>::builder(source().labels(&web())).build();
    assert_eq!(alone.name(), "pods in shop with labels app=web");
    let other = ListWatch::<Pod>::new(server.client()).namespace("web");
    let (two, _) = SharedInformer::<Pod>::builder(source())
        .source(other)
        .build();
    assert_eq!(two.name(), "pods in shop, web");
    factory.shutdown().await;
}
