//! Tests of an informer with scripted responses that the embedded server cannot send.
//!
//! Examples are a list whose continue token expires between two pages, and a response with an unsupported
//! content type.

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer, reflector::Error, shared_informer::Builder, status::Activity, transport::Class,
};
use tokio::time::{Instant, sleep};

use crate::{
    script::{Answer, Script, Then, body, error_event, event, hangs, list, pod},
    setting::{LONG, Running, Trace, run},
};

fn builder(script: &Script) -> Builder<Pod> {
    SharedInformer::builder(script.clone())
        .name("pods")
        .rng_seed(1)
}

fn names(informer: &Running) -> String {
    format!("{:?}", informer.pods.indexer().list())
}

#[tokio::test(start_paused = true)]
async fn the_pages_before_an_expired_page_are_discarded() {
    let script = Script::new([
        body(list(5, "more", &[pod("gone", 1), pod("kept", 2)])),
        Answer::Refuse(Class::Expired),
        body(list(9, "", &[pod("kept", 2)])),
    ]);
    let informer = run(builder(&script));
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(names(&informer), "[default/kept@2]");
    assert_eq!(
        script.requests.take(),
        "list 0\nlist  more\nlist 0\nwatch 9\n"
    );
    informer.stop().await;
}

/// Returns `answer` with this content type instead of `application/json`.
fn labelled(content_type: &'static str, answer: Answer) -> Answer {
    Answer::Labelled(content_type, Box::new(answer))
}

#[tokio::test(start_paused = true)]
async fn a_response_in_another_encoding_fails_and_leaves_the_cache_as_it_is() {
    // The second list and the second watch claim to be protobuf, and are JSON.
    let protobuf = "application/vnd.kubernetes.protobuf;stream=watch";
    let cbor = "application/cbor";
    let script = Script::new([
        labelled(cbor, body(list(4, "", &[pod("not", 4)]))),
        labelled(protobuf, body(list(4, "", &[pod("not", 4)]))),
        labelled("text/plain", body(list(5, "", &[pod("a", 5)]))),
        labelled(cbor, hangs(event("ADDED", &pod("not", 6)))),
        body(list(6, "", &[pod("a", 5)])),
        labelled(protobuf, hangs(event("ADDED", &pod("not", 6)))),
        body(list(7, "", &[pod("a", 5), pod("b", 7)])),
        Answer::Never,
    ]);
    let errors = Trace::default();
    let noted = errors.clone();
    let informer = run(builder(&script).on_error(move |error| noted.note(error.to_string())));
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(names(&informer), "[default/a@5]");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(names(&informer), "[default/a@5, default/b@7]");
    assert_eq!(
        script.requests.take(),
        "list 0\nlist 0\nlist 0\nwatch 5\nlist 5\nwatch 6\nlist 6\nwatch 7\n"
    );
    expect![[r#"
        the server responded with application/cbor instead of application/json
        the response to the list is labelled as protobuf, and does not begin as protobuf
        the server responded with application/cbor instead of application/json
        an object is larger than 16777216 bytes; to allow it, raise Limits::object_bytes
    "#]]
    .assert_eq(&errors.take());
    // The informer's copy of the script and the open watch exist; the rejected bodies are dropped.
    assert_eq!(script.under_way(), 2);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_closes_at_once_without_events_is_followed_by_a_list() {
    let script = Script::new([
        body(list(5, "", &[])),
        body(event("ADDED", &pod("a", 6))),
        body(String::new()),
        body(list(7, "", &[pod("a", 6)])),
        Answer::Never,
    ]);
    let informer = run(builder(&script));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        script.requests.take(),
        "list 0\nwatch 5\nwatch 6\nlist 6\nwatch 7\n"
    );
    let status = informer.pods.status().get();
    assert_eq!(status.last_error().unwrap().class(), Class::VeryShortWatch);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_event_is_followed_by_a_list_and_earlier_events_are_applied() {
    let garbage = event("ADDED", &pod("a", 6)) + "<html>";
    let script = Script::new([
        body(list(5, "", &[])),
        hangs(garbage),
        body(list(7, "", &[pod("a", 6)])),
    ]);
    let informer = run(builder(&script));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(script.requests.take(), "list 0\nwatch 5\nlist 6\nwatch 7\n");
    assert_eq!(trace.take(), "synced\nadd default/a@6\n");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stalled_list_fails_after_a_minute() {
    let whole = list(5, "", &[pod("a", 1)]);
    let half = whole[..whole.len() / 2].to_owned();
    for stalled in [Answer::Never, hangs(half)] {
        let script = Script::new([stalled, body(whole.clone())]);
        let before = Instant::now();
        let informer = run(builder(&script));
        informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
        let waited = before.elapsed().as_secs_f64();
        assert!((60.0..62.0).contains(&waited), "{waited}");
        let status = informer.pods.status().get();
        assert_eq!(status.last_error().unwrap().class(), Class::Timeout);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_error_handler_does_not_affect_the_informer() {
    let script = Script::new([
        Answer::Refuse(Class::Server),
        body(list(5, "", &[pod("a", 1)])),
    ]);
    let informer = run(builder(&script).on_error(|_| panic!("planted")));
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(names(&informer), "[default/a@1]");
    let status = informer.pods.status().get();
    assert_eq!(status.sources[0].revision, 5.into());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_since_the_last_success() {
    let refused = || Answer::Refuse(Class::TooManyRequests);
    let script = Script::new([
        body(list(5, "", &[])),
        refused(),
        refused(),
        body(event("ADDED", &pod("a", 6))),
        refused(),
    ]);
    let informer = run(builder(&script));
    let mut attempts = Vec::new();
    let mut status = informer.pods.status();
    while attempts.len() < 3 {
        let now = status.changed().await.unwrap();
        if let Activity::BackingOff { attempt, .. } = now.activity() {
            attempts.push(attempt);
        }
    }
    assert_eq!(attempts, [1, 2, 1]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_name_in_a_list_is_delivered_once_in_its_last_state() {
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), pod("b", 2), pod("a", 3)])),
        Answer::Refuse(Class::Expired),
        body(list(9, "", &[pod("a", 6), pod("b", 2), pod("a", 7)])),
    ]);
    let informer = run(builder(&script));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    sleep(Duration::from_secs(10)).await;
    expect![[r#"
        add default/a@3 (initial)
        add default/b@2 (initial)
        synced
        update default/a@3 → 7 (relist)
    "#]]
    .assert_eq(&trace.take());
    assert_eq!(names(&informer), "[default/a@7, default/b@2]");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_inside_a_stream_reach_the_error_handler_with_their_class() {
    let failing = |code: u16, reason: &str| {
        let status = format!(r#"{{"kind":"Status","code":{code},"reason":"{reason}"}}"#);
        body(error_event(&status))
    };
    let listed = || body(list(5, "", &[]));
    let script = Script::new([
        listed(),
        failing(410, "Expired"),
        listed(),
        failing(500, "InternalError"),
        listed(),
        failing(429, "TooManyRequests"),
        Answer::Body(String::new(), Then::Breaks(Class::Connection)),
    ]);
    let classes = Trace::default();
    let heard = classes.clone();
    let informer = run(builder(&script).on_error(move |error| {
        let Error::Transport(error) = error else {
            panic!("{error} is not an error of a stream");
        };
        heard.note(format!("{:?}", error.class()));
    }));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(
        classes.take(),
        "Expired\nInternal\nTooManyRequests\nConnection\n"
    );
    assert_eq!(script.unasked(), 0);
    informer.stop().await;
}
