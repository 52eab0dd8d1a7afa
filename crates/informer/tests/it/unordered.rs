//! Tests of watches that send objects with old revisions, as some aggregated API servers do.
//!
//! When a client gains access to an existing object, such a server sends an `ADDED` event with the object's
//! revision. This revision can be lower than the revision of an earlier event of the watch.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InformerOptions, InitialList, MutationCache, SharedInformer,
    client::ListWatch,
    indexer::{self, Indexers},
    informer::Informer,
    queue::DeltaFifo,
    reflector::{Reflector, RollbackDetection},
    shared_informer::Builder,
    transport::Class,
};
use kube_informer_apiserver::Server;
use tokio::time::sleep;

use crate::{
    script::{Answer, Script, Then, body, error_event, event, hangs, list, pod},
    setting::{LONG, Running, Trace, factory_builder, run},
};

const SECOND: Duration = Duration::from_secs(1);

const EXPIRED: &str = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;

fn bookmark(revision: u64, annotations: &str) -> String {
    let meta = format!(r#"{{"resourceVersion":"{revision}","annotations":{annotations}}}"#);
    event("BOOKMARK", &format!(r#"{{"metadata":{meta}}}"#))
}

/// Returns the body of a streaming list with these pods.
fn streamed(revision: u64, pods: &[String]) -> String {
    let added: String = pods.iter().map(|pod| event("ADDED", pod)).collect();
    added + &bookmark(revision, r#"{"k8s.io/initial-events-end":"true"}"#)
}

fn builder(script: &Script) -> Builder<Pod> {
    SharedInformer::builder(script.clone())
        .rng_seed(1)
        .initial_list(InitialList::Streaming)
}

async fn listening(builder: Builder<Pod>) -> (Running, Trace) {
    let informer = run(builder);
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    (informer, trace)
}

/// Returns the events that the watch sends `second` seconds after the streaming list.
///
/// Some events contain an object with an old revision.
fn grants(second: u64) -> String {
    match second {
        1 => event("ADDED", &pod("granted", 3)) + &event("ADDED", &pod("too", 2)),
        2 => event("MODIFIED", &pod("a", 12)),
        3 => event("ADDED", &pod("later", 1)) + &bookmark(11, "null"),
        4 => event("DELETED", &pod("granted", 3)),
        _ => event("MODIFIED", &pod("a", 12 + second)),
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_old_objects_cost_one_probe_and_no_list() {
    for by_key in [false, true] {
        let script = Script::streaming([
            Answer::Body(streamed(10, &[pod("a", 5)]), Then::Goes(SECOND, grants)),
            body(list(10, "", &[pod("a", 5)])),
        ]);
        let building = builder(&script);
        let (informer, trace) = listening(if by_key {
            building.queue(DeltaFifo::new())
        } else {
            building
        })
        .await;
        let mutations = MutationCache::builder(&informer.pods).ttl(LONG).build();
        let own: Pod = serde_json::from_str(&pod("own", 1000)).unwrap();
        let own = mutations.put(own).unwrap();
        let waits = informer.pods.wait_for_revision(17, LONG);
        sleep(SECOND * 5 + SECOND / 2).await;
        assert_eq!(
            script.log.take(),
            "0.0 s: stream\n1.0 s: list resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1\n"
        );
        assert_eq!(
            trace.take(),
            "add default/a@5 (initial)\nsynced\nadd default/granted@3\nadd default/too@2\n\
             update default/a@5 → 12\nadd default/later@1\ndelete default/granted@3\n\
             update default/a@12 → 17\n",
            "no other event is delivered, by key: {by_key}"
        );
        assert_eq!(waits.await, Ok(()));
        assert!(
            mutations.find(&own).is_some(),
            "a pending write stays pending"
        );
        let status = informer.pods.status().get();
        assert_eq!(status.sources[0].revision, 17.into());
        assert!(status.last_error().is_none());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_probed_again_after_its_next_list() {
    let old = |name: &str| event("ADDED", &pod(name, 3));
    let script = Script::streaming([
        hangs(streamed(10, &[]) + &old("b") + &old("c")),
        body(list(10, "", &[])),
    ]);
    let (informer, _) = listening(builder(&script)).await;
    sleep(SECOND).await;
    assert_eq!(script.requests.take(), "watch\nlist 10\n");
    informer.stop().await;

    let all = [pod("b", 3)];
    let script = Script::streaming([
        Answer::Body(
            streamed(10, &all) + &old("c"),
            Then::EndsAfter(SECOND * 400),
        ),
        body(list(10, "", &[])),
        // The watch closes before its timeout.
        body(list(10, "", &[])),
        body(error_event(EXPIRED)),
        hangs(streamed(20, &all) + &old("d")),
        body(list(20, "", &[])),
    ]);
    let (informer, _) = listening(builder(&script)).await;
    sleep(SECOND * 500).await;
    assert_eq!(
        script.requests.take(),
        "watch\nlist 10\nlist 10\nwatch 10\nwatch 10\nlist 20\n"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_during_a_watch_delays_no_event_and_its_rejection_keeps_the_watch() {
    let late = Answer::After(
        SECOND * 30,
        Box::new(Answer::Refuse(Class::TooManyRequests)),
    );
    let script = Script::streaming([
        Answer::Body(streamed(10, &[pod("a", 5)]), Then::Goes(SECOND, grants)),
        late,
        body(list(1000, "", &[])),
    ]);
    let (informer, trace) = listening(builder(&script)).await;
    sleep(SECOND * 10 + SECOND / 2).await;
    assert!(
        trace.take().ends_with("→ 22\n"),
        "events are delivered while the probe is in progress"
    );
    sleep(SECOND * 150).await;
    let log = script.log.take();
    assert_eq!(
        log.lines().filter(|line| line.contains("limit=1")).count(),
        2,
        "{log}"
    );
    assert_eq!(log.lines().count(), 3, "{log}");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn disabled_detection_probes_nothing_and_keeps_the_last_revision() {
    let events =
        event("MODIFIED", &pod("a", 12)) + &event("MODIFIED", &pod("a", 7)) + &bookmark(6, "null");
    let script = Script::streaming([
        Answer::Body(
            streamed(10, &[pod("a", 5)]) + &events,
            Then::Breaks(Class::Connection),
        ),
        hangs(String::new()),
    ]);
    let building = builder(&script).rollback_detection(RollbackDetection::Disabled);
    let (informer, _) = listening(building).await;
    sleep(SECOND * 100).await;
    assert_eq!(script.requests.take(), "watch\nwatch 12\n");
    assert_eq!(
        format!("{:?}", informer.pods.indexer().list()),
        "[default/a@7]"
    );
    informer.stop().await;
}

/// An empty streaming list can be wrong: a proxy or an incomplete watch cache may have ended it early.
#[tokio::test(start_paused = true)]
async fn an_empty_streaming_list_empties_the_cache_only_if_a_list_confirms_it() {
    let first = || Answer::Body(streamed(10, &[pod("a", 5)]), Then::EndsAfter(SECOND * 400));
    let expired = || [body(list(10, "", &[])), body(error_event(EXPIRED))];
    for (listed, expected) in [
        (vec![pod("a", 5)], "add default/a@5 (initial)\nsynced\n"),
        (
            Vec::new(),
            "add default/a@5 (initial)\nsynced\ndelete default/a@5 (final state unknown)\n",
        ),
    ] {
        let mut answers = vec![first()];
        answers.extend(expired());
        answers.extend([
            hangs(streamed(20, &[])),
            body(list(21, "", &listed)),
            hangs(String::new()),
        ]);
        let script = Script::streaming(answers);
        let (informer, trace) = listening(builder(&script)).await;
        sleep(SECOND * 500).await;
        assert_eq!(
            script.requests.take(),
            "watch\nlist 10\nwatch 10\nwatch 10\nlist\nwatch 21\n"
        );
        assert_eq!(trace.take(), expected);
        informer.stop().await;
    }
    let script = Script::streaming([hangs(streamed(10, &[]))]);
    let (informer, _) = listening(builder(&script)).await;
    sleep(SECOND).await;
    assert_eq!(
        script.requests.take(),
        "watch\n",
        "an empty cache needs no confirmation"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_builder_can_disable_the_detection() {
    for (detection, expected) in [
        (RollbackDetection::Enabled, 5),
        (RollbackDetection::Disabled, 0),
    ] {
        let server = Server::builder().build();
        let source = || ListWatch::<Pod>::new(server.client());
        let broken = async || {
            sleep(SECOND).await;
            server.faults().break_watches();
            sleep(SECOND * 5).await;
        };
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let builder = Reflector::builder(source()).rollback_detection(detection);
        builder.into_indexer(writer).run(broken()).await;
        let builder = Informer::builder::<Pod>(source()).rollback_detection(detection);
        builder.build().1.run(broken()).await.unwrap();
        let builder = SharedInformer::<Pod>::builder(source()).rollback_detection(detection);
        let (_pods, controller) = builder.build();
        controller.run(broken()).await.unwrap();
        let builder = factory_builder(server.client());
        let factory = builder.rollback_detection(detection).build();
        let _pods = factory.informer::<Pod>();
        factory.start();
        broken().await;
        factory.shutdown().await;
        let factory = factory_builder(server.client()).build();
        let options = InformerOptions::new().rollback_detection(detection);
        let _pods = factory.informer_with::<Pod>(options).unwrap();
        factory.start();
        broken().await;
        factory.shutdown().await;
        let requests = server.requests();
        let probes = requests
            .iter()
            .filter(|request| request.options.limit == Some(1));
        assert_eq!(probes.count(), expected, "{detection:?}");
    }
}
