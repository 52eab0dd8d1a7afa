//! Tests of the cache with custom keys, failing key functions, and objects without a `resourceVersion`.
//!
//! Also tests the events of a relist, resyncs with a `DeltaFifo`, and `Snapshot::revision`.

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Object,
    indexer::{self, Indexers},
    object::{Nameless, ObjectName},
    queue::{DeltaFifo, Queue},
    reflector::Delta,
};
use kube_informer_apiserver::Server;
use serde_json::json;
use tokio::time::sleep;

use super::broken;
use crate::setting::{Running, Trace, builder, labelled, listing, pod, requests, run};

/// Sleeps for two seconds, because a watch that ends without events in its first second counts as failed.
async fn settle() {
    sleep(Duration::from_secs(2)).await;
}

fn cache(informer: &Running) -> String {
    format!("{:?}", informer.pods.indexer())
}

#[tokio::test(start_paused = true)]
async fn a_relist_delivers_updates_when_its_items_are_sync_deltas() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server).queue(DeltaFifo::new().emit_replaced(false)));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;
    server.faults().cut_watches();
    server.update(labelled("a", "x")).unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        update default/a@1 → 3 (relist)
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_over_a_delta_fifo_leaves_broken_objects_broken() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server)
        .queue(DeltaFifo::new())
        .resync(Duration::from_secs(10)));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;
    server.update(broken("a")).unwrap();
    informer.caught_up(&server).await;
    trace.take();
    sleep(Duration::from_secs(20)).await;
    expect![[r#"
        update default/b@2 → 2 (resync)
        update default/b@2 → 2 (resync)
    "#]]
    .assert_eq(&trace.take());
    assert_eq!(informer.pods.status().get().broken_count, 1);
    assert_eq!(cache(&informer), "[default/a@3 (broken), default/b@2]");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_with_custom_keys_matches_the_server() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let queue = DeltaFifo::new().key_func(|object: &Object<Pod>| {
        Ok::<_, String>(ObjectName::cluster(&format!("key-of-{}", object.name())))
    });
    let informer = run(builder(&server)
        .queue(queue)
        .resync(Duration::from_secs(60)));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;

    server.delete("v1", "pods", "default/b").unwrap();
    informer.caught_up(&server).await;
    assert_eq!(cache(&informer), "[default/a@1]");

    server.create(pod("c")).unwrap();
    informer.caught_up(&server).await;
    settle().await;
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/c").unwrap();
    server.update(labelled("a", "x")).unwrap();
    server.create(pod("d")).unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;
    assert_eq!(cache(&informer), "[default/a@6, default/d@7]");

    trace.note("a resync");
    sleep(Duration::from_secs(60)).await;
    informer.pods.handlers_idle().await;
    assert_eq!(cache(&informer), "[default/a@6, default/d@7]");
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        delete default/b@3
        add default/c@4
        update default/a@1 → 6 (relist)
        add default/d@7
        delete default/c@4 (final state unknown)
        a resync
        update default/a@6 → 6 (resync)
        update default/d@7 → 7 (resync)
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_object_without_a_key_is_reported_and_omitted() {
    let server = Server::builder()
        .seed([pod("a"), pod("bad"), pod("c")])
        .build();
    let queue = DeltaFifo::new().key_func(|object: &Object<Pod>| {
        let keyed = !object.name().starts_with("bad");
        keyed.then(|| object.object_name().clone()).ok_or("no key")
    });
    let errors = Trace::default();
    let heard = errors.clone();
    let informer = run(builder(&server)
        .queue(queue)
        .resync(Duration::from_secs(10))
        .on_error(move |error| heard.note(error.to_string())));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;
    assert_eq!(cache(&informer), "[default/a@1, default/c@3]");
    assert_eq!(errors.take(), "default/bad has no key: no key\n");

    server.create(pod("bad-too")).unwrap();
    server.update(labelled("c", "x")).unwrap();
    informer.caught_up(&server).await;
    assert_eq!(cache(&informer), "[default/a@1, default/c@5]");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(errors.take(), "default/bad-too has no key: no key\n");
    assert!(!trace.take().contains("bad"));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_removes_the_revision_loses_no_event() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer =
        run(listing(&server).transform(|pod: &mut Pod| pod.metadata.resource_version = None));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;
    server.update(labelled("a", "1")).unwrap();
    informer.caught_up(&server).await;
    settle().await;
    trace.note("a cut watch");
    server.faults().cut_watches();
    server.create(pod("c")).unwrap();
    informer.caught_up(&server).await;
    settle().await;
    trace.note("a relist");
    server.faults().cut_watches();
    server.update(labelled("a", "2")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;

    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        update default/a@1 → 3
        a cut watch
        add default/c@4
        a relist
        delete default/b@2 (final state unknown)
        update default/a@3 → 5 (relist)
    "#]]
    .assert_eq(&trace.take());
    expect![[r#"
        list 0 limit=500: 200
        watch 2: 200
        list 3 limit=1: 200
        watch 3: 200
        watch 4: 200
        list 4: 200
        watch 6: 200
    "#]]
    .assert_eq(&requests(&server));
    let pods = informer.pods.lister().namespace("default");
    let labels = pods.get("a").unwrap().metadata.labels.clone();
    assert_eq!(labels.unwrap()["app"], "2");
    informer.stop().await;
}

fn typed(name: &str, revision: Option<u64>, app: &str) -> Pod {
    let mut pod = labelled(name, app);
    pod["metadata"]["resourceVersion"] = json!(revision.map(|revision| revision.to_string()));
    serde_json::from_value(pod).unwrap()
}

fn by_app() -> Indexers<Pod> {
    Indexers::new().with("app", |pod: &Pod| {
        pod.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("app").cloned())
    })
}

#[test]
fn a_list_of_objects_without_revisions_replaces_what_they_were() -> Result<(), Nameless<Pod>> {
    let (indexer, mut writer) = indexer::new(by_app()).unwrap();
    writer.replace([typed("a", None, "red"), typed("b", None, "red")], "")?;
    writer.replace([typed("a", None, "blue"), typed("b", None, "red")], "")?;
    let under = |app| format!("{:?}", indexer.index_keys("app", app).unwrap());
    assert_eq!(under("blue"), "[default/a]");
    assert_eq!(under("red"), "[default/b]");
    Ok(())
}

#[test]
fn no_snapshot_over_a_delta_fifo_claims_a_revision_it_has_not_reached() {
    let (indexer, mut writer) = indexer::new(by_app()).unwrap();
    let object = |name, revision| Object::new(typed(name, Some(revision), "red")).unwrap();
    let mut fifo = DeltaFifo::new();
    for delta in [
        Delta::added(object("a", 1)),
        Delta::added(object("b", 2)),
        Delta::updated(object("a", 3)),
    ] {
        Queue::push(&mut fifo, delta, &writer).unwrap();
    }
    let mut trace = Vec::new();
    while let Some(batch) = fifo.pop_batch(2) {
        writer.apply(batch);
        let snapshot = indexer.snapshot();
        trace.push(format!("up to {}: {snapshot:?}\n", snapshot.revision()));
    }
    expect![[r#"
        up to 1: [default/a@3]
        up to 3: [default/a@3, default/b@2]
    "#]]
    .assert_eq(&trace.concat());
}

#[test]
fn a_resync_passes_over_what_waits_under_a_key_that_is_not_its_name() {
    let (_, mut writer) = indexer::new(by_app()).unwrap();
    writer.add(typed("a", Some(1), "red")).unwrap();
    let mut fifo = DeltaFifo::new().key_func(|object: &Object<Pod>| {
        Ok::<_, String>(ObjectName::cluster(&format!("key-of-{}", object.name())))
    });
    let newer = Object::new(typed("a", Some(2), "blue")).unwrap();
    Queue::push(&mut fifo, Delta::updated(newer), &writer).unwrap();
    fifo.resync(&writer);
    let waiting: Vec<_> = fifo.keys().map(ObjectName::as_str).collect();
    assert_eq!(
        waiting,
        ["key-of-a"],
        "otherwise the older state would be applied last"
    );
    assert_eq!(Queue::len(&fifo), 1);
}
