//! Tests of streaming lists: stored changes, requests after an incomplete streaming list, and the fallback to
//! plain lists.

mod losses;
mod servers;

use std::time::Duration;

use expect_test::{Expect, expect};
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer,
    client::ListWatch,
    indexer::{self, Indexer, Indexers},
    informer::Informer,
    reflector::{Delta, DeltaKind, InitialList, Reflector, ReflectorBuilder, TimeoutConfig},
    status::Activity,
    transport::{Class, Error, ListOptions, ListerWatcher, Response},
};
use kube_informer_apiserver::{Server, WatchCache};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::{
    logs::Logs,
    script::{Answer, Script, Then, body, error_event, event, hangs, list, pod},
    setting::{self, LONG, Trace, builder, labelled, requests, run, streaming},
};

const EXPIRED: &str = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
const SECOND: Duration = Duration::from_secs(1);

fn added(name: &str, revision: u64) -> String {
    event("ADDED", &pod(name, revision))
}

fn bookmark_saying(revision: u64, annotations: &str) -> String {
    let meta = format!(r#"{{"resourceVersion":"{revision}","annotations":{annotations}}}"#);
    event(
        "BOOKMARK",
        &format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{meta}}}"#),
    )
}

fn bookmark(revision: u64) -> String {
    bookmark_saying(revision, "null")
}

