//! Tests of the registration of handlers and of the events that each handler receives.

mod slow;
mod stops;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Event, EventHandler, ObjectName};
use kube_informer_apiserver::Server;
use tokio::{sync::Semaphore, time::sleep};

use crate::setting::{LONG, Trace, builder, labelled, listing, pod, requests, run, show};

#[tokio::test(start_paused = true)]
async fn a_late_handler_receives_the_cached_objects_and_then_all_later_changes() {
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

/// A handler that waits for one semaphore permit before it records each event.
struct Gated(Arc<Semaphore>, Trace);

impl EventHandler<Pod> for Gated {
    async fn handle(&mut self, event: Event<Pod>) {
        self.0.acquire().await.unwrap().forget();
        self.1.note(show(&event));
    }
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

#[tokio::test(start_paused = true)]
async fn a_handler_registered_twice_receives_each_event_twice() {
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
async fn a_subscription_delivers_the_events_of_a_handler_as_a_stream() {
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
async fn idle_handlers_have_received_every_change_in_the_cache() {
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
async fn a_handler_receives_a_change_after_the_cache_has_it() {
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
