//! Tests of the end of handlers, informers and factories.
//!
//! Every future that waits for a handler, an informer or a factory to stop or to become idle must complete.
//! Unread events must be delivered or counted as discarded. No task and no cached object may remain.

use std::{
    future::pending,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Event, EventHandler, SharedInformerFactory, shared_informer::ListenerBuffer};
use kube_informer_apiserver::Server;
use tokio::{
    sync::{Semaphore, oneshot},
    time::{sleep, timeout},
};

use super::GUARD;
use crate::setting::{LONG, Trace, builder, factory_builder, pod, run};

/// Starts a factory, and returns while its handler waits for a permit of the semaphore.
async fn in_a_callback(server: &Server) -> (SharedInformerFactory, Arc<Semaphore>, Trace) {
    let factory = factory_builder(server.client()).build();
    let (gate, trace) = (Arc::new(Semaphore::new(0)), Trace::default());
    let held = (Arc::clone(&gate), trace.clone());
    factory
        .informer::<Pod>()
        .on_add(move |pod, _| {
            let (gate, trace) = held.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                trace.note(pod.name());
            }
        })
        .register()
        .unwrap();
    factory.start();
    factory.wait_for_cache_sync().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    (factory, gate, trace)
}

#[tokio::test(start_paused = true)]
async fn every_concurrent_shutdown_of_a_factory_waits_for_the_end() {
    let server = Server::builder().seed([pod("a")]).build();
    let (factory, gate, trace) = in_a_callback(&server).await;
    let (first, second) = (factory.shutdown(), factory.shutdown());
    tokio::pin!(first, second);
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    sleep(Duration::from_secs(60)).await;
    assert!(second.as_mut().now_or_never().is_none(), "a callback runs");
    gate.add_permits(1);
    timeout(LONG, second).await.expect("the callback has ended");
    timeout(LONG, first).await.expect("the callback has ended");
    assert_eq!(trace.take(), "a\n");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_shutdown_of_a_factory_only_stops_waiting() {
    let server = Server::builder().seed([pod("a")]).build();
    let (factory, gate, trace) = in_a_callback(&server).await;
    let given_up = timeout(Duration::from_secs(1), factory.shutdown()).await;
    assert!(given_up.is_err(), "a callback runs");
    sleep(Duration::from_secs(1)).await;
    gate.add_permits(1);
    timeout(LONG, factory.shutdown())
        .await
        .expect("the callback has ended");
    assert_eq!(trace.take(), "a\n", "the callback was not cancelled");
}

#[tokio::test(start_paused = true)]
async fn unread_events_of_a_subscription_are_delivered_after_a_drain_or_counted() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let (pods, controller) = builder(&server).build();
    let events = pods.subscribe().unwrap();
    let synced = pods.wait_for_sync();
    controller
        .drain_at_shutdown(Duration::from_secs(60))
        .run(async { synced.await.unwrap() })
        .await
        .unwrap();
    let discarded = pods.status().get().discarded;
    let told = events.count().await as u64;
    assert_eq!((told, discarded), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_timeout_discards_no_event_of_a_subscription() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let (pods, controller) = builder(&server).build();
    let slow = pods.on_add(|_, _| sleep(Duration::from_secs(60)));
    slow.register().unwrap();
    let events = pods.subscribe().unwrap();
    let synced = pods.wait_for_sync();
    controller
        .drain_at_shutdown(Duration::from_secs(1))
        .run(async {
            synced.await.unwrap();
            sleep(Duration::from_secs(1)).await;
        })
        .await
        .unwrap();
    let discarded = pods.status().get().discarded;
    let told = events.count().await as u64;
    assert_eq!(
        (told, discarded),
        (3, 2),
        "b and the sync marker were not delivered"
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_never_polled_ends_with_an_informer_that_never_ran() {
    let server = Server::builder().build();
    let (pods, controller) = builder(&server).build();
    let events = pods.subscribe().unwrap();
    drop(controller);
    let told = timeout(LONG, events.count()).await;
    assert_eq!(told, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn the_longest_durations_never_expire() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).resync(Duration::from_secs(10)).build();
    let trace = Trace::default();
    pods.handler(trace.clone())
        .resync(Duration::MAX)
        .register()
        .unwrap();
    let synced = pods.wait_for_sync().deadline(Duration::MAX);
    controller
        .drain_at_shutdown(Duration::MAX)
        .run(async {
            synced.await.unwrap();
            sleep(LONG).await;
        })
        .await
        .unwrap();
    assert_eq!(trace.take(), "add default/a@1 (initial)\nsynced\n");
}

#[tokio::test(start_paused = true)]
async fn the_largest_numbers_act_as_unlimited() {
    let server = Server::builder().seed([pod("a")]).build();
    let building = builder(&server).batch_size(usize::MAX);
    let informer = run(building.queue_capacity(usize::MAX));
    let (buffer, trace) = (ListenerBuffer::Block(NonZeroUsize::MAX), Trace::default());
    let handler = informer.pods.handler(trace.clone()).buffer(buffer);
    handler.register().unwrap();
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "add default/a@1 (initial)\nsynced\n");
    informer.stop().await;
}

/// A handler whose destructor blocks until the test lets it continue.
struct SlowToDrop {
    dropping: Option<oneshot::Sender<()>>,
    let_go: mpsc::Receiver<()>,
    gone: Arc<AtomicBool>,
}

impl EventHandler<Pod> for SlowToDrop {
    async fn handle(&mut self, _: Event<Pod>) {}
}

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        let told = self.dropping.take().map(|dropping| dropping.send(()));
        assert!(matches!(told, Some(Ok(()))), "the test waits for the drop");
        self.let_go.recv().unwrap();
        self.gone.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_removed_handler_is_dropped_before_its_removal_returns() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (dropping, drops) = oneshot::channel();
    let (let_go, goes) = mpsc::channel();
    let gone = Arc::new(AtomicBool::new(false));
    let registration = informer
        .pods
        .handler(SlowToDrop {
            dropping: Some(dropping),
            let_go: goes,
            gone: Arc::clone(&gone),
        })
        .dedicated_thread()
        .register()
        .unwrap();
    registration.wait_for_sync().deadline(GUARD).await.unwrap();

    let removed = registration.remove();
    tokio::pin!(removed);
    assert!(removed.as_mut().now_or_never().is_none());
    timeout(GUARD, drops)
        .await
        .expect("the handler is dropped")
        .unwrap();
    assert!(
        removed.as_mut().now_or_never().is_none(),
        "the handler still exists"
    );
    let_go.send(()).unwrap();
    timeout(GUARD, removed).await.expect("the removal ends");
    assert!(gone.load(Ordering::SeqCst));
    informer.stop().await;
}

#[tokio::test]
async fn dropping_a_run_cancels_a_callback_that_awaits_on_its_own_thread() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).build();
    let (began, begins) = oneshot::channel();
    let (held, cut_off) = oneshot::channel::<()>();
    let mut once = Some((began, held));
    let registration = pods
        .on_add(move |_, _| {
            let once = once.take();
            async move {
                let (began, _held) = once.expect("there is one pod");
                began.send(()).unwrap();
                pending::<()>().await;
            }
        })
        .dedicated_thread()
        .register()
        .unwrap();
    let mut running = Box::pin(controller.run(pending()));
    tokio::select! {
        biased;
        _ = &mut running => unreachable!("the run is not stopped"),
        began = timeout(GUARD, begins) => began.expect("the callback begins").unwrap(),
    }
    drop(running);
    let cut_off = timeout(GUARD, cut_off)
        .await
        .expect("the callback is cancelled");
    assert!(cut_off.is_err(), "the callback sends nothing");
    timeout(GUARD, registration.remove())
        .await
        .expect("the thread has ended");
}

