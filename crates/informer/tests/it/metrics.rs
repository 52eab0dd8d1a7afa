//! Tests of the two ways to obtain an informer's metrics: `InformerMetrics`, which receives each measurement
//! as an event, and `InformerSampler`, which returns current values.
//!
//! The tests also check that a stopped informer drops its `InformerMetrics`, and that the informer's sampler
//! then returns no values.

#[cfg(feature = "prometheus")]
mod prometheus;
mod samples;
mod work_queue;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InitialList, SharedInformer,
    client::ListWatch,
    indexer::{self, Indexers},
    metrics::{
        InformerIdentity, InformerMetrics, InformerSampler, Metrics, Observed, RelistReason,
        WorkQueueMetrics, WorkQueueObserved, WorkQueueSampler,
    },
    reflector::Reflector,
    shared_informer::{Builder, ListenerBuffer},
    transport::Class,
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::{
    script::{Answer, Script, Then, body, error_event, event, hangs, list, pod},
    setting::{self, LONG, Running, Trace, factory_builder, run},
};

/// A metrics collector that records every report of every informer and work queue.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Recorded>);

/// The recorded reports and samplers, which all clones of a [`Recorder`] share.
#[derive(Default)]
struct Recorded {
    told: Trace,
    samplers: Mutex<Vec<InformerSampler>>,
    queue_samplers: Mutex<Vec<WorkQueueSampler>>,
    /// A reference that every [`Recording`] clones, so that the recordings can be counted.
    held: Arc<()>,
}

/// Receives the metrics of one informer or work queue for the [`Recorder`].
struct Recording {
    told: Trace,
    _held: Arc<()>,
}

impl Recorder {
    pub(crate) fn metrics(&self) -> Arc<dyn Metrics> {
        Arc::new(self.clone())
    }

    /// Returns the number of [`Recording`]s that have not been dropped.
    fn under_way(&self) -> usize {
        Arc::strong_count(&self.0.held) - 1
    }

    fn sampler(&self) -> InformerSampler {
        self.0.samplers.lock()[0].clone()
    }

    fn recording(&self) -> Recording {
        Recording {
            told: self.0.told.clone(),
            _held: Arc::clone(&self.0.held),
        }
    }

    /// Returns the recorded reports for which `wanted` returns true, one per line, and clears the record.
    pub(crate) fn only(&self, wanted: impl Fn(&str) -> bool) -> String {
        let told = self.0.told.take();
        let lines = told.lines().filter(|line| wanted(line));
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

impl Metrics for Recorder {
    fn informer(
        &self,
        identity: &InformerIdentity,
        sampler: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        let InformerIdentity {
            name,
            group,
            version,
            resource,
            ..
        } = identity;
        self.0
            .told
            .note(format!("{name}: {group}/{version} {resource}"));
        self.0.samplers.lock().push(sampler);
        Some(Box::new(self.recording()))
    }

    fn work_queue(
        &self,
        name: &Arc<str>,
        sampler: WorkQueueSampler,
    ) -> Option<Box<dyn WorkQueueMetrics>> {
        self.0.told.note(format!("queue {name}"));
        self.0.queue_samplers.lock().push(sampler);
        Some(Box::new(self.recording()))
    }
}

impl InformerMetrics for Recording {
    fn observe(&self, observed: Observed) {
        self.told.note(format!("{observed:?}"));
    }
}

impl WorkQueueMetrics for Recording {
    fn observe(&self, observed: WorkQueueObserved) {
        self.told.note(format!("{observed:?}"));
    }
}

/// Returns the builder of an informer that reads from `script` and reports to `recorder`.
fn builder(script: &Script, recorder: &Recorder) -> Builder<Pod> {
    SharedInformer::builder(script.clone())
        .name("pods")
        .rng_seed(1)
        .metrics(recorder.metrics())
}

fn bookmark(revision: u64) -> String {
    let meta = format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}}}}"#);
    event("BOOKMARK", &meta)
}

const EXPIRED: &str = r#"{"code":410,"reason":"Expired","message":"too old"}"#;

