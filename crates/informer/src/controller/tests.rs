//! One step of the loop: what a resync does with changes that have arrived and are not in the queue.

use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;

use super::{bounds::CHANNEL_CAPACITY, *};
use crate::{
    indexer::{self, Indexers},
    metrics::Meter,
    object::Object,
    processor::{Buffer, Closer, ListenerBuffer, Tells},
    queue::{DeltaFifo, InOrder},
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

/// A loop with one listener, which is due a resync, and where its changes come from.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one channel that has no bound"
)]
async fn due(queue: impl Queue<Pod> + 'static) -> (Serving<Pod>, mpsc::Sender<Delta<Pod>>) {
    let room = Arc::new(Notify::new());
    let mut processor = Processor::new(PERIOD, Arc::clone(&room));
    let (_, indexer) = indexer::new(Indexers::new()).unwrap();
    let buffer = Arc::new(Buffer::new(ListenerBuffer::Grow, Arc::from("test"), room));
    let listener = NewListener {
        id: ListenerId(0),
        closer: Closer::new(&buffer),
        buffer,
        resync: None,
        tells: Tells::News,
        task: None,
    };
    processor.add(listener, indexer.snapshot(), true);
    processor.started();
    tokio::time::advance(PERIOD).await;
    let report = Reporter {
        name: Arc::from("pods"),
        expects: Arc::from("v1 Pod"),
        status: StatusWriter::new(1),
        error_handler: None,
        meter: Meter::default(),
        span: tracing::Span::none(),
    };
    let applied = Arc::new(Notify::new());
    let (arriving, deltas) = mpsc::channel(CHANNEL_CAPACITY);
    let serving = Serving {
        sources: 1,
        listed: BTreeSet::new(),
        synced: true,
        resyncing: false,
        notes: StatusNotes::new(report.clone()),
        phase: watch::channel(Phase::Running).1,
        _gone: GoneGuard(report.clone(), Arc::clone(&applied)),
        parts: Parts {
            mutation_detector: None,
            bounds: Bounds::default(),
            queue: Box::new(queue),
            indexer,
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
    serving.resync();
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
        serving.accept(bookmark());
    }
    for _ in 0..3 {
        arriving.try_send(bookmark()).unwrap();
    }
    serving.resync();
    let Parts { queue, deltas, .. } = &serving.parts;
    assert_eq!(
        (queue.len(), deltas.len()),
        (CHANNEL_CAPACITY + 1, 2),
        "one more, and the resync"
    );
}
