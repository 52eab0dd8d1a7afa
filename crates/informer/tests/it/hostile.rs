//! Tests that lists, watches and consistency checks fail when a response exceeds a limit of the
//! client.
//!
//! A consistency check periodically lists the objects on the server and compares them with the cache.
//! The error message names the exceeded limit. The informer retries a failed list or watch after a backoff,
//! and a failed check at the next period.

mod forms;
mod watches;
mod wire;

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InitialList, SharedInformer,
    client::ListWatch,
    indexer::{self, Indexers},
    informer::Informer,
    limits::{CONTINUE_TOKEN_BYTES, Limits},
    reflector::{Error, Reflector},
    shared_informer::Builder,
    transport::Class,
};
use kube_informer_apiserver::Server;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    script::{Answer, Script, Then, body, event, hangs, list, pod},
    setting::{LONG, Trace, factory_builder, pod as server_pod, run},
};

const NOTHING: Duration = Duration::ZERO;

fn builder(script: &Script, limits: Limits) -> Builder<Pod> {
    SharedInformer::builder(script.clone())
        .name("pods")
        .rng_seed(1)
        .initial_list(InitialList::Streaming)
        .limits(limits)
}

/// Runs an informer that receives the responses in `script`, and returns its first error.
///
/// The duration is the time from the start of the informer to the error.
///
/// # Panics
///
/// Panics if the cache stores an object of the failed list, or if the informer does not sync afterwards.
async fn first_failure(script: &Script, limits: Limits) -> (Class, String, Duration) {
    let began = Instant::now();
    let informer = run(builder(script, limits));
    let mut status = informer.pods.status();
    let failed = status.wait_for(|status| status.last_error().is_some());
    let failed = failed.await.unwrap();
    let (error, took) = (failed.last_error().unwrap(), began.elapsed());
    let first = (error.class(), error.to_string(), took);
    let held = format!("{:?}", informer.pods.indexer().list());
    assert!(
        matches!(&*held, "[]" | "[default/a@1]"),
        "no object of the failed list is stored: {held}"
    );
    informer
        .pods
        .wait_for_sync()
        .deadline(2 * LONG)
        .await
        .unwrap();
    informer.stop().await;
    first
}

fn item(n: u64) -> String {
    format!("{},", pod(&format!("p{n}"), n))
}

fn same_item(_: u64) -> String {
    format!("{},", pod("same", 1))
}

