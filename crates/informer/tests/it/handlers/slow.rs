//! Tests that a handler that blocks or panics does not affect the informer or other handlers.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Event, EventHandler, shared_informer::ListenerBuffer};
use kube_informer_apiserver::Server;
use tokio::{sync::Semaphore, time::sleep};

use super::Gated;
use crate::setting::{LONG, Trace, builder, pod, run, show};

#[tokio::test(start_paused = true)]
async fn a_waiting_handler_delays_no_other_handler() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let gate = Arc::new(Semaphore::new(0));
    let (slow, quick) = (Trace::default(), Trace::default());
    let stuck = informer
        .pods
        .handler(Gated(Arc::clone(&gate), slow.clone()))
        .register()
        .unwrap();
    let registration = quick.listen(&informer.pods);
    registration.wait_for_sync().deadline(LONG).await.unwrap();
    for n in 0..50 {
        server.create(pod(&format!("p{n}"))).unwrap();
    }
    informer
        .pods
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    while registration.depth() > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(quick.take().lines().count(), 1 + 1 + 50);
    assert_eq!(slow.take(), "");
    assert_eq!(
        stuck.depth(),
        1 + 1 + 50,
        "the list, the sync marker, and one per change"
    );
    assert!(!stuck.has_synced());

    gate.add_permits(100);
    informer.pods.handlers_idle().await;
    assert_eq!(slow.take().lines().count(), 52);
    informer.stop().await;
}

#[tokio::test]
async fn a_handler_that_blocks_its_dedicated_thread_delays_no_other_handler() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (let_go, blocked) = std::sync::mpsc::channel::<()>();
    let heard = Trace::default();
    let notes = heard.clone();
    let blocking = informer
        .pods
        .on_add(move |pod, _| {
            blocked.recv().unwrap();
            notes.note(pod.name());
        })
        .dedicated_thread()
        .register()
        .unwrap();
    let quick = Trace::default();
    quick
        .listen(&informer.pods)
        .wait_for_sync()
        .deadline(LONG)
        .await
        .unwrap();
    server.create(pod("b")).unwrap();
    // The runtime of this test has one thread: if the handler blocked it, this wait would never end.
    informer
        .pods
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    assert_eq!(heard.take(), "");
    let_go.send(()).unwrap();
    let_go.send(()).unwrap();
    blocking.wait_for_sync().deadline(LONG).await.unwrap();
    informer.pods.handlers_idle().await;
    assert_eq!(heard.take(), "a\nb\n");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_block_buffer_blocks_the_informer_but_not_its_commands() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let gate = Arc::new(Semaphore::new(0));
    let heard = Trace::default();
    informer
        .pods
        .handler(Gated(Arc::clone(&gate), heard.clone()))
        .buffer(ListenerBuffer::Block(NonZeroUsize::new(3).unwrap()))
        .register()
        .unwrap();
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    for n in 0..20 {
        server.create(pod(&format!("p{n:02}"))).unwrap();
    }
    sleep(Duration::from_secs(60)).await;
    let reached = informer.pods.indexer().len();
    assert!(
        reached < 10,
        "{reached} objects in the cache while the handler is stuck"
    );
    // The informer still processes commands.
    informer
        .pods
        .add_index("name", |pod: &Pod| pod.metadata.name.clone())
        .await
        .unwrap();
    let late = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&late);
    let registration = informer
        .pods
        .on_add(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .register()
        .unwrap();
    registration.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(late.load(Ordering::Relaxed), reached);

    gate.add_permits(100);
    informer.caught_up(&server).await;
    assert_eq!(heard.take().lines().count(), 22);
    assert_eq!(late.load(Ordering::Relaxed), 21);
    informer.stop().await;
}

/// A handler that records its events, and panics for pods named `bad…`.
struct Panicking(Trace);

impl EventHandler<Pod> for Panicking {
    async fn handle(&mut self, event: Event<Pod>) {
        let text = show(&event);
        assert!(!text.contains("/bad"), "planted");
        self.0.note(text);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_the_next_event_is_delivered_a_second_later_and_sync_completes() {
    let server = Server::builder()
        .seed([pod("a"), pod("bad"), pod("c")])
        .build();
    let informer = run(builder(&server));
    let (own, other) = (Trace::default(), Trace::default());
    let panicking = informer
        .pods
        .handler(Panicking(own.clone()))
        .register()
        .unwrap();
    let registration = other.listen(&informer.pods);
    registration.wait_for_sync().deadline(LONG).await.unwrap();
    sleep(Duration::from_millis(900)).await;
    assert_eq!(own.take(), "add default/a@1 (initial)\n");
    assert_eq!(other.take().lines().count(), 4);

    panicking
        .wait_for_sync()
        .deadline(Duration::from_secs(2))
        .await
        .unwrap();
    expect![[r#"
        add default/c@3 (initial)
        synced
    "#]]
    .assert_eq(&own.take());
    informer.stop().await;
}