#[tokio::test(start_paused = true)]
async fn an_ended_subscription_returns_none_repeatedly() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let (mut asked, mut polled) = (
        informer.pods.subscribe().unwrap(),
        informer.pods.subscribe().unwrap(),
    );
    let pods = informer.stop().await;
    assert_eq!(
        pods.handlers().len(),
        2,
        "the subscriptions were not polled since the stop"
    );
    for _ in 0..3 {
        assert!(asked.next().await.is_none());
        assert!(StreamExt::next(&mut polled).await.is_none());
    }
    assert!(pods.handlers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_subscription_keeps_no_object_alive() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let never_polled = informer.pods.subscribe().unwrap();
    informer.pods.handlers_idle().await;
    let object = Arc::downgrade(&informer.pods.indexer().list()[0].get().unwrap());
    drop(never_polled);
    server.delete("v1", "pods", "default/a").unwrap();
    informer.caught_up(&server).await;
    assert!(object.upgrade().is_none());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_awaits_idle_handlers_does_not_wait_for_itself() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (others, pods) = (Trace::default(), informer.pods.clone());
    others.listen(&informer.pods);
    let (tell, told) = oneshot::channel();
    let mut tell = Some(tell);
    let waits = informer.pods.on_add(move |_, _| {
        let (pods, tell) = (pods.clone(), tell.take());
        async move {
            pods.handlers_idle().await;
            tell.unwrap().send(()).unwrap();
        }
    });
    waits.register().unwrap();
    timeout(LONG, told)
        .await
        .expect("the callback continues")
        .unwrap();
    assert_eq!(others.take(), "add default/a@1 (initial)\nsynced\n");
    informer.stop().await;
}
