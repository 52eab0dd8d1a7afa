//! Tests of handlers in corner cases, such as full buffers, late registration, and waits for idle handlers.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use expect_test::expect;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler,
    client::ListWatch,
    object::Known,
    queue::{Batch, InOrder, KeyError, KeyErrors, Queue, Replaced},
    reflector::Delta,
    shared_informer::ListenerBuffer,
    status::SyncFailure,
};
use kube_informer_apiserver::{Match, Server};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{GUARD, broken};
use crate::setting::{LONG, Trace, builder, labelled, listing, pod, run};

/// A queue that unblocks the handler [`Stepping`] when `pop_batch` is called with a `room` of zero.
///
/// The call returns after the handler has received the next event. The handler's buffer then has room.
struct RoomMadeMeanwhile {
    queue: InOrder<Pod>,
    heard: watch::Receiver<usize>,
    let_go: mpsc::Sender<()>,
    took: mpsc::Receiver<()>,
}

impl Queue<Pod> for RoomMadeMeanwhile {
    fn push(&mut self, delta: Delta<Pod>, known: &dyn Known<Pod>) -> Result<(), KeyError<Pod>> {
        Queue::push(&mut self.queue, delta, known)
    }

    fn replace(
        &mut self,
        list: Replaced<Pod>,
        known: &dyn Known<Pod>,
    ) -> Result<(), KeyErrors<Pod>> {
        self.queue.replace(list, known)
    }

    fn resync(&mut self, known: &dyn Known<Pod>) {
        self.queue.resync(known);
    }

    fn pop_batch(&mut self, room: usize) -> Option<Batch<Pod>> {
        let batch = self.queue.pop_batch(room);
        if room == 0 && !Queue::is_empty(&self.queue) && *self.heard.borrow() == HELD {
            self.let_go.send(()).unwrap();
            self.took.recv().unwrap();
        }
        batch
    }

    fn len(&self) -> usize {
        Queue::len(&self.queue)
    }

    fn is_empty(&self) -> bool {
        Queue::is_empty(&self.queue)
    }
}

/// Number of the event at which [`Stepping`] blocks. This event is the first change after `Synced`.
const HELD: usize = 3;

/// A handler that blocks at event number [`HELD`] until the queue [`RoomMadeMeanwhile`] unblocks the handler.
///
/// At the next event, the handler notifies the queue.
struct Stepping {
    heard: watch::Sender<usize>,
    let_go: mpsc::Receiver<()>,
    took: mpsc::Sender<()>,
}

impl EventHandler<Pod> for Stepping {
    async fn handle(&mut self, _: Event<Pod>) {
        self.heard.send_modify(|heard| *heard += 1);
        let heard = *self.heard.borrow();
        if heard == HELD {
            self.let_go.recv().unwrap();
        } else if heard == HELD + 1 {
            self.took.send(()).unwrap();
        }
    }
}

