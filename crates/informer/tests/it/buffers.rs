//! What happens while a handler is slower than the changes: what is merged, how far behind it is, and
//! how much waits where.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use expect_test::expect;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, InitialList, SharedInformer,
    factory::{InformerOptions, QueueKind, SharedInformerFactory},
    queue::DeltaFifo,
    reflector::{Delta, Reflector, ReflectorStore, StoreError, TimeoutConfig},
    shared_informer::{HandlerStatus, ListenerBuffer, Registration},
    status::Activity,
    transport::{Error, ListOptions, ListerWatcher, Response},
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::{
    metrics::Recorder,
    script::{self, Answer, Script},
    setting::{LONG, Running, Trace, builder, labelled, pod, run, show},
};

/// Handles one event per permit.
struct Gated(Arc<Semaphore>, Trace);

impl EventHandler<Pod> for Gated {
    async fn handle(&mut self, event: Event<Pod>) {
        self.0.acquire().await.unwrap().forget();
        self.1.note(show(&event));
    }
}

/// A handler that handles this number of events, and then blocks until the semaphore has more permits.
fn stuck(
    informer: &Running,
    buffer: ListenerBuffer,
    permits: usize,
) -> (Arc<Semaphore>, Trace, Registration<Pod>) {
    let (gate, heard) = (Arc::new(Semaphore::new(permits)), Trace::default());
    let handler = Gated(Arc::clone(&gate), heard.clone());
    let handler = informer.pods.handler(handler).name("stuck").buffer(buffer);
    (gate, heard, handler.register().unwrap())
}

/// Waits until the cache has what the server has, whatever handlers do.
async fn cached(informer: &Running, server: &Server) {
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    informer
        .pods
        .wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    sleep(Duration::from_millis(1)).await;
}

