//! Tests of removed handlers and of stopped informers.
//!
//! In both cases, a callback that is running completes. Events that the handler has not received yet are
//! discarded, unless the informer stops and its controller was configured with `drain_at_shutdown`.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{shared_informer::Stopped, status::SyncFailure};
use kube_informer_apiserver::Server;
use tokio::{sync::Semaphore, time::sleep};

use super::Gated;
use crate::setting::{LONG, Trace, builder, pod, run};

#[tokio::test(start_paused = true)]
async fn a_removed_handler_finishes_its_callback_and_receives_no_more_events() {
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
async fn a_stop_waits_for_the_callback_in_progress_and_counts_the_discarded_events() {
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
    // Two objects of the list, the sync marker, and d.
    assert_eq!(pods.status().get().discarded, 4);

    assert!(pods.is_stopped());
    assert_eq!(pods.on_delete(|_| {}).register().unwrap_err(), Stopped);
    pods.add_index("late", |_| None::<String>)
        .await
        .unwrap_err();
    assert_eq!(pods.indexer().len(), 4, "the cache is still readable");
    let waited = pods.wait_for_sync().await.unwrap_err();
    assert_eq!(waited.failure, SyncFailure::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_drain_delivers_the_pending_events_before_the_stop() {
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
async fn no_task_is_left_after_a_stop_after_a_drop_or_without_a_run() {
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
        _ = &mut running => unreachable!("the run is not stopped"),
        synced = pods.wait_for_sync() => synced.unwrap(),
    }
    drop(running);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(alive(), baseline);
}
