//! Handlers: joining, leaving, slow ones, panicking ones, and what a stop does.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, ObjectName,
    shared_informer::{ListenerBuffer, Stopped},
    status::SyncFailure,
};
use kube_informer_apiserver::Server;
use tokio::{sync::Semaphore, time::sleep};

use crate::setting::{LONG, Trace, builder, labelled, listing, pod, requests, run, show};

#[tokio::test(start_paused = true)]
async fn a_late_handler_hears_the_cache_and_then_everything_after_it() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(listing(&server));
    let early = Trace::default();
    early.listen(&informer.pods);
    informer.caught_up(&server).await;
    server.update(labelled("a", "x")).unwrap();
    informer.caught_up(&server).await;

    let late = Trace::default();
    let registration = late.listen(&informer.pods);
    assert!(!registration.has_synced());
    server.delete("v1", "pods", "default/b").unwrap();
    registration.wait_for_sync().deadline(LONG).await.unwrap();
    assert!(registration.has_synced());
    informer.caught_up(&server).await;

    expect![[r#"
        add default/a@3 (initial)
        add default/b@2 (initial)
        synced
        delete default/b@4
    "#]]
    .assert_eq(&late.take());
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        update default/a@1 → 3
        delete default/b@4
    "#]]
    .assert_eq(&early.take());
    expect![[r#"
        list 0 limit=500: 200
        watch 2: 200
    "#]]
    .assert_eq(&requests(&server));
    informer.stop().await;
}

/// Handles one event per permit.
struct Gated(Arc<Semaphore>, Trace);

impl EventHandler<Pod> for Gated {
    async fn handle(&mut self, event: Event<Pod>) {
        self.0.acquire().await.unwrap().forget();
        self.1.note(show(&event));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_holds_back_nobody() {
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
        "the list, the marker, and one each"
    );
    assert!(!stuck.has_synced());

    gate.add_permits(100);
    informer.pods.handlers_idle().await;
    assert_eq!(slow.take().lines().count(), 52);
    informer.stop().await;
}

#[tokio::test]
async fn a_handler_that_blocks_its_own_thread_holds_back_nobody() {
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
    // The runtime of this test has one thread: were it blocked, this would never resolve.
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
async fn closures_may_be_sync_or_async_and_each_is_optional() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let trace = Trace::default();
    let (adds, updates, deletes) = (trace.clone(), trace.clone(), trace.clone());
    informer
        .pods
        .on_add(move |pod, initial| {
            let adds = adds.clone();
            async move {
                sleep(Duration::from_millis(5)).await;
                adds.note(format!("+ {} {initial}", pod.object_name()));
            }
        })
        .on_update(move |old, new| {
            updates.note(format!("~ {} → {}", old.revision(), new.revision()));
        })
        .on_delete(move |gone| deletes.note(format!("- {}", gone.object_name())))
        .register()
        .unwrap();
    informer.pods.on_delete(|_| {}).register().unwrap();
    informer.caught_up(&server).await;
    server.update(labelled("a", "x")).unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    informer.caught_up(&server).await;
    expect![[r#"
        + default/a true
        ~ 1 → 2
        - default/a
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

struct Panicking(Trace);

impl EventHandler<Pod> for Panicking {
    async fn handle(&mut self, event: Event<Pod>) {
        let text = show(&event);
        assert!(!text.contains("/bad"), "planted");
        self.0.note(text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_caught_the_next_event_comes_a_second_later_and_sync_completes() {
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

#[tokio::test(start_paused = true)]
async fn a_removed_handler_ends_its_callback_and_hears_no_more() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    let gate = Arc::new(Semaphore::new(0));
    let heard = Trace::default();
    let gated = informer
        .pods
        .handler(Gated(Arc::clone(&gate), heard.clone()))
        .register()
        .unwrap();
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    sleep(Duration::from_millis(1)).await;

    let removed = gated.remove();
    tokio::pin!(removed);
    assert!(
        removed.as_mut().now_or_never().is_none(),
        "a callback is in progress"
    );
    gate.add_permits(10);
    removed.await;
    assert_eq!(heard.take(), "add default/a@1 (initial)\n");
    server.create(pod("c")).unwrap();
    informer.caught_up(&server).await;
    assert_eq!(heard.take(), "");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_handler_registered_twice_is_two_registrations() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let trace = Trace::default();
    let first = trace.listen(&informer.pods);
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    assert_eq!(trace.take().matches("add").count(), 2);
    first.remove().await;
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "add default/b@2\n");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_callback_in_progress_and_counts_what_it_discards() {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let informer = run(builder(&server));
    let gate = Arc::new(Semaphore::new(0));
    let heard = Trace::default();
    informer
        .pods
        .handler(Gated(Arc::clone(&gate), heard.clone()))
        .register()
        .unwrap();
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    server.create(pod("d")).unwrap();
    informer.pods.wait_for_revision(4, LONG).await.unwrap();

    let stopping = informer.stop();
    tokio::pin!(stopping);
    assert!(stopping.as_mut().now_or_never().is_none());
    sleep(Duration::from_secs(5)).await;
    assert!(
        stopping.as_mut().now_or_never().is_none(),
        "a callback is in progress"
    );
    gate.add_permits(100);
    let pods = stopping.await;
    assert_eq!(heard.take(), "add default/a@1 (initial)\n");
    // Two of the list, the marker, and d.
    assert_eq!(pods.status().get().discarded, 4);

    assert!(pods.is_stopped());
    assert_eq!(pods.on_delete(|_| {}).register().unwrap_err(), Stopped);
    pods.add_index("late", |_| None::<String>)
        .await
        .unwrap_err();
    assert_eq!(pods.indexer().len(), 4, "the cache can still be read");
    let waited = pods.wait_for_sync().await.unwrap_err();
    assert_eq!(waited.failure, SyncFailure::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_drain_at_the_stop_tells_the_rest_first() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let (pods, controller) = builder(&server).build();
    let heard = Trace::default();
    let notes = heard.clone();
    pods.on_add(move |pod, _| {
        let notes = notes.clone();
        async move {
            sleep(Duration::from_secs(10)).await;
            notes.note(pod.name());
        }
    })
    .register()
    .unwrap();
    let synced = pods.wait_for_sync();
    let stop = async { synced.await.unwrap() };
    controller
        .drain_at_shutdown(Duration::from_secs(60))
        .run(stop)
        .await
        .unwrap();
    assert_eq!(heard.take(), "a\nb\n");
    assert_eq!(pods.status().get().discarded, 0);
}

#[tokio::test(start_paused = true)]
async fn no_task_is_left_after_a_stop_a_drop_or_without_a_run() {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let server = Server::builder().seed([pod("a")]).build();
    let client = server.client();
    let build = || {
        kube_informer::SharedInformer::<Pod>::builder(kube_informer::client::ListWatch::<Pod>::new(
            client.clone(),
        ))
    };
    sleep(Duration::from_secs(1)).await;
    let baseline = alive();

    let informer = run(build());
    Trace::default()
        .listen(&informer.pods)
        .wait_for_sync()
        .await
        .unwrap();
    assert!(alive() >= baseline + 4, "run, loop, reflector, listener");
    let pods = informer.stop().await;
    assert_eq!(alive(), baseline);
    drop(pods);

    let (pods, controller) = build().build();
    let registration = Trace::default().listen(&pods);
    drop(controller);
    let failed = registration.wait_for_sync().await.unwrap_err();
    assert_eq!(failed.failure, SyncFailure::Ended);
    registration.remove().await;
    assert_eq!(alive(), baseline);

    let (pods, controller) = build().build();
    Trace::default().listen(&pods);
    let mut running = Box::pin(controller.run(std::future::pending()));
    tokio::select! {
        biased;
        _ = &mut running => unreachable!("nobody stops it"),
        synced = pods.wait_for_sync() => synced.unwrap(),
    }
    drop(running);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(alive(), baseline);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_the_same_events_as_a_stream() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let events = informer.pods.subscribe().unwrap();
    server.create(pod("b")).unwrap();
    let heard: Vec<_> = events.take(3).map(|event| show(&event)).collect().await;
    assert_eq!(
        heard,
        ["add default/a@1 (initial)", "synced", "add default/b@2"]
    );

    let rest = informer.pods.subscribe().unwrap();
    informer.stop().await;
    let rest: Vec<_> = rest.map(|event| show(&event)).collect().await;
    assert!(rest.len() <= 3, "a stream ends with its informer: {rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_block_buffer_holds_back_the_informer_but_not_its_commands() {
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
    // Commands are still served.
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

#[tokio::test(start_paused = true)]
async fn a_filter_turns_updates_into_adds_and_deletes() {
    let server = Server::builder()
        .seed([labelled("a", "web"), labelled("b", "db")])
        .build();
    let informer = run(builder(&server));
    let trace = Trace::default();
    let (adds, updates, deletes) = (trace.clone(), trace.clone(), trace.clone());
    informer
        .pods
        .on_add(move |pod, initial| adds.note(format!("+ {pod:?} {initial}")))
        .on_update(move |old, new| updates.note(format!("~ {old:?} → {}", new.revision())))
        .on_delete(move |gone| deletes.note(format!("- {:?}", gone.object().unwrap())))
        .filter(|pod| pod.labels().get("app") == Some("web"))
        .register()
        .unwrap();
    informer.caught_up(&server).await;
    for (name, value) in [("b", "web"), ("a", "db"), ("b", "cache"), ("a", "x")] {
        server.update(labelled(name, value)).unwrap();
    }
    server.update(labelled("b", "web")).unwrap();
    let mut other = labelled("b", "web");
    other["metadata"]["annotations"] = serde_json::json!({"n": "1"});
    server.update(other).unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    informer.caught_up(&server).await;
    expect![[r#"
        + default/a@1 true
        + default/b@3 false
        - default/a@1
        - default/b@3
        + default/b@7 false
        ~ default/b@7 → 8
        - default/b@10
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_are_idle_have_heard_what_the_cache_has() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    informer
        .pods
        .on_update(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        })
        .register()
        .unwrap();
    informer.caught_up(&server).await;
    for n in 1..=300 {
        server.update(labelled("a", &n.to_string())).unwrap();
        informer.caught_up(&server).await;
        assert_eq!(heard.load(Ordering::Relaxed), n);
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_hears_of_a_change_after_the_cache_has_it() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    let (trace, indexer) = (Trace::default(), informer.pods.indexer());
    let cached = move |name: &ObjectName| {
        let object = indexer.get(name);
        object.map_or("gone".to_owned(), |object| object.revision().to_string())
    };
    let cached = [cached.clone(), cached.clone(), cached];
    let [cached_add, cached_update, cached_delete] = cached;
    let notes = [trace.clone(), trace.clone(), trace.clone()];
    let [first, second, third] = notes;
    informer
        .pods
        .on_add(move |pod, _| first.note(format!("{pod:?}: {}", cached_add(pod.object_name()))))
        .on_update(move |_, pod| {
            second.note(format!("{pod:?}: {}", cached_update(pod.object_name())));
        })
        .on_delete(move |gone| {
            let name = gone.object_name();
            third.note(format!("-{name}: {}", cached_delete(name)));
        })
        .register()
        .unwrap();
    informer.caught_up(&server).await;
    server.update(labelled("a", "x")).unwrap();
    informer.caught_up(&server).await;
    server.delete("v1", "pods", "default/b").unwrap();
    informer.caught_up(&server).await;
    expect![[r#"
        default/a@1: 1
        default/b@2: 2
        default/a@3: 3
        -default/b: gone
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}