/// Many changes of a, a whole life of b, another life of c, and d as it was.
fn much_happens(server: &Server) {
    for n in 0..100 {
        server.update(labelled("a", &n.to_string())).unwrap();
        server.create(pod("b")).unwrap();
        server.delete("v1", "pods", "default/b").unwrap();
    }
    server.delete("v1", "pods", "default/c").unwrap();
    server.create(pod("c")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn while_a_handler_is_stuck_a_coalesce_buffer_holds_the_latest_of_each_object() {
    let server = Server::builder()
        .seed([pod("a"), pod("c"), pod("d")])
        .build();
    let informer = run(builder(&server));
    let (gate, heard, handler) = stuck(&informer, ListenerBuffer::Coalesce, 4);
    informer.caught_up(&server).await;
    heard.take();
    server.update(labelled("d", "x")).unwrap();
    cached(&informer, &server).await;

    much_happens(&server);
    cached(&informer, &server).await;
    assert_eq!(handler.depth(), 1 + 2, "d is being told, a and c wait");
    // 99 updates of a, 100 additions and deletions of b.
    assert_eq!(handler.coalesced(), 99 + 200);
    gate.add_permits(100);
    informer.caught_up(&server).await;
    expect![[r#"
        update default/d@3 → 4
        update default/a@1 → 302
        delete default/c@305
        add default/c@306
    "#]]
    .assert_eq(&heard.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_nobody_polls_may_coalesce_too() {
    let server = Server::builder()
        .seed([pod("a"), pod("c"), pod("d")])
        .build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let events = informer.pods.subscribe_with(ListenerBuffer::Coalesce);
    let mut events = events.unwrap();
    much_happens(&server);
    cached(&informer, &server).await;
    let status = events.status();
    assert_eq!((status.depth, status.told, status.synced), (4, 0, false));

    let mut heard = Vec::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        heard.push(show(&event));
    }
    expect![[r#"
        [
            "add default/a@301 (initial)",
            "add default/d@3 (initial)",
            "synced",
            "add default/c@305",
        ]"#]]
    .assert_eq(&format!("{heard:#?}"));
    let status = events.status();
    assert_eq!((status.depth, status.told, status.synced), (0, 4, true));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_a_stuck_handler_misses_is_merged_into_what_waits() {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let informer = run(builder(&server));
    let (gate, heard, handler) = stuck(&informer, ListenerBuffer::Coalesce, 4);
    informer.caught_up(&server).await;
    heard.take();
    server.update(labelled("c", "x")).unwrap();
    cached(&informer, &server).await;
    for n in 0..5 {
        server.update(labelled("a", &n.to_string())).unwrap();
        cached(&informer, &server).await;
        server.faults().cut_watches();
        server.update(labelled("a", "missed")).unwrap();
        server.create(pod(&format!("p{n}"))).unwrap();
        server.faults().expire_history();
        cached(&informer, &server).await;
    }
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/b").unwrap();
    server.faults().expire_history();
    cached(&informer, &server).await;
    assert_eq!(
        handler.depth(),
        1 + 7,
        "c is being told; a, b and five wait"
    );
    gate.add_permits(100);
    informer.caught_up(&server).await;
    let heard = heard.take();
    assert_eq!(heard.lines().count(), 1 + 7, "{heard}");
    assert!(heard.contains("update default/a@1 → "), "{heard}");
    assert!(heard.contains("delete default/b@2 (final"), "{heard}");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lag_is_the_age_of_the_oldest_notification_and_zero_when_idle() {
    let server = Server::builder().build();
    let informer = run(builder(&server));
    for buffer in [
        ListenerBuffer::Grow,
        ListenerBuffer::Coalesce,
        ListenerBuffer::Block(NonZeroUsize::MAX),
    ] {
        let (gate, heard, handler) = stuck(&informer, buffer, 1);
        informer.caught_up(&server).await;
        assert_eq!(handler.lag(), Duration::ZERO);
        server.create(pod("a")).unwrap();
        cached(&informer, &server).await;
        sleep(Duration::from_secs(5)).await;
        server.create(pod("b")).unwrap();
        server.create(pod("c")).unwrap();
        cached(&informer, &server).await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(handler.lag().as_secs(), 7, "a is being told");
        gate.add_permits(1);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(handler.lag().as_secs(), 2, "b is being told");
        assert_eq!(handler.status().lag, handler.lag());
        gate.add_permits(10);
        informer.caught_up(&server).await;
        assert_eq!((handler.lag(), handler.depth()), (Duration::ZERO, 0));
        assert_eq!(heard.take().lines().count(), 4);
        handler.remove().await;
        for name in ["a", "b", "c"] {
            let name = format!("default/{name}");
            server.delete("v1", "pods", &name).unwrap();
        }
        cached(&informer, &server).await;
    }
    informer.stop().await;
}

fn lines(handlers: &[HandlerStatus]) -> String {
    let line = |status: &HandlerStatus| {
        let HandlerStatus {
            name,
            buffer,
            depth,
            lag,
            told,
            coalesced,
            discarded,
            panics,
            synced,
            ..
        } = status;
        let lag = lag.as_secs();
        format!(
            "{name} {buffer:?}: {depth} for {lag} s, {told} told, {coalesced} coalesced, \
             {discarded} discarded, {panics} panics{}\n",
            if *synced { ", synced" } else { "" }
        )
    };
    handlers.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn an_informer_lists_its_handlers_and_subscriptions_and_how_they_are_getting_on() {
    let server = Server::builder().seed([pod("a"), pod("bad")]).build();
    let informer = run(builder(&server));
    let pods = &informer.pods;
    assert_eq!(pods.handlers(), []);
    let (_gate, _, stuck) = stuck(&informer, ListenerBuffer::Coalesce, 3);
    let panics = pods.on_add(|pod, _| assert_ne!(pod.name(), "bad", "planted"));
    let panics = panics.name("panics").register().unwrap();
    let events = pods.subscribe().unwrap();
    let removed = pods.on_delete(|_| {}).register().unwrap();
    removed.remove().await;
    cached(&informer, &server).await;
    for n in 0..3 {
        server.update(labelled("a", &n.to_string())).unwrap();
    }
    cached(&informer, &server).await;
    server.update(labelled("a", "4")).unwrap();
    cached(&informer, &server).await;
    sleep(Duration::from_secs(3)).await;
    expect![[r#"
        stuck Coalesce: 2 for 3 s, 4 told, 2 coalesced, 0 discarded, 0 panics, synced
        panics Grow: 0 for 0 s, 7 told, 0 coalesced, 0 discarded, 1 panics, synced
        subscription of pods Grow: 6 for 3 s, 0 told, 0 coalesced, 0 discarded, 0 panics
    "#]]
    .assert_eq(&lines(&pods.handlers()));
    drop(events);
    drop(panics);
    sleep(Duration::from_millis(1)).await;
    let names: Vec<_> = pods.handlers().iter().map(|h| h.name.to_string()).collect();
    assert_eq!(names, ["stuck", "panics"], "who is detached stays");

    let Running { .. } = informer;
    let status = stuck.status();
    assert_eq!((status.depth, status.discarded), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_a_handlers_status_says_what_it_was_not_told() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (gate, _, handler) = stuck(&informer, ListenerBuffer::Grow, 2);
    informer.caught_up(&server).await;
    for n in 0..4 {
        server.update(labelled("a", &n.to_string())).unwrap();
    }
    cached(&informer, &server).await;
    let mut stopping = std::pin::pin!(informer.stop());
    assert!(stopping.as_mut().now_or_never().is_none());
    sleep(Duration::from_millis(1)).await;
    gate.add_permits(1);
    let pods = stopping.await;
    assert_eq!(pods.handlers(), [], "none is left");
    let status = handler.status();
    assert_eq!((status.told, status.discarded), (3, 3));
    assert_eq!((status.depth, status.lag), (0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_that_is_stuck_at_a_large_cache_stops_nobody_and_is_one_message() {
    let names: Vec<_> = (0..5000).map(|n| format!("p{n}")).collect();
    let server = Server::builder()
        .seed(names.iter().map(|name| pod(name)))
        .build();
    let informer = run(builder(&server));
    let quick = Trace::default();
    quick.listen(&informer.pods);
    informer.caught_up(&server).await;
    quick.take();
    for buffer in [ListenerBuffer::Grow, ListenerBuffer::Coalesce] {
        let (_gate, _, late) = stuck(&informer, buffer, 0);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(
            late.depth(),
            2,
            "the cache, which is being told, and the marker"
        );
        let depth = |changes: usize| (late.depth(), quick.len(), changes);
        for changes in 1..=3 {
            server.update(labelled("p7", &changes.to_string())).unwrap();
            cached(&informer, &server).await;
            let waits = match buffer {
                ListenerBuffer::Coalesce => 1,
                _ => changes,
            };
            assert_eq!(depth(changes), (2 + waits, changes, changes));
        }
        let index = |pod: &Pod| pod.metadata.name.clone();
        let name = format!("{buffer:?}");
        let added = informer.pods.add_index(&name, index);
        timeout(LONG, added).await.expect("it is added").unwrap();
        quick.take();
    }
}

/// A watch without end, and how many of its events were taken.
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
async fn behind_a_full_block_buffer_the_watch_is_read_no_further_than_the_stated_bound() {
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
    // The marker is being told, three wait for the handler, ten in the queue and ten on their way to
    // it, and one is in the reflector's hand.
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
async fn a_watch_that_a_full_store_holds_up_says_so_until_it_goes_on() {
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
    assert_eq!(activity(), Activity::Watching, "one more has been taken");
    millis(60_000).await;
    assert_eq!(activity(), Activity::StoreFull, "also without a watch");
    assert_eq!(script.requests.take(), "list 0\nwatch 5\n");
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    millis(900).await;
    assert_eq!(activity(), Activity::Watching);
    assert_eq!(script.requests.take(), "watch 10\n");
    assert_eq!((informer.pods.indexer().len(), heard.len()), (14, 1 + 14));
    informer.stop().await;
}

/// Takes five seconds over each change.
struct Slow;

impl ReflectorStore<Pod> for Slow {
    async fn accept(&mut self, _: Delta<Pod>) -> Result<(), StoreError> {
        sleep(Duration::from_secs(5)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_may_be_full_for_less_than_a_second_is_said_to_be_sooner() {
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
async fn a_list_that_a_slow_store_holds_up_says_so_and_so_does_a_streaming_one() {
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
async fn a_batch_size_of_ones_own_is_used_also_through_a_factory() {
    let names: Vec<_> = (0..6).map(|n| format!("p{n}")).collect();
    let server = Server::builder()
        .seed(names.iter().map(|name| pod(name)))
        .build();
    let factory = SharedInformerFactory::builder(server.client()).build();
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
    assert_eq!(lengths, [2, 2, 4, 4, 6, 6], "two are applied at one go");
    factory.shutdown().await;
}

/// A handler that takes this long for each event.
struct Takes(Duration);

impl EventHandler<Pod> for Takes {
    async fn handle(&mut self, _: Event<Pod>) {
        sleep(self.0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn resyncs_that_take_longer_than_their_period_do_not_keep_changes_out_of_a_full_queue() {
    let pods = (0..10).map(|number| pod(&format!("p{number}")));
    let server = Server::builder().seed(pods).build();
    let second = Duration::from_secs(1);
    let building = builder(&server).queue(DeltaFifo::new()).queue_capacity(2);
    let informer = run(building.resync(second));
    let four = NonZeroUsize::new(4).unwrap();
    // A resync takes 3 s of it.
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
async fn a_queue_capacity_of_ones_own_is_used_also_through_a_factory() {
    let server = Server::builder().build();
    let recorder = Recorder::default();
    let factory = SharedInformerFactory::builder(server.client())
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
    assert_eq!(read, 3 + 7 + 7 + 1, "as behind a full block buffer");
    gate.add_permits(Semaphore::MAX_PERMITS / 2);
    factory.shutdown().await;
}

// Not in paused time, which would pass while the handler's own thread is at work.
#[tokio::test]
async fn a_handler_that_waits_for_its_own_removal_ends_after_this_callback() {
    for own_thread in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let informer = run(builder(&server));
        let own: Arc<Mutex<Option<Registration<Pod>>>> = Arc::default();
        let (heard, mine) = (Trace::default(), Arc::clone(&own));
        let notes = heard.clone();
        let handler = informer.pods.on_add(move |pod, _| {
            let (notes, own) = (notes.clone(), mine.lock().take());
            async move {
                if let Some(own) = own {
                    own.remove().await;
                }
                notes.note(pod.name());
            }
        });
        let registered = if own_thread {
            handler.dedicated_thread().register()
        } else {
            handler.register()
        };
        *own.lock() = Some(registered.unwrap());
        informer.caught_up(&server).await;
        assert_eq!(
            heard.take(),
            "a\n",
            "its callback ends, and no other follows"
        );
        // Its own thread has nothing left to tell a moment before it has ended.
        let gone = async {
            while !informer.pods.handlers().is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, gone).await.expect("the handler ends");
        timeout(LONG, informer.stop()).await.expect("the stop ends");
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_nobody_waits_for_any_more_goes_on_and_one_never_polled_detaches() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (gate, heard, removed) = stuck(&informer, ListenerBuffer::Grow, 0);
    let (stays, detached) = (Trace::default(), Trace::default());
    let never_polled = detached.listen(&informer.pods).remove();
    stays.listen(&informer.pods);
    cached(&informer, &server).await;
    drop(never_polled);
    assert!(removed.remove().now_or_never().is_none());
    gate.add_permits(10);
    informer.caught_up(&server).await;
    assert_eq!(heard.take(), "add default/a@1 (initial)\n");
    assert_eq!(informer.pods.handlers().len(), 2);
    assert_eq!((stays.len(), detached.len()), (2, 2));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_removal_and_a_stop_at_the_same_time_both_end_with_the_callback() {
    for removal_first in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let informer = run(builder(&server));
        let (gate, heard, handler) = stuck(&informer, ListenerBuffer::Grow, 0);
        cached(&informer, &server).await;
        let mut removed = std::pin::pin!(handler.remove());
        let mut stopped = std::pin::pin!(informer.stop());
        if removal_first {
            assert!(removed.as_mut().now_or_never().is_none());
        }
        assert!(stopped.as_mut().now_or_never().is_none());
        sleep(Duration::from_secs(1)).await;
        assert!(removed.as_mut().now_or_never().is_none());
        gate.add_permits(10);
        let both = async { tokio::join!(removed, stopped) };
        timeout(LONG, both).await.expect("both end");
        assert_eq!(heard.take(), "add default/a@1 (initial)\n");
    }
}