#[tokio::test]
async fn room_freed_while_the_queue_is_popped_is_noticed() {
    let server = Server::builder().seed([pod("a")]).build();
    let (heard, mut progress) = watch::channel(0);
    let (let_go, goes) = mpsc::channel();
    let (took, takes) = mpsc::channel();
    let informer = run(builder(&server).queue(RoomMadeMeanwhile {
        queue: InOrder::new(),
        heard: progress.clone(),
        let_go,
        took: takes,
    }));
    informer
        .pods
        .handler(Stepping {
            heard,
            let_go: goes,
            took,
        })
        .dedicated_thread()
        .buffer(ListenerBuffer::Block(NonZeroUsize::MIN))
        .register()
        .unwrap();
    progress.wait_for(|heard| *heard == HELD - 1).await.unwrap();
    server.create(pod("held")).unwrap();
    progress.wait_for(|heard| *heard == HELD).await.unwrap();
    server.create(pod("fills-the-buffer")).unwrap();
    server.create(pod("waits-in-the-queue")).unwrap();

    timeout(GUARD, progress.wait_for(|heard| *heard == HELD + 2))
        .await
        .expect("the loop pops again")
        .unwrap();
    assert_eq!(informer.pods.indexer().len(), 4);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_period_set_before_the_start_is_kept() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).resync(Duration::from_secs(60)).build();
    let trace = Trace::default();
    pods.handler(trace.clone())
        .resync(Duration::from_secs(5))
        .register()
        .unwrap();
    controller
        .run(sleep(Duration::from_secs(21)))
        .await
        .unwrap();
    expect![[r#"
        add default/a@1 (initial)
        synced
        update default/a@1 → 1 (resync)
        update default/a@1 → 1 (resync)
        update default/a@1 → 1 (resync)
        update default/a@1 → 1 (resync)
    "#]]
    .assert_eq(&trace.take());
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_receives_broken_objects_as_added_before_other_events() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    server.update(broken("a")).unwrap();
    server.update(broken("b")).unwrap();
    informer.caught_up(&server).await;
    let late = Trace::default();
    let registration = late.listen(&informer.pods);
    registration.wait_for_sync().deadline(LONG).await.unwrap();
    server.update(labelled("a", "x")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    informer.caught_up(&server).await;
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        update default/a@1 → 5
        delete default/b@2 (final state unknown)
    "#]]
    .assert_eq(&late.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_with_many_events_yields_to_other_tasks() {
    let server = Server::builder()
        .seed((0..1000).map(|n| pod(&format!("p{n}"))))
        .build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let in_a_row = Arc::new(AtomicUsize::new(0));
    let (most, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&in_a_row), Arc::clone(&most), Arc::clone(&all));
    informer
        .pods
        .on_add(move |_, _| {
            let (in_a_row, most, all) = &counts;
            let row = in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
            most.fetch_max(row, Ordering::Relaxed);
            all.fetch_add(1, Ordering::Relaxed);
        })
        .register()
        .unwrap();
    while all.load(Ordering::Relaxed) < 1000 {
        tokio::task::yield_now().await;
        in_a_row.store(0, Ordering::Relaxed);
    }
    let most = most.load(Ordering::Relaxed);
    // Tokio gives a task a budget of 128; the test requires only that one turn does not process all 1,000.
    assert!(
        most < 500,
        "{most} callbacks without a turn of another task"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_idle_handlers_includes_a_handler_registered_just_before() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let trace = Trace::default();
    let notes = trace.clone();
    informer
        .pods
        .on_add(move |pod, _| {
            let notes = notes.clone();
            async move {
                sleep(Duration::from_secs(10)).await;
                notes.note(pod.name());
            }
        })
        .register()
        .unwrap();
    informer.pods.handlers_idle().await;
    assert_eq!(trace.take(), "a\n");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_removed_handler_ends_before_the_informer_syncs() {
    let server = Server::builder().build();
    server
        .faults()
        .answer(Match::list("pods"), 500)
        .times(u64::MAX);
    let informer = run(builder(&server));
    let registration = Trace::default().listen(&informer.pods);
    let wait = registration.wait_for_sync().into_future();
    tokio::pin!(wait);
    assert!(wait.as_mut().now_or_never().is_none());
    registration.remove().await;
    let waited = timeout(LONG, wait).await.expect("the wait ends");
    assert!(waited.is_err(), "the informer never synced");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_fail_fast_wait_fails_if_one_source_is_forbidden() {
    let (failing, forbidden) = (Server::builder().build(), Server::builder().build());
    for (server, status) in [(&failing, 500), (&forbidden, 403)] {
        server
            .faults()
            .answer(Match::list("pods"), status)
            .times(u64::MAX);
    }
    let informer = run(listing(&failing).source(ListWatch::<Pod>::new(forbidden.client())));
    let waited = timeout(LONG, informer.pods.wait_for_sync().fail_fast()).await;
    let failed = waited.expect("the wait fails").unwrap_err();
    assert_eq!(failed.failure, SyncFailure::Refused);
    informer.stop().await;
}
