//! Tests of a [`ProcessLoop`], a controller that passes the deltas of its queue to a process function. If the
//! function returns an error, the controller adds the deltas to the queue again.

use std::{sync::Arc, time::Duration};

use expect_test::expect;
use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Indexer, Indexers, InitialList, ObjectName,
    client::ListWatch,
    controller::{Config, Ended, ProcessLoop},
    indexer,
    object::Known,
    queue::{Batch, DeltaFifo, Popped},
    reflector::{Delta, Reflector, ReflectorBuilder},
    status::{FailureCause, InformerError},
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{advance, sleep, timeout},
};

use crate::setting::{LONG, labelled, pod};

const SECOND: Duration = Duration::from_secs(1);

/// Records the calls of the process function, one per line. Calls for the object named `failing` fail.
#[derive(Clone, Default)]
struct Calls {
    lines: Arc<Mutex<String>>,
    failing: Arc<Mutex<Option<&'static str>>>,
}

impl Calls {
    fn fail(&self, name: Option<&'static str>) {
        *self.failing.lock() = name;
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.lines.lock())
    }

    fn called(&self, popped: &Popped<Pod>) -> Result<(), &'static str> {
        let deltas: Vec<String> = popped.deltas.iter().map(shown).collect();
        let fails = *self.failing.lock() == Some(popped.name.name());
        let line = format!("{} {}", popped.name.name(), deltas.join(" "));
        let outcome = if fails { ": failed\n" } else { "\n" };
        *self.lines.lock() += &(line + outcome);
        if fails { Err("planted") } else { Ok(()) }
    }
}

fn shown(delta: &Delta<Pod>) -> String {
    let revision = delta.object().map(|object| object.revision().to_string());
    format!("{:?}@{}", delta.delta_type(), revision.unwrap_or_default())
}

fn reflector(server: &Server) -> ReflectorBuilder<Pod> {
    Reflector::builder(ListWatch::<Pod>::new(server.client()))
        .initial_list(InitialList::List)
        .rng_seed(1)
}

/// Returns an indexer, and a configuration whose process function records each call and fills the indexer.
fn config(server: &Server, calls: &Calls) -> (Indexer<Pod>, Config<Pod>) {
    let (pods, mut writer) = indexer::new(Indexers::new()).unwrap();
    let calls = calls.clone();
    let process = move |popped: &Popped<Pod>| {
        calls.called(popped)?;
        writer.apply(Batch {
            deltas: popped.deltas.clone(),
            in_initial_list: popped.in_initial_list,
            completes: None,
            reached: Vec::new(),
        });
        Ok::<(), &str>(())
    };
    let config = Config::new(reflector(server), DeltaFifo::new(), process);
    (pods.clone(), config.known_objects(pods))
}

/// The task of a running [`ProcessLoop`], and a sender. Dropping the sender stops the task.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Ended, InformerError>>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test owns the task and waits for it"
)]
async fn run(controller: ProcessLoop<Pod>) -> Running {
    let synced = controller.wait_for_sync().deadline(LONG);
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(controller.run(async { drop(stopped.await) }));
    synced.await.unwrap();
    Running { stop, task }
}