fn other_kind(n: u64) -> String {
    format!(r#"{{"kind":"Else","apiVersion":"v1","metadata":{{"name":"e{n}"}}}},"#)
}

fn white_space(_: u64) -> String {
    " \n".repeat(500)
}

fn text(_: u64) -> String {
    "x".repeat(1000)
}

fn drop_of_text(_: u64) -> String {
    "x".to_owned()
}

fn new_pod(n: u64) -> String {
    event("ADDED", &pod(&format!("p{n}"), 5 + n))
}

fn modified_pod(n: u64) -> String {
    event("MODIFIED", &pod(&format!("p{n}"), 5 + n))
}

fn broken_pod(n: u64) -> String {
    assert!(n < 1000, "the stream was not stopped");
    let name = format!(
        r#""name":"p{n}","namespace":"default","resourceVersion":"{}""#,
        5 + n
    );
    event("ADDED", &format!(r#"{{"metadata":{{{name}}},"spec":0}}"#))
}

fn goes(begin: &str, pause: Duration, nth: fn(u64) -> String) -> Answer {
    Answer::Body(begin.to_owned(), Then::Goes(pause, nth))
}

fn whole() -> Answer {
    body(list(9, "", &[pod("a", 1)]))
}

#[tokio::test(start_paused = true)]
async fn a_list_that_exceeds_the_object_limit_fails() {
    let limits = Limits {
        objects: 100,
        ..Limits::default()
    };
    for endless in [item, same_item, other_kind] {
        let script = Script::new([goes(r#"{"items":["#, NOTHING, endless), whole()]);
        let (class, error, _) = first_failure(&script, limits).await;
        let expected = "the list has more than 100 objects; to allow more, raise Limits::objects";
        assert_eq!((class, &*error), (Class::Protocol, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn the_object_limit_counts_the_objects_of_all_pages() {
    let limits = Limits {
        objects: 3,
        ..Limits::default()
    };
    let page = |token| body(list(9, token, &[pod("a", 1), pod("b", 2)]));
    let script = Script::new([page("t1"), page(""), whole()]);
    let (_, error, _) = first_failure(&script, limits).await;
    assert_eq!(
        error,
        "the list has more than 3 objects; to allow more, raise Limits::objects"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_exceeds_the_byte_limit_fails() {
    let limits = Limits {
        list_bytes: 10_000,
        ..Limits::default()
    };
    for endless in [item, white_space] {
        let script = Script::new([goes(r#"{"items":["#, NOTHING, endless), whole()]);
        let (class, error, _) = first_failure(&script, limits).await;
        let expected =
            "the list has more than 10000 bytes; to allow more, raise Limits::list_bytes";
        assert_eq!((class, &*error), (Class::Protocol, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_exceeds_the_page_limit_fails() {
    let limits = Limits {
        list_pages: 5,
        ..Limits::default()
    };
    let pages = (0..5).map(|n| body(list(9, &format!("t{n}"), &[])));
    let script = Script::new(pages.chain([whole()]));
    let (class, error, _) = first_failure(&script, limits).await;
    let expected = "the list has more than 5 pages; to allow more, raise Limits::list_pages";
    assert_eq!((class, &*error), (Class::Protocol, expected));
    assert_eq!(script.unasked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_value_without_end_in_a_list_or_a_watch_fails_at_its_own_limit() {
    let limits = Limits {
        object_bytes: 10_000,
        ..Limits::default()
    };
    let object = "an object is larger than 10000 bytes; to allow it, raise Limits::object_bytes";
    let itself = "the response to the list has more than 1048576 bytes besides its items";
    let rows = r#"the response to the list has an unknown field "rows" above the size limit; to allow it, raise Limits::object_bytes"#;
    let white: fn(u64) -> String = white_space;
    for (begin, endless, expected) in [
        (r#"{"items":[{"a":"#, white, object),
        (r#"{"items":[{"a":""#, text, object),
        (r#"{"metadata":{"continue":""#, text, itself),
        (r#"{"metadata":{"resourceVersion":"#, white, itself),
        (r#"{"rows":["#, white, rows),
    ] {
        let script = Script::new([goes(begin, NOTHING, endless), whole()]);
        let (class, error, _) = first_failure(&script, limits).await;
        assert_eq!((class, &*error), (Class::Protocol, expected), "{begin}");
    }
    for (begin, endless) in [
        (r#"{"type":"ADDED","object":{"a":"#, white),
        (
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""#,
            text,
        ),
        (r#"{"type":"ERROR","object":{"message":""#, text),
    ] {
        let watch = goes(begin, NOTHING, endless);
        let script = Script::new([body(list(5, "", &[])), watch, whole()]);
        let (_, error, _) = first_failure(&script, limits).await;
        assert_eq!(error, object, "{begin}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_that_is_too_long_is_not_sent_back() {
    let token = "t".repeat(CONTINUE_TOKEN_BYTES + 1);
    let script = Script::new([body(list(9, &token, &[])), whole()]);
    let (class, error, _) = first_failure(&script, Limits::default()).await;
    let expected = "the response to the list has a continue token longer than 8192 bytes";
    assert_eq!((class, &*error), (Class::Protocol, expected));
    assert!(!script.log.take().contains("ttt"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_arrives_slowly_fails_after_half_an_hour() {
    let minute = Duration::from_secs(59);
    for begin in ["", r#"{"items":[{"a":""#] {
        let endless = if begin.is_empty() {
            white_space
        } else {
            drop_of_text
        };
        let script = Script::new([goes(begin, minute, endless), whole()]);
        let (class, error, took) = first_failure(&script, Limits::default()).await;
        let expected =
            "the list took longer than 1800s; to allow more time, raise Limits::list_time";
        assert_eq!((class, &*error), (Class::Timeout, expected));
        assert_eq!(
            took.as_secs(),
            1800,
            "the limit applies between two chunks too"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_without_end_fails_at_the_object_byte_or_time_limit() {
    let few = Limits {
        objects: 100,
        ..Limits::default()
    };
    let small = Limits {
        list_bytes: 10_000,
        ..Limits::default()
    };
    let second = Duration::from_secs(1);
    for (limits, pause, times, expected) in [
        (
            few,
            NOTHING,
            1,
            "the list has more than 100 objects; to allow more, raise Limits::objects",
        ),
        (
            small,
            NOTHING,
            1,
            "the list has more than 10000 bytes; to allow more, raise Limits::list_bytes",
        ),
        // Retried as a stream, because another stream may stay within the limit.
        (
            Limits::default(),
            second,
            3,
            "the list took longer than 1800s; to allow more time, raise Limits::list_time",
        ),
    ] {
        let streams = (0..times).map(|_| goes("", pause, new_pod));
        let script = Script::streaming(streams.chain([whole()]));
        let (_, error, _) = first_failure(&script, limits).await;
        assert_eq!(error, expected);
        assert_eq!(script.unasked(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_applies_to_each_streaming_list_separately() {
    let end = |revision: u64| {
        let annotations = r#"{"k8s.io/initial-events-end":"true"}"#;
        let metadata = format!(r#"{{"resourceVersion":"{revision}","annotations":{annotations}}}"#);
        event("BOOKMARK", &format!(r#"{{"metadata":{metadata}}}"#))
    };
    let first = format!("{}{}", event("ADDED", &pod("a", 1)), end(5));
    let second = format!("{}{}", event("ADDED", &pod("a", 7)), end(9));
    let minutes = Duration::from_secs(120);
    let script = Script::streaming([
        Answer::Body(first, Then::EndsAfter(minutes)),
        // The probe after the stream succeeds; the watch at its revision is then rejected as expired.
        body(list(5, "", &[])),
        Answer::Refuse(Class::Expired),
        hangs(second),
    ]);
    let limits = Limits {
        list_time: Duration::from_secs(60),
        ..Limits::default()
    };
    let informer = run(builder(&script, limits));
    let mut status = informer.pods.status();
    let listed = status.wait_for(|status| status.revision() == 9.into());
    let listed = timeout(LONG, listed).await.unwrap();
    let errors = listed.unwrap().last_error().map(|error| error.class());
    assert_eq!(errors, Some(Class::Expired), "{}", script.log.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_check_without_end_fails_at_the_limits_of_a_list() {
    let limits = Limits {
        objects: 100,
        ..Limits::default()
    };
    let minute = Duration::from_secs(60);
    let script = Script::new([
        body(list(5, "", &[pod("same", 1)])),
        Answer::Body(String::new(), Then::Hangs),
        goes(r#"{"items":["#, NOTHING, same_item),
    ]);
    let informer = run(builder(&script, limits).consistency_check(minute));
    sleep(2 * minute).await;
    let checks = informer.pods.status().get().consistency;
    let failure = checks.last_failure.unwrap().to_string();
    assert_eq!(
        failure,
        "the list has more than 100 objects; to allow more, raise Limits::objects"
    );
    informer.stop().await;

    let limits = Limits {
        list_pages: 5,
        ..Limits::default()
    };
    let begin = [
        body(list(5, "", &[pod("same", 1)])),
        Answer::Body(String::new(), Then::Hangs),
    ];
    let pages = (0..5).map(|n| body(list(5, &format!("t{n}"), &[])));
    let script = Script::new(begin.into_iter().chain(pages));
    let informer = run(builder(&script, limits).consistency_check(minute));
    sleep(2 * minute).await;
    let checks = informer.pods.status().get().consistency;
    let failure = checks.last_failure.unwrap().to_string();
    assert_eq!(
        failure,
        "the list has more than 5 pages; to allow more, raise Limits::list_pages"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_builder_accepts_limits() {
    let server = Server::builder()
        .seed([server_pod("a"), server_pod("b")])
        .build();
    let source = || ListWatch::<Pod>::new(server.client());
    let limits = Limits {
        objects: 1,
        ..Limits::default()
    };
    let heard = Trace::default();
    let note = |heard: &Trace| {
        let heard = heard.clone();
        move |error: &Error| heard.note(error.to_string())
    };
    let second = || sleep(Duration::from_millis(500));
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(source()).limits(limits);
    let reflector = reflector.on_error(note(&heard)).into_indexer(writer);
    reflector.run(second()).await;
    let plain = Informer::builder::<Pod>(source()).limits(limits);
    let (_, plain) = plain.on_error(note(&heard)).build();
    plain.run(second()).await.unwrap();
    let shared = SharedInformer::<Pod>::builder(source()).limits(limits);
    let (_pods, shared) = shared.on_error(note(&heard)).build();
    shared.run(second()).await.unwrap();
    let by_factory = note(&heard);
    let factory = factory_builder(server.client()).limits(limits);
    let factory = factory.on_error(move |_, error| by_factory(error)).build();
    let _pods = factory.informer::<Pod>();
    factory.start();
    second().await;
    factory.shutdown().await;
    let heard = heard.take();
    let line = "the list has more than 1 objects; to allow more, raise Limits::objects\n";
    assert_eq!(heard, line.repeat(4));
}
