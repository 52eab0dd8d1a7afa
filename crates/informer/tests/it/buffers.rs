//! Tests the event buffers of handlers that are slower than the watch.
//!
//! The tests check which events a buffer merges, and the number of waiting events that the handler's status
//! reports.

mod bounds;
mod removal;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use expect_test::expect;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler,
    shared_informer::{HandlerStatus, ListenerBuffer, Registration},
};
use kube_informer_apiserver::Server;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::setting::{LONG, Running, Trace, builder, labelled, pod, run, show};

/// A handler that acquires a permit for each event, and then records the event in the trace.
struct Gated(Arc<Semaphore>, Trace);

impl EventHandler<Pod> for Gated {
    async fn handle(&mut self, event: Event<Pod>) {
        self.0.acquire().await.unwrap().forget();
        self.1.note(show(&event));
    }
}

/// Registers a handler that records `permits` events and then blocks.
///
/// Returns a semaphore, the trace of the handled events, and the handler's registration. Each permit added to
/// the semaphore lets the handler record one more event.
fn stuck(
    informer: &Running,
    buffer: ListenerBuffer,
    permits: usize,
) -> (Arc<Semaphore>, Trace, Registration<Pod>) {
    let (gate, heard) = (Arc::new(Semaphore::new(permits)), Trace::default());
    let handler = Gated(Arc::clone(&gate), heard.clone());
    let handler = informer.pods.handler(handler).name("stuck").buffer(buffer);
    (gate, heard, handler.register().unwrap())
}

/// Waits until the cache contains all changes on the server. Does not wait for the handlers.
async fn cached(informer: &Running, server: &Server) {
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    informer
        .pods
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    sleep(Duration::from_millis(1)).await;
}