impl Running {
    async fn stop(self) -> Ended {
        drop(self.stop);
        self.task.await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn every_change_is_processed_by_key_and_in_order() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    let (pods, config) = config(&server, &calls);
    let running = run(config.build()).await;
    server.update(labelled("a", "1")).unwrap();
    server.update(labelled("a", "2")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    sleep(SECOND).await;
    assert_eq!(pods.len(), 1);
    assert_eq!(running.stop().await.discarded, 0);
    expect![[r"
        a Replaced@1
        b Replaced@2
        a Updated@3 Updated@4
        b Deleted@5
    "]]
    .assert_eq(&calls.take());
}

#[tokio::test(start_paused = true)]
async fn an_error_requeues_the_deltas_before_newer_ones() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    calls.fail(Some("a"));
    let (pods, config) = config(&server, &calls);
    let running = run(config.retry_on_error(true).build()).await;
    // The function fails again on each new change.
    server.update(labelled("a", "1")).unwrap();
    sleep(Duration::from_millis(1)).await;
    server.update(labelled("a", "2")).unwrap();
    server.update(labelled("b", "1")).unwrap();
    server.delete("v1", "pods", "default/a").unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(pods.len(), 1, "a is not stored");
    let failed = calls.take();
    calls.fail(None);
    sleep(SECOND).await;
    let succeeded = calls.take();
    assert_eq!(running.stop().await.discarded, 0);
    expect![[r"
        a Replaced@1: failed
        b Replaced@2
        a Replaced@1: failed
        a Replaced@1 Updated@3: failed
        a Replaced@1 Updated@3 Updated@4 Deleted@6: failed
        b Updated@5
        a Replaced@1 Updated@3 Updated@4 Deleted@6: failed
    "]]
    .assert_eq(&failed);
    assert_eq!(succeeded, "a Replaced@1 Updated@3 Updated@4 Deleted@6\n");
}

#[tokio::test(start_paused = true)]
async fn without_retry_an_error_drops_the_deltas_and_reports_the_object() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    calls.fail(Some("a"));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let (noted, called) = (Arc::clone(&errors), calls.clone());
    let reflector = reflector(&server).on_error(move |error| noted.lock().push(error.to_string()));
    let process = move |popped: &Popped<Pod>| called.called(popped);
    let config = Config::new(reflector, DeltaFifo::new(), process);
    let running = run(config.build()).await;
    sleep(60 * SECOND).await;
    calls.fail(None);
    server.update(labelled("a", "1")).unwrap();
    sleep(SECOND).await;
    running.stop().await;
    expect![[r"
        a Replaced@1: failed
        b Replaced@2
        a Updated@3
    "]]
    .assert_eq(&calls.take());
    assert_eq!(*errors.lock(), ["default/a was not processed: planted"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_always_fails_is_retried_with_back_off_and_delays_no_other_key() {
    let server = Server::builder().seed([pod("a")]).build();
    let calls = Calls::default();
    calls.fail(Some("a"));
    let (pods, config) = config(&server, &calls);
    let running = run(config.retry_on_error(true).build()).await;
    sleep(60 * SECOND).await;
    // At 0, 5, 15, 35 ms and so on, to 20.475 and 40.955 s.
    assert_eq!(calls.take().lines().count(), 14);
    server.create(pod("b")).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(pods.len(), 1, "b does not wait for the pause of a");
    let ended = running.stop().await;
    assert_eq!(ended.discarded, 1, "the pending deltas of a");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_process_function_affects_only_its_key() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    let (called, mut panics) = (calls.clone(), true);
    let process = move |popped: &Popped<Pod>| {
        called.called(popped)?;
        let panics = popped.name.name() == "a" && std::mem::take(&mut panics);
        assert!(!panics, "planted");
        Ok::<(), &str>(())
    };
    let config = Config::new(reflector(&server), DeltaFifo::new(), process);
    let running = run(config.retry_on_error(true).build()).await;
    sleep(SECOND).await;
    running.stop().await;
    let expected = "a Replaced@1\nb Replaced@2\na Replaced@1\n";
    assert_eq!(calls.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn known_objects_are_resynced_at_the_period_unless_should_resync_declines() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    let (_, config) = config(&server, &calls);
    let mut resyncs = 0;
    let config = config.resync_period(10 * SECOND).should_resync(move || {
        resyncs += 1;
        resyncs != 2
    });
    let running = run(config.build()).await;
    calls.take();
    sleep(35 * SECOND).await;
    running.stop().await;
    let once = "a Sync@1\nb Sync@2\n";
    assert_eq!(calls.take(), once.repeat(2));
}

#[tokio::test(start_paused = true)]
async fn resyncs_longer_than_their_period_do_not_keep_changes_out_of_a_full_queue() {
    let pods = (0..3_100).map(|number| pod(&format!("p{number}")));
    let server = Server::builder().seed(pods).build();
    let (pods, mut writer) = indexer::new(Indexers::new()).unwrap();
    let process = move |popped: &Popped<Pod>| {
        // The first poll advances the paused clock.
        let _ = advance(Duration::from_millis(1)).now_or_never();
        writer.apply(Batch {
            deltas: popped.deltas.clone(),
            in_initial_list: popped.in_initial_list,
            completes: None,
            reached: Vec::new(),
        });
        Ok::<(), &str>(())
    };
    let config = Config::new(reflector(&server), DeltaFifo::new(), process);
    let config = config.known_objects(pods.clone()).resync_period(SECOND);
    let running = run(config.build()).await;
    sleep(10 * SECOND).await;
    server.update(labelled("p7", "new")).unwrap();
    let changed = server.revision().into();
    let name = ObjectName::new(Some("default"), "p7");
    let is_known = async {
        while pods.snapshot().get(&name).unwrap().revision() < &changed {
            sleep(SECOND).await;
        }
    };
    timeout(20 * SECOND, is_known)
        .await
        .expect("the delta is processed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resyncs_continue_after_a_resync_with_several_queued_changes_of_an_object() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    let (_, config) = config(&server, &calls);
    let config = config.resync_period(10 * SECOND).retry_on_error(true);
    let running = run(config.build()).await;
    calls.fail(Some("a"));
    for label in ["1", "2"] {
        sleep(3 * SECOND).await;
        server.update(labelled("a", label)).unwrap();
    }
    // Both changes are in the queue at the resync, which ends the pause after the last error.
    sleep(Duration::from_millis(3_999)).await;
    calls.fail(None);
    calls.take();
    sleep(SECOND).await;
    assert_eq!(calls.take(), "a Updated@3 Updated@4\nb Sync@2\n");
    sleep(20 * SECOND).await;
    running.stop().await;
    assert_eq!(calls.take(), "a Sync@4\nb Sync@2\n".repeat(2));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_missed_by_the_watch_is_detected_from_the_known_objects() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let calls = Calls::default();
    let (pods, config) = config(&server, &calls);
    let running = run(config.build()).await;
    calls.take();
    server.faults().refuse_connections(true);
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/a").unwrap();
    server.faults().expire_history();
    server.faults().refuse_connections(false);
    sleep(60 * SECOND).await;
    running.stop().await;
    assert_eq!(pods.len(), 1);
    assert_eq!(calls.take(), "b Replaced@2\na Deleted@1\n");
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_known_objects_panic_fails_with_the_reason() {
    struct Broken;
    impl Known<Pod> for Broken {
        fn known(
            &self,
            _: &kube_informer::ObjectName,
        ) -> Option<(kube_informer::object::SourceId, kube_informer::Object<Pod>)> {
            None
        }

        fn for_each(
            &self,
            _: &mut dyn FnMut(
                kube_informer::object::SourceId,
                &kube_informer::ObjectName,
                &kube_informer::Object<Pod>,
            ),
        ) {
            panic!("planted");
        }
    }
    let server = Server::builder().build();
    let process = |_: &Popped<Pod>| Ok::<(), &str>(());
    let config = Config::new(reflector(&server), DeltaFifo::new(), process);
    let controller = config.known_objects(Broken).build();
    let (synced, status) = (
        controller.wait_for_sync().deadline(LONG),
        controller.status(),
    );
    let failure = controller.run(std::future::pending()).await.unwrap_err();
    let cause = FailureCause::Panicked {
        part: "the process loop".into(),
        reason: "planted".into(),
    };
    assert_eq!(failure.cause, cause);
    assert!(synced.await.is_err());
    assert!(status.get().is_stopped());
}
