//! Tests of informers that are stopped or dropped at every await point. Also tests handlers that are
//! registered and removed while many events are delivered.
//!
//! Most handlers in the tests are a [`Replay`], which detects events that contradict the earlier events.

mod traffic;

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, Indexers, SharedInformer,
    client::ListWatch,
    indexer,
    informer::Informer,
    reflector::Reflector,
    shared_informer::{ListenerBuffer, Registration},
    status::{SyncError, SyncFailure, WaitForSync},
};
use kube_informer_apiserver::{Match, Server};
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};

use crate::setting::{LONG, Running, Trace, builder, listing, pod, run, show};

pub(crate) fn alive() -> usize {
    let metrics = tokio::runtime::Handle::current().metrics();
    metrics.num_alive_tasks()
}

/// Yields until at most `baseline` tasks exist; returns false after 1000 yields.
pub(crate) async fn until_gone(baseline: usize) -> bool {
    for _ in 0..1000 {
        if alive() <= baseline {
            return true;
        }
        yield_now().await;
    }
    false
}

/// A handler that rebuilds the objects from its events, and records contradictory events.
#[derive(Clone, Default)]
struct Replay(Arc<Mutex<Told>>);

/// The objects and contradictions that a [`Replay`] has found in its events.
#[derive(Default)]
struct Told {
    /// The last delivered revision of each existing object, by object name.
    objects: BTreeMap<String, String>,
    synced: bool,
    /// Contradictory events, such as an update of an unknown object.
    faults: Vec<String>,
}

impl EventHandler<Pod> for Replay {
    async fn handle(&mut self, event: Event<Pod>) {
        self.hear(&event);
    }
}

impl Replay {
    fn hear(&self, event: &Event<Pod>) {
        let mut told = self.0.lock();
        let name = event.object_name().map(ToString::to_string);
        let name = name.unwrap_or_default();
        let (before, fits) = match event {
            Event::Added {
                object,
                in_initial_list,
            } => {
                let fits = !(*in_initial_list && told.synced);
                let now = object.revision().to_string();
                (told.objects.insert(name, now), fits)
            }
            Event::Updated { old, new, .. } => {
                let before = told.objects.insert(name, new.revision().to_string());
                let fits = before == Some(old.revision().to_string());
                (None, fits)
            }
            Event::Deleted(_) => {
                let fits = told.objects.remove(&name).is_some();
                (None, fits)
            }
            Event::Synced => {
                let twice = std::mem::replace(&mut told.synced, true);
                (None, !twice)
            }
        };
        if before.is_some() || !fits {
            told.faults.push(show(event));
        }
    }

    fn listen(&self, pods: &SharedInformer<Pod>) -> Registration<Pod> {
        pods.handler(self.clone()).register().unwrap()
    }

    /// Asserts that no event contradicted earlier events, and that the replayed objects equal the cached
    /// ones.
    fn check(&self, pods: &SharedInformer<Pod>) {
        let told = self.0.lock();
        assert_eq!(told.faults, [""; 0]);
        assert!(told.synced);
        let cached: BTreeMap<_, _> = pods
            .indexer()
            .list()
            .iter()
            .map(|pod| (pod.object_name().to_string(), pod.revision().to_string()))
            .collect();
        assert_eq!(told.objects, cached);
    }
}

/// An informer, its handlers, and tasks that must end when the informer stops.
struct Hanging {
    pods: SharedInformer<Pod>,
    registrations: Vec<Registration<Pod>>,
    waits: JoinSet<()>,
}

/// Registers three handlers, and spawns tasks that wait for a sync or add an index.
///
/// The first handler blocks the informer while the handler's buffer is full. The second is a [`Replay`]. The
/// third panics at an object of the initial list.
fn hang_on(pods: &SharedInformer<Pod>) -> Hanging {
    let waiting = pods
        .on_add(|_, _| async {
            for _ in 0..3 {
                yield_now().await;
            }
        })
        .buffer(ListenerBuffer::Block(NonZeroUsize::MIN));
    let registrations = vec![
        waiting.register().unwrap(),
        Replay::default().listen(pods),
        pods.on_add(|_, initial| assert!(!initial, "planted"))
            .register()
            .unwrap(),
    ];
    let mut waits = JoinSet::new();
    for registration in &registrations {
        waits.spawn(registration.wait_for_sync().into_future().map(|_| ()));
    }
    waits.spawn(pods.wait_for_sync().into_future().map(|_| ()));
    let index = pods.clone();
    waits.spawn(async move {
        // Rejected or not, the call returns.
        let _ = index
            .add_index("name", |pod: &Pod| pod.metadata.name.clone())
            .await;
    });
    Hanging {
        pods: pods.clone(),
        registrations,
        waits,
    }
}

