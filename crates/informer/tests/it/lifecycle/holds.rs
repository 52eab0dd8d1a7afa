//! Tests of `Hold`, a handle that keeps an informer of a factory running.
//!
//! After its last hold is dropped, the informer runs for a grace period, and then stops.

use std::{sync::Barrier, thread};

use kube_core::ApiResource;
use kube_informer::{InformerOptions, status::Status};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout},
};

use super::*;
use crate::setting::factory_builder;

fn lists(server: &Server) -> usize {
    server.requests().lists("pods").len()
}

#[tokio::test(start_paused = true)]
async fn a_held_informer_stops_a_grace_period_after_its_last_hold_is_dropped() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .idle_grace(5 * MINUTE)
        .build();
    sleep(MINUTE).await;
    let baseline = alive();
    let first = factory.hold::<Pod>();
    caught_up(&first, &server).await;
    let second = first.clone();
    let third = factory.hold::<Pod>();
    assert!(third.is_same(&first));
    drop((first, third));
    sleep(LONG).await;
    assert!(!second.is_stopped(), "one hold is left");

    let pods = SharedInformer::clone(&second);
    drop(second);
    sleep(4 * MINUTE).await;
    let again = factory.hold::<Pod>();
    assert!(
        again.is_same(&pods),
        "the informer is the same within the grace period"
    );
    sleep(LONG).await;
    assert!(!pods.is_stopped(), "the informer is held again");
    drop(again);
    sleep(Duration::from_secs(299)).await;
    assert!(!pods.is_stopped(), "the grace period starts again");
    assert_eq!(lists(&server), 1);
    sleep(Duration::from_secs(2)).await;
    assert!(pods.is_stopped(), "the grace period is over");
    assert!(until_gone(baseline).await);
    let debug = format!("{factory:?}");
    assert_eq!(debug, "SharedInformerFactory { informers: 0, .. }");

    let later = factory.hold::<Pod>();
    assert!(!later.is_same(&pods));
    caught_up(&later, &server).await;
    assert_eq!(lists(&server), 2, "a new informer lists");
    factory.shutdown().await;
    assert!(later.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn only_a_hold_keeps_an_informer_running() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let held = factory.hold::<Pod>();
    let (pods, lister) = (SharedInformer::clone(&held), held.lister());
    let trace = Trace::default();
    let registration = trace.listen(&held);
    let mut events = held.subscribe().unwrap();
    caught_up(&held, &server).await;
    drop(held);
    sleep(2 * MINUTE).await;
    assert!(pods.is_stopped(), "the default grace period is a minute");
    server.create(pod("b")).unwrap();
    assert!(lister.namespace("default").get("a").is_ok());
    assert!(lister.namespace("default").get("b").is_err());
    let ended = async { while events.next().await.is_some() {} };
    timeout(LONG, ended).await.expect("the stream ends");
    registration.remove().await;
    assert_eq!(trace.take(), "add default/a@1 (initial)\nsynced\n");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_held_informer_keeps_it_running() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let held = factory.hold::<Pod>();
    let pods = factory.informer::<Pod>();
    assert!(pods.is_same(&held));
    drop(held);
    sleep(LONG).await;
    assert!(!pods.is_stopped());
    let held = factory.hold::<Pod>();
    factory.stop_informer(&pods).await;
    assert!(held.is_stopped(), "a stop ends a held informer too");
    let new = factory.hold::<Pod>();
    assert!(!new.is_same(&held));
    drop(held);
    sleep(LONG).await;
    assert!(
        !new.is_stopped(),
        "the old hold belongs to the old informer"
    );
    drop(new);
    sleep(LONG).await;
    assert_eq!(lists(&server), 2);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_starts_a_requested_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.informer::<Pod>();
    let maps = factory.informer::<ConfigMap>();
    let held = factory.hold::<Pod>();
    assert!(held.is_same(&pods));
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert!(!maps.has_synced());
    drop(held);
    sleep(LONG).await;
    assert!(!pods.is_stopped());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_with_other_options_is_rejected_and_has_no_effect() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let options = || InformerOptions::<Pod>::new().fields("metadata.name=a");
    let held = factory.hold_with(options()).unwrap();
    let refused = factory.hold_with(options().resync(MINUTE));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the factory already has an informer of Pod in this scope with another resync period; use the same options, or another factory"
    );
    let dynamic = factory
        .hold_resource(&ApiResource::erase::<Pod>(&()))
        .unwrap();
    dynamic.wait_for_sync().deadline(LONG).await.unwrap();
    let pods = SharedInformer::clone(&held);
    drop((held, dynamic));
    sleep(2 * MINUTE).await;
    assert!(pods.is_stopped());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_rejected_for_other_options_neither_keeps_nor_starts_the_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let other = || InformerOptions::<Pod>::new().resync(MINUTE);
    let held = factory.hold::<Pod>();
    factory.informer_with(other()).unwrap_err();
    let pods = SharedInformer::clone(&held);
    drop(held);
    sleep(2 * MINUTE).await;
    assert!(
        pods.is_stopped(),
        "the rejected request does not keep it running"
    );

    let waiting = factory.informer::<Pod>();
    factory.hold_with(other()).unwrap_err();
    sleep(MINUTE).await;
    assert!(
        !waiting.has_synced(),
        "the rejected request does not start it"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_of_zero_stops_the_informer_with_its_last_hold() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .idle_grace(Duration::ZERO)
        .build();
    let held = factory.hold::<Pod>();
    held.wait_for_sync().deadline(LONG).await.unwrap();
    let (mut status, began) = (held.status(), Instant::now());
    drop(held);
    let ended = status.wait_for(Status::is_stopped);
    timeout(LONG, ended)
        .await
        .expect("the informer ends by itself");
    assert!(began.elapsed() < Duration::from_millis(10));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_outlives_its_factory_as_a_readable_cache() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let held = factory.hold::<Pod>();
    held.wait_for_sync().deadline(LONG).await.unwrap();
    factory.shutdown().await;
    let after = factory.hold::<Pod>();
    assert!(
        after.is_same(&held),
        "after the shutdown the factory returns the stopped informer"
    );
    drop(factory);
    let copy = held.clone();
    assert_eq!(copy.indexer().len(), 1);
    drop((held, copy, after));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_hold_that_races_with_the_drop_of_the_last_one_runs() {
    const THREADS: usize = 4;
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .idle_grace(Duration::ZERO)
        .build();
    let runtime = Handle::current();
    let rounds = tokio::task::spawn_blocking({
        let factory = factory.clone();
        move || {
            let together = Barrier::new(THREADS);
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        let _inside = runtime.enter();
                        for _ in 0..200 {
                            together.wait();
                            let held = factory.hold::<Pod>();
                            assert!(!held.is_stopped(), "a held informer runs");
                            runtime.block_on(async { held.wait_for_sync().await.unwrap() });
                            assert!(!held.is_stopped(), "a held informer runs");
                        }
                    });
                }
            });
        }
    });
    rounds.await.unwrap();
    let held = factory.hold::<Pod>();
    held.wait_for_sync().await.unwrap();
    factory.shutdown().await;
    assert!(held.is_stopped());
}
