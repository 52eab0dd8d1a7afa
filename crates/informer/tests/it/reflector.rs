//! Tests of a standalone reflector, which runs without an informer. The reflector writes into an indexer or
//! into a custom store.

mod logs;
mod streams;

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer,
    client::ListWatch,
    indexer::{self, Indexers},
    reflector::{Delta, DeltaKind, Error, Reflector, ReflectorStore, StoreError, TimeoutConfig},
    status::{Activity, Status, SyncFailure},
    transport::Class,
};
use kube_informer_apiserver::Server;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use crate::{
    logs::Logs,
    script::{Answer, Script, Then, body, error_event, event, hangs, list, pod},
    setting::{self, LONG, Trace},
};

const MINUTE: Duration = Duration::from_secs(60);

fn kind(api_version: &str, kind: &str, name: &str, revision: u64) -> String {
    let meta = format!(r#"{{"name":"{name}","resourceVersion":"{revision}"}}"#);
    format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{meta}}}"#)
}

#[tokio::test(start_paused = true)]
async fn a_reflector_keeps_an_indexer_in_sync_with_the_server() {
    let server = Server::builder()
        .seed([setting::labelled("a", "web"), setting::labelled("b", "web")])
        .build();
    let by_app = Indexers::new().with("app", |pod: &Pod| {
        let labels = pod.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get("app").cloned())
    });
    let (indexer, writer) = indexer::new(by_app).unwrap();
    let reflector = Reflector::builder(ListWatch::<Pod>::new(server.client())).into_indexer(writer);
    assert_eq!(reflector.name(), "pods");
    let (synced, mut status) = (reflector.wait_for_sync(), reflector.status());
    let drive = async {
        synced.deadline(LONG).await.unwrap();
        assert_eq!(indexer.len(), 2);
        server.delete("v1", "pods", "default/a").unwrap();
        server.update(setting::labelled("b", "db")).unwrap();
        server.create(setting::labelled("c", "web")).unwrap();
        let (wanted, reached) = (server.revision(), || indexer.snapshot().revision());
        while reached().to_string() != wanted.to_string() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    reflector.run(drive).await;
    let keys = |app| format!("{:?}", indexer.index_keys("app", app).unwrap());
    assert_eq!(keys("web"), "[default/c]");
    assert_eq!(keys("db"), "[default/b]");
    assert!(status.wait_for(Status::is_stopped).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_reflector_stopped_before_its_start_sends_no_request() {
    let script = Script::new([body(list(5, "", &[]))]);
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone()).into_indexer(writer);
    let synced = reflector.wait_for_sync();
    reflector.run(std::future::ready(())).await;
    assert_eq!(script.requests.take(), "");
    assert!(indexer.is_empty());
    assert_eq!(synced.await.unwrap_err().failure, SyncFailure::Ended);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_reflector_that_never_ran_reports_it_as_stopped() {
    for is_begun in [false, true] {
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(Script::new([])).into_indexer(writer);
        let (synced, status) = (reflector.wait_for_sync(), reflector.status());
        assert_eq!(status.get().activity(), Activity::Idle);
        if is_begun {
            drop(reflector.run(std::future::pending()));
        } else {
            drop(reflector);
        }
        let error = synced.await.unwrap_err();
        assert_eq!(error.failure, SyncFailure::Ended);
        assert_eq!(error.status.activity(), Activity::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_a_reflector_drops_its_request_in_every_state() {
    let stages = [
        vec![Answer::Never],
        vec![hangs(list(5, "t1", &[pod("a", 1)])[..20].to_owned())],
        vec![body(list(5, "", &[])), Answer::Never],
        vec![body(list(5, "", &[])), hangs(event("ADDED", &pod("a", 6)))],
        vec![Answer::Refuse(Class::Server)],
    ];
    for answers in stages {
        let script = Script::new(answers);
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(script.clone())
            .rng_seed(1)
            .into_indexer(writer);
        reflector.run(sleep(Duration::from_millis(500))).await;
        let log = script.log.take();
        assert_eq!(script.under_way(), 0, "after {log}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_failures_the_store_has_the_last_list() {
    let refused = || Answer::Refuse(Class::Server);
    let garbled = |text: &str| hangs(text.to_owned());
    let half = list(8, "", &[pod("a", 1), pod("c", 8)]);
    let script = Script::new([
        body(list(5, "", &[pod("a", 1)])),
        refused(),
        refused(),
        body(list(6, "", &[pod("a", 1), pod("b", 6)])),
        garbled("<html>"),
        refused(),
        body(list(7, "", &[pod("b", 6)])),
        hangs(event("ADDED", &pod("c", 8)) + &error_event("{}")),
        body(half[..half.len() - 5].to_owned()),
        body(list(9, "", &[pod("c", 8)])),
        refused(),
        body(list(10, "", &[])),
    ]);
    let trace = Trace::default();
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone())
        .rng_seed(1)
        .into_indexer(writer);
    let mut seen = String::new();
    let watching = async {
        while script.unasked() > 0 {
            sleep(Duration::from_millis(10)).await;
            let now = format!("{:?} {:?}", indexer.snapshot().revision(), indexer.list());
            if now != seen {
                seen.clone_from(&now);
                trace.note(now);
            }
        }
    };
    reflector.run(watching).await;
    expect![[r#"
        "5" [default/a@1]
        "6" [default/a@1, default/b@6]
        "8" [default/b@6, default/c@8]
        "9" [default/c@8]
        "10" []
    "#]]
    .assert_eq(&trace.take());
}

#[tokio::test(start_paused = true)]
async fn a_failing_index_and_a_broken_object_are_in_the_status() {
    let broken = r#"{"metadata":{"name":"b","resourceVersion":"2"},"spec":7}"#.to_owned();
    let script = Script::new([body(list(5, "", &[pod("a", 1), broken]))]);
    let failing = Indexers::new().try_with("rank", |_: &Pod| Err::<Option<String>, _>("no rank"));
    let (indexer, writer) = indexer::new(failing).unwrap();
    let reflector = Reflector::builder(script).into_indexer(writer);
    let status = reflector.status();
    reflector.run(sleep(MINUTE / 2)).await;
    let status = status.get();
    assert_eq!((status.index_errors, status.broken_count), (1, 1));
    assert_eq!(status.broken[0].field(), "spec");
    assert_eq!(indexer.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_store_receives_the_revision_with_every_event() {
    let meta = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"30"}}"#;
    let events = [
        event("ADDED", &pod("a", 10)),
        event("MODIFIED", &pod("a", 20)),
        event("BOOKMARK", meta),
        event("DELETED", &pod("a", 40)),
    ];
    let script = Script::new([body(list(5, "", &[])), hangs(events.concat())]);
    let (send, mut deltas) = mpsc::channel(16);
    let reflector = Reflector::builder::<Pod>(script).into_store(send);
    let status = reflector.status();
    reflector.run(sleep(MINUTE / 2)).await;
    let heard = Trace::default();
    while let Ok(delta) = deltas.try_recv() {
        let revision = match &delta.kind {
            DeltaKind::Bookmark { revision } | DeltaKind::ReplacedAll { revision, .. } => revision,
            _ => delta.object().unwrap().revision(),
        };
        heard.note(format!("{:?} {revision}", delta.delta_type()));
    }
    expect![[r#"
        ReplacedAll 5
        Added 10
        Updated 20
        Bookmark 30
        Deleted 40
    "#]]
    .assert_eq(&heard.take());
    assert_eq!(status.get().sources[0].revision, 40.into());
}

/// A store that records changes. It rejects each change in `refuse` once, for example `Added default/b`.
struct Picky {
    refuse: Vec<&'static str>,
    trace: Trace,
}

impl ReflectorStore<Pod> for Picky {
    async fn accept(&mut self, delta: Delta<Pod>) -> Result<(), StoreError> {
        let name = delta.object_name().map(ToString::to_string);
        let what = format!("{:?} {}", delta.delta_type(), name.unwrap_or_default());
        let what = what.trim_end();
        if let Some(at) = self
            .refuse
            .iter()
            .position(|refused| what.starts_with(refused))
        {
            self.refuse.remove(at);
            self.trace.note(format!("refused {what}"));
            return Err(StoreError::Refused("planted".to_owned()));
        }
        self.trace.note(what);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_store_rejects_is_relisted() {
    let script = Script::new([
        body(list(5, "", &[])),
        body(list(6, "", &[])),
        hangs(event("ADDED", &pod("a", 7)) + &event("ADDED", &pod("b", 8))),
        body(list(9, "", &[pod("a", 7), pod("b", 8)])),
    ]);
    let trace = Trace::default();
    let store = Picky {
        refuse: vec!["ReplacedAll", "Added default/b"],
        trace: trace.clone(),
    };
    let errors = Trace::default();
    let heard = errors.clone();
    let reflector = Reflector::builder(script.clone())
        .rng_seed(1)
        .on_error(move |error| heard.note(error.to_string()))
        .into_store(store);
    let (synced, status) = (reflector.wait_for_sync(), reflector.status());
    let began = Instant::now();
    let drive = async {
        synced.deadline(LONG).await.unwrap();
        assert!(
            began.elapsed() >= Duration::from_millis(800),
            "the reflector has synced with a rejected list"
        );
        sleep(MINUTE / 2).await;
    };
    reflector.run(drive).await;
    expect![[r#"
        0.0 s: list resourceVersion=0 limit=500
        1.3 s: list resourceVersion=0 limit=500
        1.3 s: watch resourceVersion=6
        3.3 s: list resourceVersion=7
        3.3 s: watch resourceVersion=9
    "#]]
    .assert_eq(&script.log.take());
    expect![[r#"
        refused ReplacedAll
        ReplacedAll
        Added default/a
        refused Added default/b
        ReplacedAll
    "#]]
    .assert_eq(&trace.take());
    expect![[r#"
        the store rejected the change: planted
        the store rejected the change: planted
    "#]]
    .assert_eq(&errors.take());
    let error = status.get().last_error().unwrap().class();
    assert_eq!(error, Class::Store);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_ends_when_its_store_is_closed() {
    let script = Script::new([body(list(5, "", &[]))]);
    let (send, deltas) = mpsc::channel(1);
    drop(deltas);
    let reflector = Reflector::builder::<Pod>(script).into_store(send);
    let synced = reflector.wait_for_sync();
    timeout(LONG, reflector.run(std::future::pending()))
        .await
        .unwrap();
    let error = synced.await.unwrap_err();
    assert_eq!(error.status.activity(), Activity::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_slows_the_watch_and_memory_stays_bounded() {
    let events: String = (6..40).map(|n| event("ADDED", &pod("a", n))).collect();
    let script = Script::new([body(list(5, "", &[])), hangs(events)]);
    let (send, mut deltas) = mpsc::channel(2);
    let reflector = Reflector::builder::<Pod>(script)
        .timeouts(TimeoutConfig {
            full_store: Duration::MAX,
            ..TimeoutConfig::default()
        })
        .into_store(send);
    let status = reflector.status();
    let drive = async {
        sleep(MINUTE).await;
        // The list and one event fill the channel, so the revision does not advance further.
        assert_eq!(status.get().sources[0].revision, 6.into());
        for _ in 0..30 {
            deltas.recv().await.unwrap();
        }
    };
    reflector.run(drive).await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_another_kind_are_reported_and_the_others_stored() {
    let events = [
        event("ADDED", &kind("apps/v1", "Deployment", "d", 6)),
        event("MODIFIED", &kind("meta.k8s.io/v1", "Table", "", 7)),
        event("ADDED", &pod("b", 8)),
        event("DELETED", &kind("v1", "Podcast", "b", 9)),
    ];
    let foreign = kind("example.com/v1", "Pod", "foreign", 2);
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), foreign])),
        Answer::Body(events.concat(), Then::EndsAfter(Duration::from_secs(2))),
    ]);
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let errors = Trace::default();
    let heard = errors.clone();
    let reflector = Reflector::builder(script.clone())
        .on_error(move |error| {
            assert!(matches!(error, Error::OtherKind { .. }), "{error:?}");
            heard.note(error.to_string());
        })
        .into_indexer(writer);
    reflector.run(sleep(MINUTE / 2)).await;
    assert_eq!(
        format!("{:?}", indexer.list()),
        "[default/a@1, default/b@8]"
    );
    assert_eq!(script.requests.take(), "list 0\nwatch 5\nwatch 9\n");
    expect![[r#"
        received example.com/v1 Pod foreign, expected v1 Pod
        received apps/v1 Deployment d, expected v1 Pod
        received meta.k8s.io/v1 Table, expected v1 Pod
        received v1 Podcast b, expected v1 Pod
    "#]]
    .assert_eq(&errors.take());
}

#[tokio::test(start_paused = true)]
async fn a_fail_fast_wait_ignores_a_rejection_before_the_last_success() {
    // The first source was rejected once; its watches close at once, but deliver events.
    let forbidden = Answer::RefuseWith(403, r#"{"code":403,"message":"no"}"#);
    let short = |revision| body(event("ADDED", &pod("a", revision)));
    let mut answers = vec![forbidden, body(list(5, "", &[]))];
    answers.extend((6..12).map(short));
    let quick = Script::new(answers);
    let late = Answer::After(MINUTE / 4, Box::new(body(list(5, "", &[]))));
    let informer = setting::run(
        SharedInformer::<Pod>::builder(quick.clone())
            .source(Script::new([late]))
            .rng_seed(1),
    );
    while quick.requests.len() < 5 {
        sleep(Duration::from_millis(10)).await;
    }
    informer.pods.wait_for_sync().fail_fast().await.unwrap();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_list_does_not_include_the_list_before() {
    let logs = Logs::capture();
    let expired = error_event(r#"{"code":410,"reason":"Expired"}"#);
    let script = Script::new([
        body(list(5, "", &[])),
        Answer::Body(String::new(), Then::EndsAfter(MINUTE)),
        hangs(expired),
        body(list(6, "", &[])),
    ]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone()).into_indexer(writer);
    reflector.run(sleep(2 * MINUTE)).await;
    assert_eq!(script.unasked(), 0);
    assert!(!logs.take().contains("took long"));
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_an_undecodable_object_advances_the_revision() {
    let broken =
        r#"{"metadata":{"name":"a","namespace":"default","resourceVersion":"7"},"spec":7}"#;
    let script = Script::new([
        body(list(5, "", &[pod("a", 1)])),
        hangs(event("DELETED", broken)),
    ]);
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script).into_indexer(writer);
    reflector.run(sleep(MINUTE / 2)).await;
    assert!(indexer.is_empty());
    assert_eq!(indexer.snapshot().revision(), 7.into());
}