impl Hanging {
    /// Asserts that every wait ends after the informer's future was dropped.
    async fn all_end(mut self, at: usize) {
        let ends = async {
            while let Some(ended) = self.waits.join_next().await {
                ended.unwrap();
            }
            for registration in self.registrations.drain(..) {
                registration.remove().await;
            }
            self.pods.handlers_idle().await;
        };
        let ended = timeout(Duration::from_secs(30), ends).await;
        assert!(ended.is_ok(), "a wait does not end, stopped at {at}");
        self.pods.subscribe().unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_leaves_no_task_and_ends_every_wait() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let client = server.client();
    sleep(Duration::from_secs(1)).await;
    let baseline = alive();
    let mut complete = false;
    for at in 0.. {
        let list_watch = ListWatch::<Pod>::new(client.clone());
        let (pods, controller) = SharedInformer::<Pod>::builder(list_watch)
            .rng_seed(1)
            .build();
        let hanging = hang_on(&pods);
        {
            let enough = pods.wait_for_sync();
            let mut running = pin!(controller.run(async {
                enough.await.unwrap();
                for _ in 0..20 {
                    yield_now().await; // the handlers are in the middle of it
                }
            }));
            for _ in 0..at {
                complete = running.as_mut().now_or_never().is_some();
                if complete {
                    break;
                }
                yield_now().await;
            }
        }
        hanging.all_end(at).await;
        assert!(
            until_gone(baseline).await,
            "{} tasks are left, dropped at {at}",
            alive() - baseline
        );
        if complete {
            assert!(at > 20, "the run has more steps than {at}");
            return;
        }
    }
}

/// Waits until `synced` completes, and then yields to other tasks 20 times.
async fn a_while_after(synced: WaitForSync) {
    synced.await.unwrap();
    for _ in 0..20 {
        yield_now().await;
    }
}

/// Polls `run` up to `polls` times, drops it, and returns whether it completed.
async fn dropped_after<T>(polls: usize, run: impl Future<Output = T>) -> bool {
    let mut run = pin!(run);
    for _ in 0..polls {
        if run.as_mut().now_or_never().is_some() {
            return true;
        }
        yield_now().await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_leaves_no_task_of_several_sources_a_plain_informer_or_a_reflector() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let client = server.client();
    let source = |namespace| ListWatch::<Pod>::new(client.clone()).namespace(namespace);
    sleep(Duration::from_secs(1)).await;
    let baseline = alive();
    for what in ["several sources", "plain", "reflector"] {
        for at in 0.. {
            let complete = match what {
                "several sources" => {
                    let (pods, controller) = SharedInformer::<Pod>::builder(source("default"))
                        .source(source("other"))
                        .build();
                    Replay::default().listen(&pods);
                    let running = controller.run(a_while_after(pods.wait_for_sync()));
                    dropped_after(at, Box::pin(running)).await
                }
                "plain" => {
                    let plain = Informer::builder::<Pod>(source("default"));
                    let (_, controller) = plain.handler(Replay::default()).build();
                    let synced = controller.wait_for_sync();
                    dropped_after(at, Box::pin(controller.run(a_while_after(synced)))).await
                }
                _ => {
                    let (_, writer) = indexer::new(Indexers::<Pod>::new()).unwrap();
                    let reflector = Reflector::builder(source("default")).into_indexer(writer);
                    let synced = reflector.wait_for_sync();
                    dropped_after(at, reflector.run(a_while_after(synced))).await
                }
            };
            assert!(
                until_gone(baseline).await,
                "{} tasks of {what} are left, dropped at {at}",
                alive() - baseline
            );
            if complete {
                assert!(at > 20, "{what} has more steps than {at}");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_at_any_await_has_ended_every_task_when_the_run_returns() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let client = server.client();
    sleep(Duration::from_secs(1)).await;
    let baseline = alive();
    for drain in [None, Some(Duration::from_secs(5))] {
        for at in 0..60 {
            let list_watch = ListWatch::<Pod>::new(client.clone());
            let (pods, mut controller) = SharedInformer::<Pod>::builder(list_watch)
                .rng_seed(1)
                .build();
            if let Some(deadline) = drain {
                controller = controller.drain_at_shutdown(deadline);
            }
            let registration = Replay::default().listen(&pods);
            let (stop, stopped) = oneshot::channel::<()>();
            let mut running = pin!(controller.run(stopped.map(|_| ())));
            for _ in 0..at {
                assert!(running.as_mut().now_or_never().is_none());
                yield_now().await;
            }
            drop(stop);
            running.await.unwrap();
            // The tasks of the connection end a moment later; those of the informer have ended.
            assert!(pods.is_stopped() && pods.status().get().is_stopped());
            assert!(
                registration.remove().now_or_never().is_some(),
                "the listener had not ended, stopped at {at}"
            );
            assert!(
                until_gone(baseline).await,
                "{} tasks are left, stopped at {at}",
                alive() - baseline
            );
        }
    }
}

/// A value whose destructor adds a permit to the semaphore.
struct Dropped(Arc<Semaphore>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[tokio::test]
async fn a_handler_on_a_dedicated_thread_ends_when_the_controller_is_dropped() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    for started in [false, true] {
        let (pods, controller) = builder(&server).build();
        let (let_go, blocked) = std::sync::mpsc::channel::<()>();
        let gone = Arc::new(Semaphore::new(0));
        let dropped = Dropped(Arc::clone(&gone));
        let (calls, called) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (count, call) = (Arc::clone(&calls), Arc::clone(&called));
        let registration = pods
            .on_add(move |_, _| {
                let _ = &dropped;
                count.fetch_add(1, Ordering::SeqCst);
                call.add_permits(1);
                let _ = blocked.recv();
            })
            .dedicated_thread()
            .register()
            .unwrap();
        if started {
            let mut running = pin!(controller.run(std::future::pending()));
            tokio::select! {
                biased;
                _ = &mut running => unreachable!("the run is not stopped"),
                permit = called.acquire() => permit.unwrap().forget(),
            }
        } else {
            drop(controller);
        }
        while !pods.is_stopped() {
            yield_now().await;
        }
        // The callback that blocks its thread returns, and the next one does not start.
        drop(let_go);
        registration.remove().await;
        gone.acquire().await.unwrap().forget();
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(started));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_sync_ends_in_every_way_with_its_reason() {
    let server = Server::builder().seed([pod("a")]).build();
    let minute = Duration::from_secs(60);
    server.faults().answer(Match::list("pods"), 403).times(1000);
    let informer = run(listing(&server));
    let registration = Trace::default().listen(&informer.pods);
    let failure = |waited: Result<(), SyncError>| waited.unwrap_err().failure;
    for wait in [informer.pods.wait_for_sync(), registration.wait_for_sync()] {
        assert_eq!(
            failure(wait.clone().deadline(minute).await),
            SyncFailure::Deadline(minute)
        );
        assert_eq!(
            failure(wait.clone().fail_fast().await),
            SyncFailure::Refused
        );
    }
    let (own, its) = (informer.pods.wait_for_sync(), registration.wait_for_sync());
    let pods = informer.stop().await;
    assert_eq!(failure(own.clone().await), SyncFailure::Ended);
    assert_eq!(failure(its.await), SyncFailure::Ended);
    assert_eq!(
        failure(pods.wait_for_sync().fail_fast().deadline(minute).await),
        SyncFailure::Ended
    );

    server.faults().clear_answers();
    let informer = run(listing(&server));
    let stuck = informer
        .pods
        .on_add(|_, _| std::future::pending::<()>())
        .register()
        .unwrap();
    informer.pods.wait_for_sync().await.unwrap();
    let wait = stuck.wait_for_sync();
    assert_eq!(
        failure(wait.clone().deadline(minute).await),
        SyncFailure::Deadline(minute)
    );
    let Running { pods, .. } = informer;
    pods.wait_for_sync().deadline(Duration::ZERO).await.unwrap();
    assert!(pods.has_synced() && !stuck.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_removed_handler_reports_its_removal() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    let gate = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&gate);
    let registration = informer
        .pods
        .on_add(move |_, _| {
            let permits = Arc::clone(&permits);
            async move { permits.acquire().await.unwrap().forget() }
        })
        .register()
        .unwrap();
    informer.pods.wait_for_sync().await.unwrap();
    let wait = registration.wait_for_sync();
    assert!(registration.remove().now_or_never().is_none());
    sleep(Duration::from_secs(1)).await;
    gate.add_permits(10);
    let failed = wait.deadline(LONG).await.unwrap_err();
    assert_eq!(failed.failure, SyncFailure::Ended);
    informer.stop().await;
}
