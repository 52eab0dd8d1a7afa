//! Tests the limits on the number of changes that wait in the informer's queue, in a batch and in a handler's
//! buffer.
//!
//! The tests also check the status `StoreFull`, which an informer reports while its store accepts no changes.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, InitialList, SharedInformer,
    factory::{InformerOptions, QueueKind},
    queue::DeltaFifo,
    reflector::{Delta, Reflector, ReflectorStore, StoreError, TimeoutConfig},
    shared_informer::ListenerBuffer,
    status::Activity,
    transport::{Error, ListOptions, ListerWatcher, Response},
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::sleep};

use super::{Gated, stuck};
use crate::{
    metrics::Recorder,
    script::{self, Answer, Script},
    setting::{LONG, Trace, builder, factory_builder, labelled, pod, run},
};

/// A `ListerWatcher` whose watch always has a next event. The counter is the number of events that the
/// reflector has read.
struct Endless(Arc<AtomicUsize>);

impl ListerWatcher for Endless {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let text = Bytes::from(script::list(5, "", &[]));
        async { Ok(stream::iter([Ok(text)]).boxed().into()) }.boxed()
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let taken = Arc::clone(&self.0);
        let events = stream::iter(6..).map(move |revision| {
            taken.fetch_add(1, Ordering::Relaxed);
            let pod = script::pod(&format!("p{revision}"), revision);
            Ok(Bytes::from(script::event("ADDED", &pod)))
        });
        async { Ok(events.boxed().into()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_block_buffer_limits_how_many_watch_events_are_read() {
    let taken = Arc::new(AtomicUsize::new(0));
    let source = Endless(Arc::clone(&taken));
    let builder = SharedInformer::<Pod>::builder(source)
        .batch_size(4)
        .queue_capacity(10);
    let informer = run(builder);
    let three = ListenerBuffer::Block(NonZeroUsize::new(3).unwrap());
    let (gate, heard, handler) = stuck(&informer, three, 0);
    sleep(Duration::from_secs(60)).await;
    let taken = || taken.load(Ordering::Relaxed);
    // The handler processes the marker, three events wait in its buffer, ten in the queue, ten in the
    // channel to it, and the reflector holds one.
    assert_eq!((taken(), handler.depth()), (3 + 10 + 10 + 1, 1 + 3));
    assert_eq!(informer.pods.indexer().len(), 3);

    gate.add_permits(1 + 7);
    sleep(Duration::from_secs(60)).await;
    assert_eq!((taken(), heard.len()), (8 + 3 + 10 + 10 + 1, 1 + 7));
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    handler.remove().await;
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_a_full_store_until_the_watch_continues() {
    let events = |revisions: std::ops::Range<u64>| {
        let pod = |revision| script::pod(&format!("p{revision}"), revision);
        let event = |revision| script::event("ADDED", &pod(revision));
        script::hangs(revisions.map(event).collect())
    };
    let script = Script::new([
        script::body(script::list(5, "", &[])),
        events(6..20),
        events(11..20),
    ]);
    let builder = SharedInformer::<Pod>::builder(script.clone())
        .batch_size(1)
        .queue_capacity(1);
    let informer = run(builder);
    let one = ListenerBuffer::Block(NonZeroUsize::MIN);
    let (gate, heard, _handler) = stuck(&informer, one, 0);
    let activity = || informer.pods.status().get().activity();
    let millis = |millis| sleep(Duration::from_millis(millis));
    millis(900).await;
    assert_eq!(activity(), Activity::Watching, "this may be a burst");
    millis(200).await;
    assert_eq!(activity(), Activity::StoreFull);
    let status = informer.pods.status().get().to_string();
    assert_eq!(status, "synced, paused, because the store is full");

    gate.add_permits(1);
    millis(900).await;
    assert_eq!(
        activity(),
        Activity::Watching,
        "one more change was applied"
    );
    millis(60_000).await;
    assert_eq!(
        activity(),
        Activity::StoreFull,
        "the store is full without a watch too"
    );
    assert_eq!(script.requests.take(), "list 0\nwatch 5\n");
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    millis(900).await;
    assert_eq!(activity(), Activity::Watching);
    assert_eq!(script.requests.take(), "watch 10\n");
    assert_eq!((informer.pods.indexer().len(), heard.len()), (14, 1 + 14));
    informer.stop().await;
}

/// A custom store that sleeps for five seconds before it accepts a delta.
struct Slow;

impl ReflectorStore<Pod> for Slow {
    async fn accept(&mut self, _: Delta<Pod>) -> Result<(), StoreError> {
        sleep(Duration::from_secs(5)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_shorter_full_store_timeout_reports_a_full_store_earlier() {
    let script = Script::new([script::body(script::list(5, "", &[]))]);
    let timeouts = TimeoutConfig {
        full_store: Duration::from_millis(500),
        ..TimeoutConfig::default()
    };
    let reflector = Reflector::builder(script).timeouts(timeouts);
    let reflector = reflector.into_store(Slow);
    let status = reflector.status();
    let looking = async {
        sleep(Duration::from_millis(600)).await;
        assert_eq!(status.get().activity(), Activity::StoreFull);
    };
    reflector.run(looking).await;
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_a_full_store_during_a_list_and_a_streaming_list() {
    let listed = || script::body(script::list(5, "", &[]));
    let end = r#"{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let streamed = script::hangs(script::event("BOOKMARK", end));
    for script in [
        Script::new([listed()]),
        Script::streaming([streamed, Answer::Never]),
    ] {
        let reflector = Reflector::builder(script)
            .initial_list(InitialList::Streaming)
            .into_store(Slow);
        let status = reflector.status();
        let running = reflector.run(sleep(Duration::from_secs(9)));
        let looking = async {
            let mut seen = Vec::new();
            for _ in 0..8 {
                sleep(Duration::from_secs(1)).await;
                seen.push(status.get().activity());
            }
            seen
        };
        let ((), seen) = tokio::join!(running, looking);
        let full = seen.iter().filter(|it| **it == Activity::StoreFull).count();
        assert!((3..=5).contains(&full), "{seen:?}");
        assert!(seen[6..].iter().all(|it| *it != Activity::StoreFull));
    }
}

#[tokio::test(start_paused = true)]
async fn a_custom_batch_size_is_used_through_a_factory() {
    let names: Vec<_> = (0..6).map(|n| format!("p{n}")).collect();
    let server = Server::builder()
        .seed(names.iter().map(|name| pod(name)))
        .build();
    let factory = factory_builder(server.client()).build();
    let options = InformerOptions::<Pod>::new()
        .queue(QueueKind::DeltaFifo)
        .batch_size(2)
        .queue_capacity(7);
    let pods = factory.informer_with(options).unwrap();
    let lengths: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (seen, indexer) = (Arc::clone(&lengths), pods.indexer());
    let handler = pods
        .on_add(move |_, _| seen.lock().push(indexer.len()))
        .register()
        .unwrap();
    factory.start();
    handler.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(handler.status().told, 6 + 1);
    let lengths = lengths.lock().clone();
    assert_eq!(
        lengths,
        [2, 2, 4, 4, 6, 6],
        "two changes are applied per batch"
    );
    factory.shutdown().await;
}

/// A handler that sleeps for this duration during each event.
struct Takes(Duration);

impl EventHandler<Pod> for Takes {
    async fn handle(&mut self, _: Event<Pod>) {
        sleep(self.0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn resyncs_longer_than_their_period_do_not_keep_changes_out_of_a_full_queue() {
    let pods = (0..10).map(|number| pod(&format!("p{number}")));
    let server = Server::builder().seed(pods).build();
    let second = Duration::from_secs(1);
    let building = builder(&server).queue(DeltaFifo::new()).queue_capacity(2);
    let informer = run(building.resync(second));
    let four = NonZeroUsize::new(4).unwrap();
    // A resync takes 3 s with this handler.
    let slow = informer.pods.handler(Takes(Duration::from_millis(300)));
    slow.buffer(ListenerBuffer::Block(four)).register().unwrap();
    let fast = informer.pods.handler(Takes(Duration::ZERO));
    fast.register().unwrap();
    informer.caught_up(&server).await;
    sleep(10 * second).await;
    for _ in 0..20 {
        server.update(labelled("p3", "new")).unwrap();
    }
    let cached = informer
        .pods
        .wait_for_revision(server.revision(), 60 * second);
    cached.await.unwrap();
    informer.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_custom_queue_capacity_is_used_through_a_factory() {
    let server = Server::builder().build();
    let recorder = Recorder::default();
    let factory = factory_builder(server.client())
        .metrics(recorder.metrics())
        .build();
    let options = InformerOptions::<Pod>::new().queue_capacity(7);
    let pods = factory.informer_with(options).unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let three = ListenerBuffer::Block(NonZeroUsize::new(3).unwrap());
    let stuck = pods.handler(Gated(Arc::clone(&gate), Trace::default()));
    stuck.buffer(three).register().unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    for n in 0..100 {
        server.create(pod(&format!("p{n}"))).unwrap();
    }
    sleep(Duration::from_secs(10)).await;
    let read = recorder.only(|line| line == "Event(Added)").lines().count();
    assert_eq!(read, 3 + 7 + 7 + 1, "as with a full block buffer");
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    factory.shutdown().await;
}
