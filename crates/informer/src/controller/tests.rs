//! Tests the informer's loop one iteration at a time.
//!
//! The tests cover resyncs, snapshots, long lists, and the initial sync after a warm start.

use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;

use super::{bounds::CHANNEL_CAPACITY, *};
use crate::{
    indexer::{self, Indexers},
    limits::MESSAGE_BYTES,
    metrics::Meter,
    object::Object,
    offload::{OFFLOADED_MIN, with_held_pool},
    processor::{Buffer, Delivery, ListenerBuffer},
    queue::{BATCH, DeltaFifo, InOrder},
    reflector::{Error, NotServed},
    status::StatusWriter,
};

const PERIOD: Duration = Duration::from_secs(10);

fn pod(name: &str, revision: u64) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: Some(revision.to_string()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

/// Creates an informer's loop with one handler whose resync is due.
///
/// Also returns the sender of the channel from which the loop receives changes.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one channel that has no bound"
)]
async fn due(queue: impl Queue<Pod> + 'static) -> (Serving<Pod>, mpsc::Sender<Delta<Pod>>) {
    let room = Arc::new(Notify::new());
    let mut processor = Processor::new(PERIOD, Arc::clone(&room));
    let (_, indexer) = indexer::new(Indexers::new()).unwrap();
    let buffer = Arc::new(Buffer::new(ListenerBuffer::Grow, Arc::from("test"), room));
    let listener = Listener {
        id: ListenerId(0),
        buffer,
        resync: None,
        delivery: Delivery::Changes,
        has_task: false,
    };
    processor.add(listener, None, indexer.snapshot(), true);
    processor.started();
    tokio::time::advance(PERIOD).await;
    let report = Reporter {
        not_served: NotServed::default(),
        name: Arc::from("pods"),
        expects: Arc::from("v1 Pod"),
        status: StatusWriter::new(1),
        error_handler: None,
        meter: Meter::default(),
        span: tracing::Span::none(),
    };
    report.status.set_synced();
    let applied = Arc::new(Notify::new());
    let (arriving, deltas) = mpsc::channel(CHANNEL_CAPACITY);
    let serving = Serving {
        sources: 1,
        arrived: BTreeSet::new(),
        listed: BTreeSet::new(),
        unconfirmed: None,
        snapshot_requests: Vec::new(),
        resyncing: 0,
        notes: StatusNotes::new(report.clone()),
        keyless: LogLimiter::default(),
        phase: watch::channel(Phase::Running).1,
        parts: Parts {
            mutation_detector: None,
            bounds: Bounds::default(),
            queue: Lent::new(Box::new(queue)),
            indexer: Lent::new(indexer),
            processor,
            commands: mpsc::unbounded_channel().1,
            deltas,
            report,
            applied,
        },
    };
    (serving, arriving)
}

#[tokio::test(start_paused = true)]
async fn a_resync_passes_over_what_has_arrived_and_is_not_in_the_queue_yet() {
    let (mut serving, arriving) = due(DeltaFifo::new()).await;
    for name in ["a", "b"] {
        serving.parts.indexer.add(pod(name, 1)).unwrap();
    }
    let updated = Delta::updated(Object::new(pod("a", 2)).unwrap());
    arriving.try_send(updated).unwrap();
    serving.resync().await;
    let batches = std::iter::from_fn(|| serving.parts.queue.pop_batch(usize::MAX));
    let deltas: Vec<_> = batches.flat_map(|batch| batch.deltas).collect();
    let told = deltas
        .iter()
        .map(|delta| format!("{:?} {:?}", delta.delta_type(), delta.object().unwrap()));
    assert_eq!(told.collect::<Vec<_>>(), ["Updated a@2", "Sync b@1"]);
}

#[tokio::test(start_paused = true)]
async fn a_resync_takes_from_the_channel_up_to_what_the_queue_may_hold() {
    let (mut serving, arriving) = due(InOrder::new()).await;
    let bookmark = || {
        let revision = 1.into();
        Delta::new(SourceId::default(), DeltaKind::Bookmark { revision })
    };
    for _ in 1..CHANNEL_CAPACITY {
        serving.accept(bookmark()).await;
    }
    for _ in 0..3 {
        arriving.try_send(bookmark()).unwrap();
    }
    serving.resync().await;
    let Parts { queue, deltas, .. } = &serving.parts;
    assert_eq!(
        (queue.len(), deltas.len()),
        (CHANNEL_CAPACITY + 1, 2),
        "one more, and the resync"
    );
}

fn list(source: u32, revision: u64, pods: &[Pod]) -> Delta<Pod> {
    let objects = pods.iter().map(|pod| Object::new(pod.clone()).unwrap());
    let kind = DeltaKind::ReplacedAll {
        objects: objects.collect(),
        revision: revision.into(),
    };
    Delta::new(SourceId::new(source), kind)
}