/// Returns the bookmark that ends a streaming list's initial events at `revision`.
fn end(revision: u64) -> String {
    bookmark_saying(revision, r#"{"k8s.io/initial-events-end":"true"}"#)
}

struct Outcome {
    /// The changes that the store received, one per line.
    heard: String,
    errors: String,
    /// Number of pending requests plus number of response bodies that have not been dropped.
    under_way: usize,
}

/// Runs a reflector for the time `within`, and asserts that its requests equal `asked`.
async fn check(
    answers: impl IntoIterator<Item = Answer>,
    within: Duration,
    asked: Expect,
) -> Outcome {
    check_with(answers, within, |reflector| reflector, asked).await
}

async fn check_with(
    answers: impl IntoIterator<Item = Answer>,
    within: Duration,
    configure: impl FnOnce(ReflectorBuilder<Pod>) -> ReflectorBuilder<Pod>,
    asked: Expect,
) -> Outcome {
    let script = Script::streaming(answers);
    let (send, mut deltas) = mpsc::channel(100);
    let errors = Trace::default();
    let noted = errors.clone();
    let builder = Reflector::builder(script.clone())
        .initial_list(InitialList::Streaming)
        .name("pods")
        .rng_seed(1)
        .on_error(move |error| noted.note(error.to_string()));
    let reflector = configure(builder).into_store(send);
    let _ = timeout(within, reflector.run(std::future::pending())).await;
    asked.assert_eq(&script.log.take());
    let heard = Trace::default();
    while let Ok(delta) = deltas.try_recv() {
        heard.note(show(&delta));
    }
    Outcome {
        heard: heard.take(),
        errors: errors.take(),
        under_way: script.under_way(),
    }
}

fn show(delta: &Delta<Pod>) -> String {
    match &delta.kind {
        DeltaKind::ReplacedAll { objects, revision } => format!("all at {revision}: {objects:?}"),
        DeltaKind::Bookmark { revision } => format!("bookmark {revision}"),
        _ => format!("{:?} {:?}", delta.delta_type(), delta.object().unwrap()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_one_request_and_one_change_and_continues_as_the_watch() {
    let stream = [
        added("a", 3),
        added("b", 2),
        end(5),
        event("MODIFIED", &pod("a", 6)),
        bookmark(7),
    ];
    let outcome = check(
        [hangs(stream.concat())],
        50 * SECOND,
        expect![[r#"
        0.0 s: stream
    "#]],
    )
    .await;
    expect![[r#"
        all at 5: [default/a@3, default/b@2]
        Updated default/a@6
        bookmark 7
    "#]]
    .assert_eq(&outcome.heard);
    assert_eq!(outcome.errors, "");
    assert_eq!(outcome.under_way, 0);
}

#[tokio::test(start_paused = true)]
async fn changes_before_the_end_bookmark_are_applied_and_not_delivered() {
    let stream = [
        added("a", 3),
        added("b", 2),
        event("MODIFIED", &pod("a", 6)),
        event("DELETED", &pod("b", 7)),
        event("MODIFIED", &pod("c", 8)),
        event("DELETED", &pod("d", 9)),
        end(9),
    ];
    let outcome = check(
        [hangs(stream.concat())],
        50 * SECOND,
        expect![[r#"
        0.0 s: stream
    "#]],
    )
    .await;
    expect![[r#"
        all at 9: [default/a@6, default/c@8]
    "#]]
    .assert_eq(&outcome.heard);
}

#[tokio::test(start_paused = true)]
async fn the_store_is_empty_before_the_end_bookmark_and_only_true_marks_the_end() {
    let stream = [
        added("a", 3),
        bookmark_saying(5, r#"{"k8s.io/initial-events-end":"false"}"#),
        bookmark_saying(5, r#"{"k8s.io/initial-events-end":"TRUE"}"#),
        bookmark_saying(5, r#"{"k8s.io/initial-events-end":true}"#),
        bookmark_saying(5, r#"{"other":"true"}"#),
        bookmark_saying(5, "{}"),
        event(
            "ADDED",
            r#"{"metadata":{"name":"x","annotations":{"k8s.io/initial-events-end":"true"}}}"#,
        ),
    ];
    let script = Script::streaming([hangs(stream.concat())]);
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script)
        .initial_list(InitialList::Streaming)
        .into_indexer(writer);
    let status = reflector.status();
    reflector.run(sleep(9 * SECOND)).await;
    let status = status.get();
    assert!(!status.synced);
    assert!(indexer.is_empty());
    assert!(status.revision().is_unset(), "{:?}", status.revision());
    assert!(indexer.snapshot().revision().is_unset());
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_how_many_objects_have_been_streamed() {
    let late = Answer::Body(added("a", 3) + &added("b", 2), Then::Hangs);
    let script = Script::streaming([late]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script)
        .initial_list(InitialList::Streaming)
        .into_indexer(writer);
    let status = reflector.status();
    let look = async {
        sleep(SECOND).await;
        let status = status.get();
        assert_eq!(status.activity(), Activity::Streaming { objects: 2 });
        let told = "not synced, streaming a list (2 objects so far)";
        assert_eq!(status.to_string(), told);
    };
    reflector.run(look).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_watch_is_reopened_and_an_expired_one_is_followed_by_a_streaming_list() {
    let outcome = check(
        [
            Answer::Body(added("a", 2) + &end(3), Then::EndsAfter(2 * SECOND)),
            body(list(3, "", &[])),
            Answer::Body(event("MODIFIED", &pod("a", 4)), Then::EndsAfter(2 * SECOND)),
            hangs(error_event(EXPIRED)),
            hangs(added("a", 9) + &end(10)),
        ],
        50 * SECOND,
        expect![[r#"
            0.0 s: stream
            2.0 s: list resourceVersion=3 resourceVersionMatch=NotOlderThan limit=1
            2.0 s: watch resourceVersion=3
            4.0 s: watch resourceVersion=4
            4.0 s: stream resourceVersion=4
        "#]],
    )
    .await;
    expect![[r#"
        all at 3: [default/a@2]
        Updated default/a@4
        all at 10: [default/a@9]
    "#]]
    .assert_eq(&outcome.heard);
    assert_eq!(outcome.errors, "too old\n");
}

#[tokio::test(start_paused = true)]
async fn any_rejection_except_throttling_and_expiry_falls_back_to_a_list_in_the_same_attempt() {
    let statuses = [
        (400, r#"{"code":400,"reason":"BadRequest","message":"no"}"#),
        (
            401,
            r#"{"code":401,"reason":"Unauthorized","message":"no"}"#,
        ),
        (403, r#"{"code":403,"reason":"Forbidden","message":"no"}"#),
        (404, r#"{"code":404,"reason":"NotFound","message":"no"}"#),
        (
            405,
            r#"{"code":405,"reason":"MethodNotAllowed","message":"no"}"#,
        ),
        (422, r#"{"code":422,"reason":"Invalid","message":"no"}"#),
        (
            500,
            r#"{"code":500,"reason":"InternalError","message":"no"}"#,
        ),
        (503, r#"{"code":503,"message":"no"}"#),
    ];
    for (code, status) in statuses {
        let outcome = check(
            [
                Answer::RefuseWith(code, status),
                body(list(5, "", &[pod("a", 1)])),
            ],
            50 * SECOND,
            expect![[r#"
                0.0 s: stream
                0.0 s: list resourceVersion=0 limit=500
                0.0 s: watch resourceVersion=5
            "#]],
        )
        .await;
        assert_eq!(outcome.heard, "all at 5: [default/a@1]\n", "{code}");
        assert_eq!(outcome.errors, "no\n", "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_streaming_lists_are_retried_without_a_fallback_list() {
    let throttled = || {
        Answer::RefuseWith(
            429,
            r#"{"code":429,"message":"later","details":{"retryAfterSeconds":7}}"#,
        )
    };
    let outcome = check(
        [
            throttled(),
            throttled(),
            Answer::Refuse(Class::ConnectionRefused),
            hangs(end(5)),
        ],
        50 * SECOND,
        expect![[r#"
            0.0 s: stream
            7.0 s: stream
            14.0 s: stream
            19.7 s: stream
        "#]],
    )
    .await;
    assert_eq!(outcome.heard, "all at 5: []\n");
}

#[tokio::test(start_paused = true)]
async fn each_retry_starts_empty_and_the_third_early_end_falls_back_to_a_list() {
    let early = |name| Answer::Body(added(name, 3), Then::EndsAfter(2 * SECOND));
    let outcome = check(
        [
            early("a"),
            Answer::Body(added("b", 3), Then::Breaks(Class::Connection)),
            hangs(added("c", 3) + &end(5)),
        ],
        50 * SECOND,
        expect![[r#"
            0.0 s: stream
            2.0 s: stream
            3.0 s: stream
        "#]],
    )
    .await;
    assert_eq!(outcome.heard, "all at 5: [default/c@3]\n");
    let outcome = check(
        [
            early("a"),
            early("b"),
            early("c"),
            body(list(5, "", &[pod("d", 4)])),
        ],
        50 * SECOND,
        expect![[r#"
            0.0 s: stream
            2.0 s: stream
            5.0 s: stream
            7.0 s: list resourceVersion=0 limit=500
            7.0 s: watch resourceVersion=5
        "#]],
    )
    .await;
    assert_eq!(outcome.heard, "all at 5: [default/d@4]\n");
    let what = "the streaming list closed before the end of the list\n";
    assert_eq!(outcome.errors, what.repeat(3));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_always_expires_is_retried_with_pauses() {
    let expired = || hangs(error_event(EXPIRED));
    check(
        [
            hangs(end(5) + &error_event(EXPIRED)),
            expired(),
            expired(),
            expired(),
            expired(),
            body(list(9, "", &[])),
        ],
        50 * SECOND,
        expect![[r#"
            0.0 s: stream
            0.0 s: stream resourceVersion=5
            0.0 s: stream
            1.4 s: stream
            4.3 s: stream
            4.3 s: list limit=500
            4.3 s: watch resourceVersion=9
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_an_end_bookmark_falls_back_to_a_list_after_ten_seconds_without_a_new_object()
 {
    // An old server ignores the parameter: it sends the existing objects, and then changes without end.
    let mut changes = added("a", 3) + &added("b", 2);
    for revision in 6..40 {
        changes += &event("MODIFIED", &pod("a", revision));
        changes += &bookmark(revision);
    }
    let silent = hangs(added("a", 3));
    for stream in [silent, hangs(changes), hangs(String::new())] {
        let outcome = check(
            [stream, body(list(50, "", &[pod("a", 40)]))],
            50 * SECOND,
            expect![[r#"
                0.0 s: stream
                10.0 s: list resourceVersion=0 limit=500
                10.0 s: watch resourceVersion=50
            "#]],
        )
        .await;
        assert_eq!(outcome.heard, "all at 50: [default/a@40]\n");
        let what = "the streaming list stalled: no new object and no end in time\n";
        assert_eq!(outcome.errors, what);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_streaming_list_times_out_as_a_list_does() {
    check(
        [Answer::Never, hangs(end(5))],
        100 * SECOND,
        expect![[r#"
            0.0 s: stream
            61.2 s: stream
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_streaming_list_or_its_pause_ends_at_once() {
    let answers = || [hangs(added("a", 3)), Answer::Never];
    for within in [SECOND, 15 * SECOND] {
        let script = Script::streaming(answers());
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(script.clone())
            .initial_list(InitialList::Streaming)
            .into_indexer(writer);
        reflector.run(sleep(within)).await;
        assert_eq!(script.under_way(), 0);
    }
    let script = Script::streaming([Answer::Refuse(Class::TooManyRequests)]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone())
        .initial_list(InitialList::Streaming)
        .into_indexer(writer);
    reflector.run(sleep(SECOND / 2)).await;
    assert_eq!(script.requests.len(), 1, "the stop came during the pause");
}

/// A source with scripted lists, and with watches that always have another bookmark ready.
///
/// Before each bookmark, the watch advances the paused clock by one second.
struct Busy(Script);

impl ListerWatcher for Busy {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.0.list(options)
    }

    fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let bookmarks = stream::iter(0..100).then(async |_| {
            tokio::time::advance(SECOND).await;
            Ok(bookmark(5).into())
        });
        async { Ok(bookmarks.boxed().into()) }.boxed()
    }

    fn streams_lists(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_never_silent_fails_at_its_time_limit() {
    let lists = Script::new([]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(Busy(lists.clone()))
        .initial_list(InitialList::Streaming)
        .into_indexer(writer);
    reflector.run(sleep(30 * SECOND)).await;
    assert_eq!(
        lists.log.take(),
        "10.0 s: list resourceVersion=0 limit=500\n"
    );
}
