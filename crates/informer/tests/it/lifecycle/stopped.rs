//! Tests of `stop_informer`: the factory stops one informer, and the next request for the same kind
//! constructs a new informer.

use kube_informer_apiserver::Match;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_is_replaced_by_the_next_request_and_keeps_its_handlers_and_cache() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let (old, maps) = (factory.informer::<Pod>(), factory.informer::<ConfigMap>());
    let (lister, trace) = (factory.lister::<Pod>(), Trace::default());
    let registration = trace.listen(&old);
    factory.start();
    caught_up(&old, &server).await;
    assert_eq!(trace.take(), "add default/a@1 (initial)\nsynced\n");

    assert!(factory.stop_informer(&old).await);
    assert!(old.is_stopped() && !maps.is_stopped());
    assert_eq!(old.on_delete(|_| {}).register().unwrap_err(), Stopped);
    server.delete("v1", "pods", "default/a").unwrap();
    server.create(pod("b")).unwrap();

    let new = factory.informer::<Pod>();
    assert!(!new.is_same(&old) && !new.is_stopped());
    let again = Trace::default();
    again.listen(&new);
    factory.start();
    caught_up(&new, &server).await;
    assert_eq!(again.take(), "add default/b@3 (initial)\nsynced\n");
    assert_eq!(
        trace.take(),
        "",
        "the old handler belongs to the old informer"
    );
    registration.remove().await;
    let lists = |lister: &kube_informer::Lister<Pod>| {
        let pods = lister.namespace("default");
        (pods.get("a").is_ok(), pods.get("b").is_ok())
    };
    assert_eq!(lists(&lister), (true, false), "the old cache stays");
    assert_eq!(lists(&factory.lister::<Pod>()), (false, true));
    factory.shutdown().await;
    assert!(new.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_only_for_the_tasks_and_the_callback_of_its_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    factory.informer::<ConfigMap>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    sleep(MINUTE).await;
    let baseline = alive();
    let pods = factory.informer::<Pod>();
    let trace = Trace::default();
    let slow = trace.clone();
    pods.on_add(move |_, _| {
        let slow = slow.clone();
        async move {
            sleep(MINUTE).await;
            slow.note("done");
        }
    })
    .register()
    .unwrap();
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(factory.stop::<Pod>().await);
    assert_eq!(trace.take(), "done\n");
    assert!(until_gone(baseline).await, "{} tasks", alive() - baseline);
    assert!(
        !factory.stop::<Pod>().await,
        "the informer is already removed"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_dropped_at_any_await_still_ends_the_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    sleep(MINUTE).await;
    let baseline = alive();
    let mut complete = false;
    for at in 1.. {
        let pods = factory.informer::<Pod>();
        let trace = Trace::default();
        trace.listen(&pods);
        factory.start();
        pods.wait_for_sync().deadline(LONG).await.unwrap();
        {
            let mut stopping = pin!(factory.stop_informer(&pods));
            for _ in 0..at {
                complete = stopping.as_mut().now_or_never().is_some();
                if complete {
                    break;
                }
                yield_now().await;
            }
        }
        let next = factory.informer::<Pod>();
        assert!(
            !next.is_same(&pods),
            "the informer is removed after one poll"
        );
        assert!(factory.stop_informer(&next).await, "the informer never ran");
        assert!(
            until_gone(baseline).await,
            "{} tasks are left, dropped at {at}",
            alive() - baseline
        );
        assert!(pods.is_stopped());
        if complete {
            assert!(at > 1, "a stop takes more than one poll");
            break;
        }
    }
    let debug = format!("{factory:?}");
    assert_eq!(debug, "SharedInformerFactory { informers: 0, .. }");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_works_concurrently_before_the_start_and_during_the_shutdown() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.informer::<Pod>();
    assert!(factory.stop_informer(&pods).await, "before the start");
    assert!(pods.is_stopped());
    assert!(pods.wait_for_sync().await.is_err());

    let pods = factory.informer::<Pod>();
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    let both = tokio::join!(factory.stop_informer(&pods), factory.stop_informer(&pods));
    assert_eq!(both, (true, true));
    assert!(!factory.stop_informer(&pods).await);

    let pods = factory.informer::<Pod>();
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    tokio::join!(factory.stop_informer(&pods), factory.shutdown());
    assert!(pods.is_stopped());
    assert!(!factory.stop_informer(&pods).await, "after the shutdown");
}

#[tokio::test(start_paused = true)]
async fn stop_informer_removes_an_adopted_informer_from_the_factory_and_leaves_it_running() {
    let server = Server::builder().seed([pod("a")]).build();
    let (theirs, ours) = (factory(&server), factory(&server));
    let pods = theirs.informer::<Pod>();
    ours.adopt(pods.clone()).unwrap();
    theirs.start();
    assert!(ours.stop_informer(&pods).await);
    assert!(format!("{ours:?}").contains("informers: 0"), "{ours:?}");
    assert!(!ours.informer::<Pod>().is_same(&pods));
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert!(!pods.is_stopped());
    let other = factory(&server);
    assert!(
        !other.stop_informer(&pods).await,
        "the informer belongs to another factory"
    );
    ours.shutdown().await;
    theirs.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_affects_only_the_informer_of_its_handle() {
    let server = Server::builder().seed([labelled("a", "web")]).build();
    let factory = factory(&server);
    let options =
        || kube_informer::InformerOptions::<Pod>::new().labels("app=web".parse().unwrap());
    let (all, web) = (
        factory.informer::<Pod>(),
        factory.informer_with(options()).unwrap(),
    );
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    factory.stop_informer(&web).await;
    assert!(web.is_stopped() && !all.is_stopped());
    factory
        .wait_for_cache_sync()
        .deadline(MINUTE)
        .await
        .unwrap();
    assert!(!factory.informer_with(options()).unwrap().is_same(&web));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_sync_skips_an_informer_that_is_stopping() {
    let server = Server::builder().seed([pod("a")]).build();
    let refused = Match::list("configmaps");
    server.faults().answer(refused, 403).times(1000);
    let factory = factory(&server);
    let (pods, maps) = (factory.informer::<Pod>(), factory.informer::<ConfigMap>());
    factory.start();
    sleep(MINUTE).await;
    let mut stop = pin!(factory.stop_informer(&maps));
    assert!(stop.as_mut().now_or_never().is_none());
    factory.wait_for_cache_sync().await.unwrap();
    assert!(stop.await && pods.has_synced());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_a_stop_replaces_no_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.informer::<Pod>();
    factory.start();
    caught_up(&pods, &server).await;
    factory.shutdown().await;
    assert!(!factory.stop_informer(&pods).await && !factory.stop::<Pod>().await);
    assert!(factory.informer::<Pod>().is_same(&pods));
    assert_eq!(factory.informer::<Pod>().indexer().len(), 1);
}
