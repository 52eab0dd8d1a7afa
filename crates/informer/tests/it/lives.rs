//! Tests of informers and their handlers before the start, during the run, and after the stop. The tests
//! check the reported status, and which calls succeed or fail.

use std::time::Duration;

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_informer::{
    SharedInformer,
    client::ListWatch,
    factory::wait_for_cache_sync,
    shared_informer::Stopped,
    status::{Activity, SyncFailure},
};
use kube_informer_apiserver::Server;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use crate::setting::{LONG, Trace, builder, pod, run};

#[tokio::test(start_paused = true)]
async fn an_informer_reports_whether_it_is_not_started_running_or_stopped() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).build();
    sleep(Duration::from_secs(10)).await;
    let status = pods.status().get();
    assert_eq!(status.activity(), Activity::Idle);
    assert!(!pods.is_stopped() && !status.is_stopped() && !pods.has_synced());
    assert_eq!(server.requests().len(), 0);

    let running = async {
        pods.wait_for_sync().await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(pods.status().get().activity(), Activity::Watching);
        assert!(!pods.is_stopped());
    };
    controller.run(running).await.unwrap();
    let status = pods.status().get();
    assert_eq!(status.activity(), Activity::Stopped);
    assert!(pods.is_stopped() && status.is_stopped());
    assert!(pods.has_synced(), "a synced informer stays synced");
    let waited = pods.wait_for_sync().await.unwrap_err();
    assert_eq!(waited.failure, SyncFailure::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_rejects_handlers_streams_and_indices_and_removes_handlers_at_once() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let registration = Trace::default().listen(&informer.pods);
    informer.caught_up(&server).await;
    let pods = informer.stop().await;
    assert_eq!(
        pods.handler(Trace::default()).register().unwrap_err(),
        Stopped
    );
    assert_eq!(pods.subscribe().unwrap_err(), Stopped);
    assert_eq!(Stopped.to_string(), "the informer has stopped");
    pods.add_index("name", |pod: &Pod| pod.metadata.name.clone())
        .await
        .unwrap_err();
    assert!(registration.has_synced());
    assert!(registration.remove().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_synced_only_after_the_run_and_its_last_initial_object() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let (pods, controller) = builder(&server).build();
    let registration = pods
        .on_add(|_, _| sleep(Duration::from_secs(10)))
        .register()
        .unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(!pods.has_synced() && !registration.has_synced());

    let steps = async {
        let began = Instant::now();
        pods.wait_for_sync().await.unwrap();
        assert!(!registration.has_synced(), "its first callback runs");
        sleep(Duration::from_secs(19)).await;
        assert!(!registration.has_synced(), "its last callback runs");
        registration.wait_for_sync().await.unwrap();
        assert!(registration.has_synced());
        assert_eq!(began.elapsed().as_secs(), 20);
    };
    controller.run(steps).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_be_removed_whether_the_informer_runs_will_run_or_never_does() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).build();
    let heard = Trace::default();
    let never_started = heard.listen(&pods).remove();
    timeout(LONG, never_started)
        .await
        .expect("the removal does not wait for the start");

    let before_the_start = heard.listen(&pods);
    let (stop, stopped) = oneshot::channel::<()>();
    let steps = async {
        pods.wait_for_sync().await.unwrap();
        timeout(LONG, before_the_start.remove())
            .await
            .expect("its callbacks have ended");
        heard.take();
        let after_the_start = heard.listen(&pods);
        after_the_start.wait_for_sync().await.unwrap();
        timeout(LONG, after_the_start.remove())
            .await
            .expect("its callbacks have ended");
        assert_eq!(heard.take(), "add default/a@1 (initial)\nsynced\n");
        server.create(pod("b")).unwrap();
        pods.wait_for_revision(server.revision(), LONG)
            .await
            .unwrap();
        pods.handlers_idle().await;
        drop(stop);
    };
    let (ended, ()) = tokio::join!(controller.run(stopped.map(|_| ())), steps);
    ended.unwrap();
    assert_eq!(heard.take(), "", "no handler is left to receive b");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_during_its_removal_is_removed() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    let heard = Trace::default();
    let notes = heard.clone();
    let registration = informer
        .pods
        .on_add(move |pod, _| {
            notes.note(pod.name());
            async {
                sleep(Duration::from_secs(5)).await;
                panic!("planted");
            }
        })
        .register()
        .unwrap();
    informer.pods.wait_for_sync().await.unwrap();
    let began = Instant::now();
    timeout(LONG, registration.remove())
        .await
        .expect("its callback has ended");
    assert!(
        began.elapsed() <= Duration::from_secs(5),
        "no pause follows the panic"
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(heard.take(), "a\n");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_named_after_its_type_or_the_source_location_of_its_closures() {
    let server = Server::builder().build();
    let (pods, _controller) = builder(&server).build();
    let name = |registration: &dyn std::fmt::Debug| format!("{registration:?}");
    let typed = pods.handler(Trace::default()).register().unwrap();
    assert!(name(&typed).contains("setting::Trace"), "{typed:?}");
    let here = line!() + 1;
    let closures = pods.on_delete(|_| {}).on_add(|_, _| {}).register().unwrap();
    let place = format!("lives.rs:{here}:");
    assert!(name(&closures).contains(&place), "{closures:?}");
    let own = pods.on_delete(|_| {}).name("audit").register().unwrap();
    assert!(name(&own).contains(r#""audit""#), "{own:?}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_wait_returns_at_once_and_a_failed_one_names_each_unsynced_informer() {
    assert!(
        wait_for_cache_sync([])
            .into_future()
            .now_or_never()
            .is_some()
    );

    let server = Server::builder().seed([pod("a")]).build();
    let named = |name| {
        SharedInformer::<ConfigMap>::builder(ListWatch::<ConfigMap>::new(server.client()))
            .name(name)
    };
    let informer = run(builder(&server));
    let (idle, _idle) = named("idle").build();
    let (stopped, controller) = named("stopped").build();
    drop(controller);
    let began = Instant::now();
    let minute = Duration::from_secs(60);
    let waits = [
        stopped.wait_for_sync(),
        informer.pods.wait_for_sync(),
        idle.wait_for_sync(),
    ];
    let failed = wait_for_cache_sync(waits).deadline(minute).await;
    assert_eq!(
        began.elapsed().as_secs(),
        60,
        "all waits share the deadline"
    );
    let failures: Vec<_> = failed
        .unwrap_err()
        .unsynced
        .into_iter()
        .map(|error| (error.name.to_string(), error.failure))
        .collect();
    assert_eq!(
        failures,
        [
            ("stopped".to_owned(), SyncFailure::Ended),
            ("idle".to_owned(), SyncFailure::Deadline(minute)),
        ]
    );
    informer.stop().await;
}