#[tokio::test(start_paused = true)]
async fn after_a_warm_start_synced_waits_until_what_was_listed_anew_is_in_the_cache() {
    let (mut serving, _arriving) = due(InOrder::new()).await;
    serving.sources = 2;
    serving.parts.report.status = StatusWriter::new(2);
    let (reply, mut filled) = oneshot::channel();
    serving
        .fill(vec![list(0, 5, &[pod("a", 1)]), list(1, 5, &[])], reply)
        .await;
    assert!(filled.try_recv().is_err());
    serving.pop().await;
    filled.try_recv().unwrap();
    assert_eq!(serving.parts.indexer.snapshot().len(), 1);
    let status = serving.parts.report.status.clone();
    assert!(!status.is_synced(), "nothing is confirmed");

    let bookmark = || DeltaKind::Bookmark { revision: 5.into() };
    for _ in 0..BATCH {
        serving
            .accept(Delta::new(SourceId::new(0), bookmark()))
            .await;
    }
    serving.accept(list(1, 6, &[pod("b", 6)])).await;
    for _ in 0..BATCH {
        serving
            .accept(Delta::new(SourceId::new(0), bookmark()))
            .await;
    }
    serving.pop().await;
    assert_eq!(serving.parts.indexer.snapshot().len(), 1);
    assert!(!status.is_synced(), "a list is waiting");
    serving.pop().await;
    assert_eq!(serving.parts.indexer.snapshot().len(), 2);
    assert!(status.is_synced(), "later changes are not counted");
    assert!(!serving.parts.queue.is_empty());
}

/// Requests a snapshot, which the loop returns after it has applied all queued changes.
async fn request_snapshot(
    serving: &mut Serving<Pod>,
) -> oneshot::Receiver<Result<Snapshot<Pod>, NoSnapshot>> {
    let (reply, snapshot) = oneshot::channel();
    serving.obey(Command::Snapshot(reply)).await;
    serving.reply_with_snapshots();
    snapshot
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_returned_when_the_objects_of_each_source_match_its_revision() {
    let added = |n| Delta::added(Object::new(pod(&format!("p{n}"), 2)).unwrap());
    let (mut in_order, _arriving) = due(InOrder::new()).await;
    in_order.accept(added(0)).await;
    assert!(
        request_snapshot(&mut in_order)
            .await
            .await
            .unwrap()
            .unwrap()
            .is_empty()
    );

    let (mut by_key, _arriving) = due(DeltaFifo::new()).await;
    for n in 0..=BATCH {
        by_key.accept(added(n)).await;
    }
    let mut saved = request_snapshot(&mut by_key).await;
    by_key.pop().await;
    by_key.reply_with_snapshots();
    assert!(saved.try_recv().is_err(), "a change waits in the queue");
    by_key.pop().await;
    by_key.reply_with_snapshots();
    assert_eq!(saved.await.unwrap().unwrap().len(), BATCH + 1);

    by_key.parts.report.status = StatusWriter::new(1);
    let refused = request_snapshot(&mut by_key).await.await.unwrap();
    assert!(matches!(refused, Err(NoSnapshot::NotSynced)));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_a_snapshot_does_not_delay_the_end() {
    let (mut serving, _arriving) = due(DeltaFifo::new()).await;
    serving
        .accept(Delta::added(Object::new(pod("a", 2)).unwrap()))
        .await;
    let saved = request_snapshot(&mut serving).await;
    let buffer = Buffer::new(ListenerBuffer::Grow, Arc::from("test"), Arc::default());
    let buffer = Arc::new(buffer);
    let snapshot = serving.parts.indexer.snapshot();
    let listener = Listener {
        id: ListenerId(1),
        buffer,
        resync: None,
        delivery: Delivery::Changes,
        has_task: true,
    };
    let task = Box::pin(async { assert!(saved.await.is_err()) });
    let processor = &mut serving.parts.processor;
    processor.add(listener, Some(task), snapshot, true);
    let closed = tokio::time::timeout(PERIOD, serving.close()).await;
    closed.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_key_function_is_reported_as_one_line_of_bounded_length() {
    let key = |_: &Object<Pod>| Err(format!("no\ncolon {}", "x".repeat(2 * MESSAGE_BYTES)));
    let (mut serving, _arriving) = due(DeltaFifo::new().key_func(key)).await;
    let (sender, errors) = std::sync::mpsc::channel();
    serving.parts.report.error_handler = Some(Arc::new(move |error: &Error| {
        sender.send(error.to_string()).expect("the receiver exists");
    }));
    serving
        .accept(Delta::added(Object::new(pod("a", 2)).unwrap()))
        .await;
    let error = errors.try_recv().unwrap();
    assert!(error.contains("no colon xxx"), "{error}");
    let most = MESSAGE_BYTES + 100;
    assert!(error.len() < most, "{} bytes", error.len());
}

#[test]
fn a_long_list_is_queued_on_another_thread() {
    with_held_pool(async |hold| {
        let (mut serving, _arriving) = due(DeltaFifo::new()).await;
        let pods: Vec<_> = (0..OFFLOADED_MIN)
            .map(|n| pod(&format!("p{n}"), 1))
            .collect();
        let held = hold();
        let mut accepted = Box::pin(serving.accept(list(0, 1, &pods)));
        assert!(
            accepted.as_mut().now_or_never().is_none(),
            "the work runs on another thread"
        );
        drop(held);
        accepted.await;
        let mut waiting = 0;
        while let Some(batch) = serving.parts.queue.pop_batch(usize::MAX) {
            waiting += batch.deltas.len();
        }
        assert_eq!(waiting, OFFLOADED_MIN);
        for pod in pods {
            serving.parts.indexer.add(pod).unwrap();
        }
        let _held = hold();
        assert!(
            serving.resync().now_or_never().is_none(),
            "the work runs on another thread"
        );
    });
}
