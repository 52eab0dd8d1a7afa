//! Tests which objects the cache contains while a handler processes an event.
//!
//! The cache must already contain the change that the event reports. If a list delivered the change and the
//! informer's queue is `InOrder`, the cache must contain the complete list.

use std::time::Duration;

use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, Indexer,
    queue::{DeltaFifo, InOrder, Queue},
};
use kube_informer_apiserver::Server;
use tokio::time::sleep;

use crate::setting::{Trace, builder, labelled, pod, run, show};

/// A handler that records each event with the revision and the objects of the cache.
struct Looking {
    cache: Indexer<Pod>,
    trace: Trace,
}

impl EventHandler<Pod> for Looking {
    async fn handle(&mut self, event: Event<Pod>) {
        let cache = self.cache.snapshot();
        let line = format!("{} — {}: {cache:?}", show(&event), cache.revision());
        self.trace.note(line);
    }
}

/// Applies `change` while the watch is disconnected, and returns the handler's trace of the relist.
async fn relisted(queue: impl Queue<Pod> + 'static, change: impl Fn(&Server)) -> String {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let informer = run(builder(&server).queue(queue));
    let trace = Trace::default();
    let handler = Looking {
        cache: informer.pods.indexer(),
        trace: trace.clone(),
    };
    informer.pods.handler(handler).register().unwrap();
    informer.caught_up(&server).await;
    // Long enough for the watch not to count as very short.
    sleep(Duration::from_secs(2)).await;
    trace.take();
    server.faults().cut_watches();
    change(&server);
    server.faults().expire_history();
    informer.caught_up(&server).await;
    informer.stop().await;
    trace.take()
}

async fn check(change: impl Fn(&Server), trace: Expect) {
    let in_order = relisted(InOrder::new(), &change).await;
    trace.assert_eq(&in_order);
    // With a queue by key the cache does not have the whole list yet, so only the events are compared.
    let per_key = relisted(DeltaFifo::new(), &change).await;
    let events = |story: &str| {
        let events = story.lines().filter_map(|line| line.split_once(" — "));
        let mut events: Vec<_> = events.map(|(event, _)| event.to_owned()).collect();
        events.sort();
        events
    };
    assert_eq!(events(&per_key), events(&in_order));
}

#[tokio::test(start_paused = true)]
async fn callbacks_of_a_list_see_the_whole_list_and_its_revision_in_the_cache() {
    check(
        |server| {
            server.create(pod("d")).unwrap();
        },
        expect![[r#"
            add default/d@4 — 4: [default/a@1, default/b@2, default/c@3, default/d@4]
        "#]],
    )
    .await;
    check(
        |server| {
            for name in ["a", "b", "c"] {
                server
                    .delete("v1", "pods", &format!("default/{name}"))
                    .unwrap();
            }
        },
        expect![[r#"
            delete default/a@1 (final state unknown) — 6: []
            delete default/b@2 (final state unknown) — 6: []
            delete default/c@3 (final state unknown) — 6: []
        "#]],
    )
    .await;
    check(
        |server| {
            server.update(labelled("c", "x")).unwrap();
            server.create(pod("d")).unwrap();
            server.delete("v1", "pods", "default/b").unwrap();
        },
        expect![[r#"
            delete default/b@2 (final state unknown) — 6: [default/a@1, default/c@4, default/d@5]
            update default/c@3 → 4 (relist) — 6: [default/a@1, default/c@4, default/d@5]
            add default/d@5 — 6: [default/a@1, default/c@4, default/d@5]
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn callbacks_of_a_watch_see_their_event_in_the_cache() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let trace = Trace::default();
    let handler = Looking {
        cache: informer.pods.indexer(),
        trace: trace.clone(),
    };
    informer.pods.handler(handler).register().unwrap();
    informer.caught_up(&server).await;
    server.update(labelled("a", "x")).unwrap();
    informer.caught_up(&server).await;
    server.delete("v1", "pods", "default/a").unwrap();
    informer.caught_up(&server).await;
    expect![[r#"
        add default/a@1 (initial) — 1: [default/a@1]
        synced — 1: [default/a@1]
        update default/a@1 → 2 — 2: [default/a@2]
        delete default/a@3 — 3: []
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}