/// Makes 100 updates of pod `a`, creates and deletes pod `b` 100 times, and recreates pod `c` once.
fn change_objects(server: &Server) {
    for n in 0..100 {
        server.update(labelled("a", &n.to_string())).unwrap();
        server.create(pod("b")).unwrap();
        server.delete("v1", "pods", "default/b").unwrap();
    }
    server.delete("v1", "pods", "default/c").unwrap();
    server.create(pod("c")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_coalesce_buffer_holds_the_latest_state_of_each_object_while_its_handler_is_blocked() {
    let server = Server::builder()
        .seed([pod("a"), pod("c"), pod("d")])
        .build();
    let informer = run(builder(&server));
    let (gate, heard, handler) = stuck(&informer, ListenerBuffer::Coalesce, 4);
    informer.caught_up(&server).await;
    heard.take();
    server.update(labelled("d", "x")).unwrap();
    cached(&informer, &server).await;

    change_objects(&server);
    cached(&informer, &server).await;
    assert_eq!(handler.depth(), 1 + 2, "d is being handled, a and c wait");
    // 99 updates of a, 100 additions and deletions of b.
    assert_eq!(handler.coalesced(), 99 + 200);
    gate.add_permits(100);
    informer.caught_up(&server).await;
    expect![[r#"
        update default/d@3 → 4
        update default/a@1 → 302
        delete default/c@305
        add default/c@306
    "#]]
    .assert_eq(&heard.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_not_polled_can_coalesce() {
    let server = Server::builder()
        .seed([pod("a"), pod("c"), pod("d")])
        .build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let events = informer.pods.subscribe_with(ListenerBuffer::Coalesce);
    let mut events = events.unwrap();
    change_objects(&server);
    cached(&informer, &server).await;
    let status = events.status();
    assert_eq!((status.depth, status.told, status.synced), (4, 0, false));

    let mut heard = Vec::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        heard.push(show(&event));
    }
    expect![[r#"
        [
            "add default/a@301 (initial)",
            "add default/d@3 (initial)",
            "synced",
            "add default/c@305",
        ]"#]]
    .assert_eq(&format!("{heard:#?}"));
    let status = events.status();
    assert_eq!((status.depth, status.told, status.synced), (0, 4, true));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_is_merged_into_the_pending_events_of_a_blocked_handler() {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let informer = run(builder(&server));
    let (gate, heard, handler) = stuck(&informer, ListenerBuffer::Coalesce, 4);
    informer.caught_up(&server).await;
    heard.take();
    server.update(labelled("c", "x")).unwrap();
    cached(&informer, &server).await;
    for n in 0..5 {
        server.update(labelled("a", &n.to_string())).unwrap();
        cached(&informer, &server).await;
        server.faults().cut_watches();
        server.update(labelled("a", "missed")).unwrap();
        server.create(pod(&format!("p{n}"))).unwrap();
        server.faults().expire_history();
        cached(&informer, &server).await;
    }
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/b").unwrap();
    server.faults().expire_history();
    cached(&informer, &server).await;
    assert_eq!(
        handler.depth(),
        1 + 7,
        "c is being handled; a, b and five others wait"
    );
    gate.add_permits(100);
    informer.caught_up(&server).await;
    let heard = heard.take();
    assert_eq!(heard.lines().count(), 1 + 7, "{heard}");
    assert!(heard.contains("update default/a@1 → "), "{heard}");
    assert!(heard.contains("delete default/b@2 (final"), "{heard}");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lag_is_the_age_of_the_oldest_notification_and_zero_when_idle() {
    let server = Server::builder().build();
    let informer = run(builder(&server));
    for buffer in [
        ListenerBuffer::Grow,
        ListenerBuffer::Coalesce,
        ListenerBuffer::Block(NonZeroUsize::MAX),
    ] {
        let (gate, heard, handler) = stuck(&informer, buffer, 1);
        informer.caught_up(&server).await;
        assert_eq!(handler.lag(), Duration::ZERO);
        server.create(pod("a")).unwrap();
        cached(&informer, &server).await;
        sleep(Duration::from_secs(5)).await;
        server.create(pod("b")).unwrap();
        server.create(pod("c")).unwrap();
        cached(&informer, &server).await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(handler.lag().as_secs(), 7, "a is being handled");
        gate.add_permits(1);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(handler.lag().as_secs(), 2, "b is being handled");
        assert_eq!(handler.status().lag, handler.lag());
        gate.add_permits(10);
        informer.caught_up(&server).await;
        assert_eq!((handler.lag(), handler.depth()), (Duration::ZERO, 0));
        assert_eq!(heard.take().lines().count(), 4);
        handler.remove().await;
        for name in ["a", "b", "c"] {
            let name = format!("default/{name}");
            server.delete("v1", "pods", &name).unwrap();
        }
        cached(&informer, &server).await;
    }
    informer.stop().await;
}

fn lines(handlers: &[HandlerStatus]) -> String {
    let line = |status: &HandlerStatus| {
        let HandlerStatus {
            name,
            buffer,
            depth,
            lag,
            told,
            coalesced,
            discarded,
            panics,
            synced,
            ..
        } = status;
        let lag = lag.as_secs();
        format!(
            "{name} {buffer:?}: {depth} for {lag} s, {told} told, {coalesced} coalesced, \
             {discarded} discarded, {panics} panics{}\n",
            if *synced { ", synced" } else { "" }
        )
    };
    handlers.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn an_informer_lists_the_status_of_its_handlers_and_subscriptions() {
    let server = Server::builder().seed([pod("a"), pod("bad")]).build();
    let informer = run(builder(&server));
    let pods = &informer.pods;
    assert_eq!(pods.handlers(), []);
    let (_gate, _, stuck) = stuck(&informer, ListenerBuffer::Coalesce, 3);
    let panics = pods.on_add(|pod, _| assert_ne!(pod.name(), "bad", "planted"));
    let panics = panics.name("panics").register().unwrap();
    let events = pods.subscribe().unwrap();
    let removed = pods.on_delete(|_| {}).register().unwrap();
    removed.remove().await;
    cached(&informer, &server).await;
    for n in 0..3 {
        server.update(labelled("a", &n.to_string())).unwrap();
    }
    cached(&informer, &server).await;
    server.update(labelled("a", "4")).unwrap();
    cached(&informer, &server).await;
    sleep(Duration::from_secs(3)).await;
    expect![[r#"
        stuck Coalesce: 2 for 3 s, 4 told, 2 coalesced, 0 discarded, 0 panics, synced
        panics Grow: 0 for 0 s, 7 told, 0 coalesced, 0 discarded, 1 panics, synced
        subscription of pods Grow: 6 for 3 s, 0 told, 0 coalesced, 0 discarded, 0 panics
    "#]]
    .assert_eq(&lines(&pods.handlers()));
    drop(events);
    drop(panics);
    sleep(Duration::from_millis(1)).await;
    let names: Vec<_> = pods.handlers().iter().map(|h| h.name.to_string()).collect();
    assert_eq!(
        names,
        ["stuck", "panics"],
        "a detached handler stays registered"
    );

    let Running { .. } = informer;
    let status = stuck.status();
    assert_eq!((status.depth, status.discarded), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_stopped_handler_counts_the_discarded_events() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (gate, _, handler) = stuck(&informer, ListenerBuffer::Grow, 2);
    informer.caught_up(&server).await;
    for n in 0..4 {
        server.update(labelled("a", &n.to_string())).unwrap();
    }
    cached(&informer, &server).await;
    let mut stopping = std::pin::pin!(informer.stop());
    assert!(stopping.as_mut().now_or_never().is_none());
    sleep(Duration::from_millis(1)).await;
    gate.add_permits(1);
    let pods = stopping.await;
    assert_eq!(pods.handlers(), [], "no handler is left");
    let status = handler.status();
    assert_eq!((status.told, status.discarded), (3, 3));
    assert_eq!((status.depth, status.lag), (0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_blocked_late_handler_on_a_large_cache_holds_one_message_and_delays_no_other_handler() {
    let names: Vec<_> = (0..5000).map(|n| format!("p{n}")).collect();
    let server = Server::builder()
        .seed(names.iter().map(|name| pod(name)))
        .build();
    let informer = run(builder(&server));
    let quick = Trace::default();
    quick.listen(&informer.pods);
    informer.caught_up(&server).await;
    quick.take();
    for buffer in [ListenerBuffer::Grow, ListenerBuffer::Coalesce] {
        let (_gate, _, late) = stuck(&informer, buffer, 0);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(
            late.depth(),
            2,
            "the cached objects, which are being handled, and the sync marker"
        );
        let depth = |changes: usize| (late.depth(), quick.len(), changes);
        for changes in 1..=3 {
            server.update(labelled("p7", &changes.to_string())).unwrap();
            cached(&informer, &server).await;
            let waits = match buffer {
                ListenerBuffer::Coalesce => 1,
                _ => changes,
            };
            assert_eq!(depth(changes), (2 + waits, changes, changes));
        }
        let index = |pod: &Pod| pod.metadata.name.clone();
        let name = format!("{buffer:?}");
        let added = informer.pods.add_index(&name, index);
        timeout(LONG, added)
            .await
            .expect("the index is added")
            .unwrap();
        quick.take();
    }
}
