//! Tests of handlers and informers that are created and removed while many events are delivered.

use std::{
    num::NonZeroUsize,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_informer::{
    Event, EventHandler, InformerOptions,
    factory::QueueKind,
    object::Known,
    queue::{BATCH, Batch, DeltaFifo, InOrder, KeyError, KeyErrors, Queue, Replaced},
    reflector::Delta,
    shared_informer::{ListenerBuffer, Registration, RevisionError},
    status::{Status, SyncFailure},
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::{JoinSet, yield_now},
    time::{Instant, sleep, timeout},
};

use super::Replay;
use crate::setting::{LONG, Trace, builder, factory_builder, labelled, pod, run};

#[tokio::test(start_paused = true)]
async fn a_handler_may_register_another_from_inside_its_callback() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    let inner = Replay::default();
    let (pods, other) = (informer.pods.clone(), inner.clone());
    let mut registered = 0;
    informer
        .pods
        .on_add(move |_, _| {
            if registered == 0 {
                other.listen(&pods);
            }
            registered += 1;
        })
        .register()
        .unwrap();
    informer.caught_up(&server).await;
    server.update(labelled("a", "x")).unwrap();
    server.create(pod("c")).unwrap();
    informer.caught_up(&server).await;
    inner.check(&informer.pods);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_remove_itself_from_inside_its_callback_without_waiting() {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let (pods, controller) = builder(&server).build();
    let (trace, other) = (Trace::default(), Replay::default());
    let own: Arc<Mutex<Option<Registration<Pod>>>> = Arc::default();
    let (notes, mine) = (trace.clone(), Arc::clone(&own));
    let registration = pods
        .on_add(move |pod, _| {
            notes.note(pod.name());
            let own = mine.lock().take();
            if let Some(own) = own {
                assert!(
                    own.remove().now_or_never().is_some(),
                    "a removal inside the callback does not wait for its end"
                );
            }
            sleep(Duration::from_secs(1))
        })
        .register()
        .unwrap();
    let wait = registration.wait_for_sync();
    *own.lock() = Some(registration);
    other.listen(&pods);
    let mut running = pin!(controller.run(std::future::pending()));
    let steps = async {
        pods.wait_for_sync().await.unwrap();
        server.create(pod("d")).unwrap();
        pods.wait_for_revision(server.revision(), LONG)
            .await
            .unwrap();
        pods.handlers_idle().await;
        wait.await.unwrap_err()
    };
    tokio::select! {
        biased;
        _ = &mut running => unreachable!("the run is not stopped"),
        failed = steps => assert_eq!(failed.failure, SyncFailure::Ended),
    }
    assert_eq!(trace.take(), "a\n");
    other.check(&pods);
}

#[tokio::test(start_paused = true)]
async fn a_handler_registered_during_a_relist_receives_every_object_once() {
    for delta_fifo in [false, true] {
        let server = Server::builder()
            .seed((0..8).map(|n| pod(&format!("p{n}"))))
            .build();
        let mut informer = builder(&server).resync(Duration::from_secs(7));
        if delta_fifo {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let pods = &informer.pods;
        let gate = Arc::new(Semaphore::new(9));
        let permits = Arc::clone(&gate);
        let held = Replay::default();
        let hear = held.clone();
        pods.handler(Paced(hear, permits))
            .buffer(ListenerBuffer::Block(NonZeroUsize::MIN))
            .register()
            .unwrap();
        informer.caught_up(&server).await;
        sleep(Duration::from_secs(2)).await;

        server.faults().cut_watches();
        for n in 2..6 {
            server.update(labelled(&format!("p{n}"), "x")).unwrap();
        }
        server.delete("v1", "pods", "default/p6").unwrap();
        server.create(pod("p8")).unwrap();
        server.faults().expire_history();
        let mut late = Vec::new();
        for _ in 0..40 {
            sleep(Duration::from_secs(1)).await;
            let replay = Replay::default();
            late.push((replay.listen(pods), replay));
            gate.add_permits(1);
        }
        gate.add_permits(1000);
        informer.caught_up(&server).await;
        held.check(pods);
        for (registration, replay) in late {
            registration.wait_for_sync().deadline(LONG).await.unwrap();
            replay.check(pods);
        }
        informer.stop().await;
    }
}

/// A handler that waits for a permit of the semaphore before it records each event in the [`Replay`].
struct Paced(Replay, Arc<Semaphore>);

impl EventHandler<Pod> for Paced {
    async fn handle(&mut self, event: Event<Pod>) {
        self.1.acquire().await.unwrap().forget();
        self.0.hear(&event);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_at_every_initial_object_syncs_on_either_queue() {
    for delta_fifo in [false, true] {
        let server = Server::builder()
            .seed([pod("a"), pod("b"), pod("c")])
            .build();
        let mut informer = builder(&server);
        if delta_fifo {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let (calm, heard) = (Replay::default(), Trace::default());
        let calm_one = calm.listen(&informer.pods);
        let notes = heard.clone();
        let panicking = informer
            .pods
            .on_add(move |pod, initial| {
                notes.note(pod.name());
                assert!(!initial, "planted");
            })
            .register()
            .unwrap();
        calm_one.wait_for_sync().await.unwrap();
        assert!(!panicking.has_synced());
        let allowed = Duration::from_millis(3500);
        panicking.wait_for_sync().deadline(allowed).await.unwrap();
        server.create(pod("d")).unwrap();
        informer.caught_up(&server).await;
        assert_eq!(heard.take(), "a\nb\nc\nd\n");
        calm.check(&informer.pods);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_revision_ends_with_the_informer_before_its_deadline() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let wait = informer.pods.wait_for_revision(1_000_000, LONG);
    let began = Instant::now();
    let (waited, _) = tokio::join!(wait, informer.stop());
    let failed = waited.unwrap_err();
    assert!(matches!(failed, RevisionError::Stopped { .. }), "{failed}");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// A queue that records the largest length that it has reached.
struct Longest(InOrder<Pod>, Arc<AtomicUsize>);

impl Queue<Pod> for Longest {
    fn push(&mut self, delta: Delta<Pod>, known: &dyn Known<Pod>) -> Result<(), KeyError<Pod>> {
        self.0.push(delta, known)?;
        self.1.fetch_max(self.0.len(), Ordering::Relaxed);
        Ok(())
    }

    fn replace(
        &mut self,
        list: Replaced<Pod>,
        known: &dyn Known<Pod>,
    ) -> Result<(), KeyErrors<Pod>> {
        self.0.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<Pod>) {
        self.0.resync(known);
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<Pod>> {
        self.0.pop_batch(room)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_block_buffer_bounds_the_length_of_the_queue() {
    let server = Server::builder().seed([pod("a")]).build();
    let longest = Arc::new(AtomicUsize::new(0));
    let queue = Longest(InOrder::new(), Arc::clone(&longest));
    let informer = run(builder(&server).queue(queue));
    let gate = Arc::new(Semaphore::new(2));
    let replay = Replay::default();
    let held = informer
        .pods
        .handler(Paced(replay.clone(), Arc::clone(&gate)))
        .buffer(ListenerBuffer::Block(NonZeroUsize::MIN));
    held.register().unwrap();
    informer.caught_up(&server).await;
    for n in 0..3500 {
        server.update(labelled("a", &n.to_string())).unwrap();
        if n % 100 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    sleep(Duration::from_secs(10)).await;
    let longest = longest.load(Ordering::Relaxed);
    assert_eq!(longest, 2 * BATCH);
    gate.add_permits(10_000);
    informer.caught_up(&server).await;
    replay.check(&informer.pods);
    informer.stop().await;
}

/// A port of client-go's test `TestSharedInformerHandlerAbuse`.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_tasks_add_and_remove_handlers_while_ten_thousand_events_flow() {
    let server = Server::builder().seed([pod("first")]).build();
    let (pods, controller) = builder(&server).build();
    let controller = controller.drain_at_shutdown(LONG);
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(stopped.map(|_| ())));
    let stays = Replay::default();
    stays.listen(&pods);
    pods.wait_for_sync().await.unwrap();

    let mut abusers = JoinSet::new();
    for n in 0..100 {
        let pods = pods.clone();
        abusers.spawn(async move {
            let mut kept = Vec::new();
            for round in 0..10 {
                let replay = Replay::default();
                let registration = replay.listen(&pods);
                for _ in 0..n % 7 {
                    yield_now().await;
                }
                match (n + round) % 4 {
                    0 => drop(registration.remove()),
                    1 => registration.remove().await,
                    2 => {
                        registration.wait_for_sync().await.unwrap();
                        registration.remove().await;
                    }
                    _ if round == 9 => kept.push(replay),
                    _ => {
                        let _ = registration.remove().now_or_never();
                    }
                }
            }
            kept
        });
    }
    for n in 0..2500 {
        let name = format!("p{}", n % 50);
        server.create(pod(&name)).unwrap();
        server.update(labelled(&name, "x")).unwrap();
        server.update(labelled(&name, "y")).unwrap();
        if n < 2490 {
            server
                .delete("v1", "pods", &format!("default/{name}"))
                .unwrap();
        }
        if n % 16 == 0 {
            yield_now().await;
        }
    }
    let kept: Vec<_> = abusers.join_all().await.into_iter().flatten().collect();
    pods.wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    drop(stop);
    tasks.join_all().await;
    assert_eq!(pods.indexer().len(), 1 + 10);
    stays.check(&pods);
    assert!(!kept.is_empty());
    for replay in kept {
        replay.check(&pods);
    }
    assert_eq!(pods.status().get().discarded, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_factory_can_be_shut_down_during_concurrent_requests_and_starts() {
    let server = Server::builder().seed([pod("a")]).build();
    let client = server.client();
    for round in 0..20 {
        let factory = factory_builder(client.clone()).build();
        let mut users = JoinSet::new();
        for n in 0..8 {
            let factory = factory.clone();
            users.spawn(async move {
                for _ in 0..n {
                    yield_now().await;
                }
                let maps = factory.informer::<ConfigMap>().status();
                factory.start();
                let options = InformerOptions::<Pod>::new()
                    .fields(format!("metadata.name=p{n}"))
                    .queue(QueueKind::DeltaFifo);
                let pods = factory.informer_with(options).unwrap();
                // A registration and a rejection are both valid.
                let _ = pods.on_add(|_, _| {}).register();
                factory.start();
                [maps, pods.status()]
            });
        }
        for _ in 0..round % 5 {
            yield_now().await;
        }
        factory.shutdown().await;
        for mut status in users.join_all().await.into_iter().flatten() {
            // `None` means that its informer has ended.
            let ended = timeout(LONG, status.wait_for(Status::is_stopped)).await;
            assert!(ended.is_ok(), "an informer of the factory is still running");
        }
        let late = factory.informer::<Pod>();
        factory.start();
        assert_eq!(
            late.wait_for_sync().await.unwrap_err().failure,
            SyncFailure::Ended
        );
    }
}