#[tokio::test(start_paused = true)]
async fn metric_events_of_an_informer_are_reported_in_order() {
    let expired = event("ADDED", &pod("b", 6))
        + &event("MODIFIED", &pod("b", 7))
        + &event("DELETED", &pod("b", 8))
        + &bookmark(9)
        + &error_event(EXPIRED);
    let slow = |text, seconds| Answer::Body(text, Then::EndsAfter(Duration::from_secs(seconds)));
    let script = Script::new([
        slow(list(5, "", &[pod("a", 1)]), 3),
        hangs(expired),
        body(list(10, "", &[pod("c", 10)])),
        slow(event("ADDED", &pod("d", 11)), 60),
    ]);
    let recorder = Recorder::default();
    let informer = run(builder(&script, &recorder));
    sleep(Duration::from_secs(64)).await;
    expect![[r#"
        pods: /v1 pods
        List { took: 3s, items: 1, accepted: true }
        WatchOpened
        Event(Added)
        Event(Modified)
        Event(Deleted)
        Event(Bookmark)
        Event(Error)
        WatchEnded { open_for: 0ns, events: 4, short: false }
        Failed(Expired)
        Relist(Expired)
        List { took: 0ns, items: 1, accepted: true }
        WatchOpened
        Event(Added)
        Told(Told { added: 1, updated: 0, deleted: 0 })
        Batch { changes: 1, took: 0ns, lag: None }
        Told(Told { added: 1, updated: 0, deleted: 0 })
        Batch { changes: 1, took: 0ns, lag: Some(0ns) }
        Told(Told { added: 0, updated: 1, deleted: 0 })
        Batch { changes: 1, took: 0ns, lag: Some(0ns) }
        Told(Told { added: 0, updated: 0, deleted: 1 })
        Batch { changes: 1, took: 0ns, lag: Some(0ns) }
        Batch { changes: 1, took: 0ns, lag: Some(0ns) }
        Told(Told { added: 1, updated: 0, deleted: 1 })
        Batch { changes: 1, took: 0ns, lag: None }
        Told(Told { added: 1, updated: 0, deleted: 0 })
        Batch { changes: 1, took: 0ns, lag: Some(0ns) }
        WatchEnded { open_for: 60s, events: 1, short: false }
    "#]]
    .assert_eq(&recorder.0.told.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_counted_as_a_list_without_events() {
    let seed = [setting::pod("a"), setting::pod("b")];
    let server = Server::builder().seed(seed).build();
    let recorder = Recorder::default();
    let building = SharedInformer::builder(ListWatch::<Pod>::new(server.client()))
        .name("pods")
        .initial_list(InitialList::Streaming);
    let informer = run(building.metrics(recorder.metrics()));
    informer.caught_up(&server).await;
    server.create(setting::pod("c")).unwrap();
    informer.caught_up(&server).await;
    let told = recorder.only(|line| !line.starts_with("Batch") && !line.starts_with("Told"));
    expect![[r#"
        pods: /v1 pods
        WatchOpened
        List { took: 0ns, items: 2, accepted: true }
        Event(Added)
    "#]]
    .assert_eq(&told);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_streaming_list_and_its_fallback_list_are_counted_as_one_list() {
    let script = Script::streaming([
        Answer::Refuse(Class::Invalid),
        body(list(5, "", &[pod("a", 1)])),
        Answer::Never,
    ]);
    let recorder = Recorder::default();
    let informer = run(builder(&script, &recorder).initial_list(InitialList::Streaming));
    sleep(Duration::from_secs(1)).await;
    let told = recorder.only(|line| !line.starts_with("Batch") && !line.starts_with("Told"));
    expect![[r#"
        pods: /v1 pods
        Failed(Invalid)
        List { took: 0ns, items: 1, accepted: true }
    "#]]
    .assert_eq(&told);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_is_reported_with_its_reason() {
    let refused = Answer::Refuse;
    let older = |_| event("MODIFIED", &pod("a", 3));
    let older = Answer::Body(String::new(), Then::Goes(Duration::from_secs(1), older));
    let cases = [
        (hangs(error_event(EXPIRED)), RelistReason::Expired),
        (refused(Class::Expired), RelistReason::Expired),
        (refused(Class::Forbidden), RelistReason::WatchRefused),
        (older, RelistReason::WentBack),
        (body(String::new()), RelistReason::VeryShortWatch),
        (hangs("<html>".to_owned()), RelistReason::Unreadable),
        (
            hangs(error_event(r#"{"code":503,"message":"later"}"#)),
            RelistReason::WatchFailed,
        ),
    ];
    for (answer, reason) in cases {
        let script = Script::new([
            body(list(5, "", &[pod("a", 4)])),
            answer,
            refused(Class::Server),
            body(list(9, "", &[])),
        ]);
        let recorder = Recorder::default();
        let informer = run(builder(&script, &recorder));
        sleep(Duration::from_secs(60)).await;
        let told = recorder.only(|line| line.starts_with("Relist"));
        assert_eq!(told, format!("Relist({reason:?})\nRelist(ListFailed)\n"));
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn checks_are_counted_by_outcome_and_are_the_reason_of_the_relist_that_follows() {
    let script = Script::new([
        body(list(5, "", &[pod("a", 1)])),
        hangs(String::new()),
        body(list(5, "", &[pod("a", 1)])),
        Answer::Refuse(Class::Server),
        body(list(5, "", &[pod("a", 2)])),
        body(list(5, "", &[pod("a", 2)])),
        hangs(String::new()),
        body(list(5, "", &[pod("a", 2)])),
        Answer::Refuse(Class::TooLargeResourceVersion),
        body(list(4, "", &[pod("a", 2)])),
        hangs(String::new()),
    ]);
    let recorder = Recorder::default();
    let checked = builder(&script, &recorder).consistency_check(Duration::from_secs(60));
    let informer = run(checked);
    sleep(Duration::from_secs(300)).await;
    expect![[r#"
        Checked(Same)
        Checked(Failed)
        Checked(Different)
        Relist(Inconsistent)
        Checked(Same)
        Checked(Different)
        Relist(WentBack)
    "#]]
    .assert_eq(&recorder.only(|line| line.starts_with("Checked") || line.starts_with("Relist")));
    assert_eq!(script.unasked(), 0);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn skipped_events_are_counted_by_reason() {
    let node = r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}"#;
    let script = Script::new([
        body(list(5, "", &[])),
        hangs(
            event("ADDED", r#"{"metadata":{"name":"a","labels":7}}"#)
                + &event("ADDED", node)
                + &event("GREETED", &pod("b", 7)),
        ),
    ]);
    let recorder = Recorder::default();
    let informer = run(builder(&script, &recorder));
    sleep(Duration::from_secs(1)).await;
    expect![[r#"
        Skipped(Undecodable)
        Skipped(OtherKind)
        Skipped(UnknownEvent)
    "#]]
    .assert_eq(&recorder.only(|line| line.starts_with("Skipped")));
    let sample = recorder.sampler().sample().unwrap();
    assert_eq!(sample.status.broken_count, 1);
    informer.stop().await;
}

/// Regression test for kubernetes#73587: the metrics of a stopped reflector were never removed.
#[tokio::test(start_paused = true)]
async fn the_metrics_of_an_informer_are_dropped_when_its_run_returns() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let recorder = Recorder::default();
    let informer = run(setting::builder(&server).metrics(recorder.metrics()));
    let trace = Trace::default();
    let registration = trace.listen(&informer.pods);
    let subscription = informer.pods.subscribe().unwrap();
    informer.caught_up(&server).await;
    assert_eq!(recorder.under_way(), 1);
    assert!(recorder.sampler().sample().is_some());
    let pods = informer.stop().await;
    assert_eq!(recorder.under_way(), 0, "a recording outlived its informer");
    assert!(recorder.sampler().sample().is_none());
    assert!(recorder.sampler().is_gone());
    assert_eq!(pods.indexer().len(), 1, "its cache is still readable");
    drop((registration, subscription, pods));
}

#[tokio::test(start_paused = true)]
async fn the_metrics_of_an_informer_that_never_runs_are_dropped_with_its_controller() {
    let recorder = Recorder::default();
    let (pods, controller) = builder(&Script::new([]), &recorder).build();
    assert_eq!(recorder.under_way(), 1);
    drop(controller);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(recorder.under_way(), 0);
    drop(pods);
}

#[tokio::test(start_paused = true)]
async fn every_informer_of_a_factory_uses_its_collector_until_it_ends() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let recorder = Recorder::default();
    let factory = factory_builder(server.client())
        .metrics(recorder.metrics())
        .build();
    factory.informer::<Pod>();
    factory.informer::<k8s_openapi::api::apps::v1::Deployment>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    let told = recorder.only(|line| line.contains("/v1 "));
    let kinds: Vec<_> = told.lines().collect();
    let expected = ["pods: /v1 pods", "deployments: apps/v1 deployments"];
    assert_eq!(kinds, expected);
    assert_eq!(recorder.under_way(), 2);
    factory.shutdown().await;
    // The factory still owns the collector, for later informers; the recordings of these two are dropped.
    assert_eq!(recorder.under_way(), 0);
}

/// In client-go, a bookmark does not update the depth (defect D20 in `docs/client-go.md`).
#[tokio::test(start_paused = true)]
async fn the_depth_of_the_queue_is_right_after_every_kind_of_change_bookmarks_included() {
    let changes = [
        event("ADDED", &pod("b", 6)),
        event("MODIFIED", &pod("b", 7)),
        bookmark(8),
        event("DELETED", &pod("b", 9)),
        bookmark(10),
    ];
    let script = Script::new([body(list(5, "", &[pod("a", 1)])), hangs(changes.concat())]);
    let recorder = Recorder::default();
    let (pods, controller) = builder(&script, &recorder).build();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let (wanted, opened) = (Arc::clone(&gate), Duration::from_secs(10));
    pods.on_add(move |_, _| {
        let wanted = Arc::clone(&wanted);
        async move { wanted.acquire().await.unwrap().forget() }
    })
    .buffer(ListenerBuffer::Block(NonZeroUsize::MIN))
    .register()
    .unwrap();
    let held_up = async {
        sleep(opened).await;
        // The handler processes the list, and the sync marker occupies the only place after it.
        let sample = recorder.sampler().sample().unwrap();
        assert_eq!(
            (sample.queued, sample.handlers[0].depth),
            (5, 2),
            "{sample:?}"
        );
        assert_eq!(sample.handlers[0].lag, opened);
        gate.add_permits(10);
        sleep(opened).await;
        let sample = recorder.sampler().sample().unwrap();
        assert_eq!((sample.queued, sample.handlers[0].depth), (0, 0));
        assert_eq!(sample.store.unwrap().revision, 10.into());
    };
    controller.run(held_up).await.unwrap();
    // The event waited for ten seconds, which is its lag.
    let told = recorder.0.told.take();
    assert!(told.contains("lag: Some(10s)"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_standalone_reflector_has_metrics() {
    let script = Script::new([body(list(5, "", &[pod("a", 1)])), Answer::Never]);
    let recorder = Recorder::default();
    let (_, writer) = indexer::new(Indexers::<Pod>::new()).unwrap();
    let reflector = Reflector::builder(script)
        .name("ours")
        .metrics(recorder.metrics())
        .into_indexer(writer);
    reflector
        .run(async {
            sleep(Duration::from_secs(1)).await;
            let sample = recorder.sampler().sample().unwrap();
            assert!(sample.status.synced && sample.store.is_none());
        })
        .await;
    expect![[r#"
        ours: /v1 pods
        List { took: 0ns, items: 1, accepted: true }
    "#]]
    .assert_eq(&recorder.0.told.take());
    assert_eq!(recorder.under_way(), 0);
}

/// A metrics collector that panics on every report of an informer.
struct Panics;

impl Metrics for Panics {
    fn informer(
        &self,
        _: &InformerIdentity,
        _: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        Some(Box::new(Self))
    }
}

impl InformerMetrics for Panics {
    fn observe(&self, _: Observed) {
        panic!("planted")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_collector_does_not_affect_the_informer() {
    let script = Script::new([
        body(list(5, "", &[pod("a", 1)])),
        hangs(event("ADDED", &pod("b", 6))),
    ]);
    let building = SharedInformer::builder(script).metrics(Arc::new(Panics));
    let informer: Running = run(building);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(informer.pods.indexer().len(), 2);
    informer.stop().await;
}
