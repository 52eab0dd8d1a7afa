//! One informer is stopped, and asked for again.

use kube_informer_apiserver::Match;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_leaves_its_place_to_a_new_one_and_keeps_its_handlers_and_its_cache() {
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
    assert_eq!(trace.take(), "", "the old handler is of the old one");
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
async fn a_stop_waits_for_the_tasks_and_the_callback_in_progress_and_only_for_its_own() {
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
    assert!(!factory.stop::<Pod>().await, "there is none any more");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_is_dropped_at_any_await_ends_the_informer_all_the_same() {
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
        assert!(!next.is_same(&pods), "its place is free after one poll");
        assert!(factory.stop_informer(&next).await, "it never ran");
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
async fn an_informer_is_stopped_twice_at_once_before_its_start_and_with_the_factory() {
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
async fn an_adopted_informer_leaves_its_place_and_goes_on() {
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
    assert!(!other.stop_informer(&pods).await, "it is none of hers");
    ours.shutdown().await;
    theirs.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_informer_of_several_of_a_type_is_stopped_by_its_handle() {
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
async fn nobody_waits_for_the_sync_of_one_that_is_about_to_end() {
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
async fn after_the_shutdown_nothing_leaves_its_place() {
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
