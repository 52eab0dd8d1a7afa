//! Tests of `informer::Informer`, the informer with only one handler: the events of lists, deletions and
//! resyncs, and a panic of the handler.

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Object, client::ListWatch, event_handler::Callbacks, informer::Informer, queue::DeltaFifo,
};
use kube_informer_apiserver::Server;
use tokio::time::sleep;

use crate::setting::{LONG, Trace, labelled, pod};

/// Runs an `Informer`, and returns the events of a list, a relist after an expired watch, and a resync.
///
/// The cache initially contains two known objects, one of which does not exist on the server.
async fn story(delta_fifo: bool) -> String {
    let server = Server::builder().seed([pod("kept"), pod("new")]).build();
    let known = ["gone", "kept"].map(|name| {
        let mut pod: Pod = serde_json::from_value(pod(name)).unwrap();
        pod.metadata.resource_version = Some("1".to_owned());
        pod
    });
    let trace = Trace::default();
    let mut informer = Informer::builder(ListWatch::<Pod>::new(server.client()))
        .known_objects(known)
        .unwrap()
        .resync(Duration::from_secs(30))
        .rng_seed(1);
    if delta_fifo {
        informer = informer.queue(DeltaFifo::new());
    }
    let (indexer, controller) = informer.handler(trace.clone()).build();
    assert_eq!(indexer.len(), 2, "the known objects are in the store");
    let synced = controller.wait_for_sync().deadline(LONG);
    let stop = async {
        synced.await.unwrap();
        sleep(Duration::from_secs(2)).await;
        trace.note("-- cut");
        server.faults().cut_watches();
        server.update(labelled("new", "x")).unwrap();
        server.faults().expire_history();
        sleep(Duration::from_secs(1)).await;
        trace.note("-- resync");
        sleep(Duration::from_secs(28)).await;
    };
    controller.run(stop).await.unwrap();
    assert_eq!(
        format!("{:?}", indexer.list()),
        "[default/kept@1, default/new@3]"
    );
    trace.take()
}

#[tokio::test(start_paused = true)]
async fn a_plain_informer_delivers_every_item_and_the_deletions_since_the_last_run() {
    expect![[r#"
        delete default/gone@1 (final state unknown)
        update default/kept@1 → 1 (relist)
        add default/new@2 (initial)
        synced
        -- cut
        update default/kept@1 → 1 (relist)
        update default/new@2 → 3 (relist)
        -- resync
        update default/kept@1 → 1 (resync)
        update default/new@3 → 3 (resync)
    "#]]
    .assert_eq(&story(false).await);
}

#[tokio::test(start_paused = true)]
async fn a_plain_informer_over_a_delta_fifo_delivers_deletions_after_the_items() {
    expect![[r#"
        update default/kept@1 → 1 (relist)
        add default/new@2 (initial)
        delete default/gone@1 (final state unknown)
        synced
        -- cut
        update default/kept@1 → 1 (relist)
        update default/new@2 → 3 (relist)
        -- resync
        update default/kept@1 → 1 (resync)
        update default/new@3 → 3 (resync)
    "#]]
    .assert_eq(&story(true).await);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_plain_handler_delays_it_by_one_second() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let trace = Trace::default();
    let notes = trace.clone();
    let handler = Callbacks::new().on_add(move |pod: Object<Pod>, _| {
        notes.note(pod.name());
        assert!(pod.name() != "a", "planted");
    });
    let (indexer, controller) = Informer::builder(ListWatch::<Pod>::new(server.client()))
        .handler(handler)
        .build();
    let synced = controller.wait_for_sync().deadline(LONG);
    let stop = async {
        synced.await.unwrap();
        sleep(Duration::from_millis(900)).await;
        assert_eq!(trace.take(), "a\n");
        sleep(Duration::from_millis(200)).await;
        assert_eq!(trace.take(), "b\n");
    };
    controller.run(stop).await.unwrap();
    assert_eq!(indexer.len(), 2);
}
