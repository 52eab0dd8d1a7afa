//! Servers that never come to an end: each is given up at a limit that the error names, and asked
//! again after a pause.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    InitialList, SharedInformer, SharedInformerFactory,
    client::ListWatch,
    indexer::{self, Indexers},
    informer::Informer,
    limits::{CONTINUE_TOKEN_BYTES, Limits, WATCH_GRACE},
    reflector::{Error, Reflector},
    shared_informer::Builder,
    transport::Class,
};
use kube_informer_apiserver::Server;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    script::{Answer, Script, Then, body, event, hangs, list, pod},
    setting::{LONG, Trace, pod as server_pod, run},
};

mod forms;
mod wire;

const NOTHING: Duration = Duration::ZERO;

fn builder(script: &Script, limits: Limits) -> Builder<Pod> {
    SharedInformer::builder(script.clone())
        .name("pods")
        .rng_seed(1)
        .initial_list(InitialList::Streaming)
        .limits(limits)
}

/// What the first failure is of an informer of this server, and after how long; then it must go on.
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
        "nothing of it counts: {held}"
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
    assert!(n < 1000, "nobody puts an end to it");
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
async fn items_without_end_are_given_up_at_a_number_whatever_they_are() {
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
async fn the_objects_of_all_pages_count() {
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
async fn bytes_without_end_are_given_up_at_a_number_whatever_they_are() {
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
async fn pages_without_end_are_given_up_at_a_number() {
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
async fn what_never_ends_inside_a_list_or_a_watch_is_given_up_at_its_own_number() {
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
async fn a_token_that_is_too_long_is_not_sent_back() {
    let token = "t".repeat(CONTINUE_TOKEN_BYTES + 1);
    let script = Script::new([body(list(9, &token, &[])), whole()]);
    let (class, error, _) = first_failure(&script, Limits::default()).await;
    let expected = "the response to the list has a continue token longer than 8192 bytes";
    assert_eq!((class, &*error), (Class::Protocol, expected));
    assert!(!script.log.take().contains("ttt"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_comes_in_drops_is_given_up_after_half_an_hour() {
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
        assert_eq!(took.as_secs(), 1800, "also between two drops");
    }
}

#[tokio::test(start_paused = true)]
async fn new_objects_of_a_streaming_list_without_end_are_given_up_at_a_number_or_a_time() {
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
        // Which another stream may keep.
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
async fn new_objects_of_a_watch_without_end_are_given_up_when_the_cache_is_full() {
    let limits = Limits {
        objects: 100,
        ..Limits::default()
    };
    for endless in [new_pod, modified_pod, broken_pod] {
        let begin = body(list(5, "", &[]));
        let script = Script::new([begin, goes("", NOTHING, endless), whole()]);
        let informer = run(builder(&script, limits).queue_capacity(1));
        let mut status = informer.pods.status();
        let failed = status.wait_for(|status| status.last_error().is_some());
        let error = failed.await.unwrap().last_error().unwrap().to_string();
        assert_eq!(
            error,
            "the cache has more than 100 objects; to allow more, raise Limits::objects"
        );
        let snapshot = informer.pods.indexer().snapshot();
        let held = snapshot.len() + snapshot.broken_count();
        assert!((101..110).contains(&held), "{held}");
        sleep(Duration::from_secs(60)).await;
        assert_eq!(informer.pods.indexer().len(), 1, "listed after");
        informer.stop().await;

        let begin = body(list(5, "", &[]));
        let script = Script::new([begin, goes("", NOTHING, endless)]);
        let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(script).limits(limits);
        let reflector = reflector.into_indexer(writer);
        reflector.run(sleep(Duration::from_secs(60))).await;
        let snapshot = indexer.snapshot();
        let held = snapshot.len() + snapshot.broken_count();
        assert_eq!(held, 101, "a reflector that stands alone");
    }
}

#[tokio::test(start_paused = true)]
async fn updates_and_deletions_are_told_of_a_cache_that_is_just_full() {
    let limits = Limits {
        objects: 2,
        ..Limits::default()
    };
    let events = [
        event("MODIFIED", &pod("a", 6)),
        event("DELETED", &pod("b", 7)),
        event("ADDED", &pod("c", 8)),
    ];
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), pod("b", 2)])),
        hangs(events.concat()),
    ]);
    let informer = run(builder(&script, limits));
    informer.pods.wait_for_revision(8, LONG).await.unwrap();
    let held = format!("{:?}", informer.pods.indexer().list());
    assert_eq!(held, "[default/a@6, default/c@8]");
    assert!(informer.pods.status().get().last_error().is_none());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_too_full_hears_of_everything_that_it_has() {
    let limits = Limits {
        objects: 1,
        ..Limits::default()
    };
    let second = Duration::from_secs(1);
    let change: fn(u64) -> String = |n| match n {
        1 => event("ADDED", &pod("b", 6)),
        2 => event("MODIFIED", &pod("a", 7)),
        3 => event(
            "MODIFIED",
            r#"{"metadata":{"name":"b","namespace":"default","resourceVersion":"8"},"spec":0}"#,
        ),
        4 => event("MODIFIED", &pod("b", 9)),
        5 => event("DELETED", &pod("a", 10)),
        6 => event("ADDED", &pod("c", 11)),
        _ => event("ADDED", &pod("d", 12)),
    };
    let changes = goes("", second, change);
    let script = Script::new([body(list(5, "", &[pod("a", 1)])), changes]);
    let informer = run(builder(&script, limits));
    let held = || format!("{:?}", informer.pods.indexer().list());
    sleep(second * 13 / 2).await;
    assert_eq!(held(), "[default/b@9, default/c@11]");
    assert!(informer.pods.status().get().last_error().is_none());
    sleep(second).await;
    assert_eq!(held(), "[default/b@9, default/c@11]");
    assert!(informer.pods.status().get().last_error().is_some());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_source_has_its_own_room() {
    let limits = Limits {
        objects: 2,
        ..Limits::default()
    };
    let script = |names: &[&str], change: fn(u64) -> String| {
        let pods: Vec<_> = names.iter().map(|name| pod(name, 1)).collect();
        let changes = goes("", Duration::from_secs(1), change);
        Script::new([body(list(5, "", &pods)), changes])
    };
    let greedy = script(&["a"], |n| event("ADDED", &pod(&format!("b{n}"), 5 + n)));
    let quiet = script(&["c", "d"], |n| event("MODIFIED", &pod("c", 5 + n)));
    let two = builder(&greedy, limits).source(quiet);
    let informer = run(two);
    informer.pods.wait_for_sync().await.unwrap();
    sleep(Duration::from_millis(4500)).await;
    let held = format!("{:?}", informer.pods.indexer().list());
    let expected = "[default/a@1, default/b1@6, default/b2@7, default/c@9, default/d@1]";
    assert_eq!(
        held, expected,
        "the third is one too many, whoever has room"
    );
    let status = informer.pods.status().get();
    let failed = status
        .sources
        .iter()
        .map(|source| source.last_error.is_some());
    assert_eq!(failed.collect::<Vec<_>>(), [true, false]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_streaming_list_has_the_whole_time_for_itself() {
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
        // Whether it knows the revision, which it no longer does when it is watched from.
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
async fn bytes_that_become_no_event_do_not_keep_a_watch_open_beyond_its_time() {
    for (begin, endless) in [
        ("", white_space as fn(u64) -> String),
        (r#"{"type":"ADDED","object":{"a":""#, drop_of_text),
    ] {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let script = Script::new([body(list(5, "", &[])), goes(begin, second, endless)]);
        let informer = run(builder(&script, Limits::default()));
        let mut status = informer.pods.status();
        let failed = status.wait_for(|status| status.last_error().is_some());
        let error = failed.await.unwrap().last_error().unwrap().to_string();
        assert!(
            error.starts_with("the watch is open beyond its requested time-out"),
            "{error}"
        );
        let longest = Duration::from_secs(600) + WATCH_GRACE + second;
        assert!(began.elapsed() <= longest, "{:?}", began.elapsed());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_always_there_keep_no_watch_open_and_nobody_from_stopping() {
    let script = Script::new([body(list(5, "", &[])), Answer::Flood("\n")]);
    let informer = run(builder(&script, Limits::default()));
    informer.pods.wait_for_sync().await.unwrap();
    let status = informer.pods.status();
    // No task is ever idle, so time does not advance by itself.
    let mut seconds = 0;
    while status.get().last_error().is_none() && seconds < 700 {
        tokio::time::advance(Duration::from_secs(10)).await;
        seconds += 10;
    }
    let error = status.get().last_error().unwrap().to_string();
    assert!(
        error.starts_with("the watch is open beyond its requested time-out"),
        "{error}"
    );
    informer.stop().await;

    let script = Script::new([body(list(5, "", &[])), Answer::Flood("\n")]);
    let informer = run(builder(&script, Limits::default()));
    while script.unasked() > 0 {
        tokio::task::yield_now().await;
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_does_not_say_whose_it_is_is_followed_by_a_list_and_one_of_an_unfit_name_is_not()
 {
    let nobody = r#"{"metadata":{"resourceVersion":"6"}}"#.to_owned();
    for (changed, held) in [
        (nobody, "[default/a@8]"),
        (pod("b\\nc", 6), "[default/a@1]"),
    ] {
        let script = Script::new([
            body(list(5, "", &[pod("a", 1)])),
            hangs(event("MODIFIED", &changed)),
            body(list(9, "", &[pod("a", 8)])),
        ]);
        let informer = run(builder(&script, Limits::default()));
        informer.pods.wait_for_sync().await.unwrap();
        sleep(Duration::from_secs(10)).await;
        assert_eq!(format!("{:?}", informer.pods.indexer().list()), held);
        informer.stop().await;
    }
    let nobody = r#"{"metadata":{"resourceVersion":"6"}}"#;
    let end = r#"{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let streamed = [
        event("ADDED", &pod("a", 1)),
        event("MODIFIED", nobody),
        event("BOOKMARK", end),
    ];
    let listed = body(list(9, "", &[pod("a", 8)]));
    let informer = run(builder(
        &Script::streaming([hangs(streamed.concat()), listed]),
        Limits::default(),
    ));
    informer.pods.wait_for_sync().await.unwrap();
    assert_eq!(
        format!("{:?}", informer.pods.indexer().list()),
        "[default/a@8]"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_check_that_never_ends_fails_and_keeps_nothing_of_it() {
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
async fn every_builder_takes_limits() {
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
    let factory = SharedInformerFactory::builder(server.client()).limits(limits);
    let factory = factory.on_error(move |_, error| by_factory(error)).build();
    let _pods = factory.informer::<Pod>();
    factory.start();
    second().await;
    factory.shutdown().await;
    let heard = heard.take();
    let line = "the list has more than 1 objects; to allow more, raise Limits::objects\n";
    assert_eq!(heard, line.repeat(4));
}
