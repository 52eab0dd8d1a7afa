//! Tests of the requests that a reflector sends after each possible answer of a server.
//!
//! Each row of the tables under "Reflector" in `docs/client-go.md` has one test. The tests use a paused clock
//! and a fixed random seed, so the requests have the same times in every run.

mod refusals;
mod watches;

use std::time::Duration;

use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    indexer::{self, Indexer, Indexers},
    reflector::{Reflector, ReflectorBuilder},
    transport::Class,
};
use tokio::time::timeout;

use crate::{
    script::{Answer, Script, Then, body, error_event, event, hangs, list, pod},
    setting::Trace,
};

const EXPIRED: &str = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
const INTERNAL: &str = r#"{"kind":"Status","code":500,"reason":"InternalError"}"#;
const THROTTLED: &str = r#"{"kind":"Status","code":429,"reason":"TooManyRequests"}"#;

/// Runs a reflector whose source returns `answers`, and asserts that the requests equal `expected`.
async fn check(answers: impl IntoIterator<Item = Answer>, expected: Expect) -> Outcome {
    check_with(answers, |reflector| reflector, expected).await
}

/// The errors that a reflector has reported, and its store after the run.
struct Outcome {
    errors: String,
    indexer: Indexer<Pod>,
}

async fn check_with(
    answers: impl IntoIterator<Item = Answer>,
    configure: impl FnOnce(ReflectorBuilder<Pod>) -> ReflectorBuilder<Pod>,
    expected: Expect,
) -> Outcome {
    let script = Script::new(answers);
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let errors = Trace::default();
    let heard = errors.clone();
    let builder = Reflector::builder(script.clone())
        .name("pods")
        .rng_seed(1)
        .on_error(move |error| heard.note(error.to_string()));
    let reflector = configure(builder).into_indexer(writer);
    let running = reflector.run(std::future::pending());
    // A request after the script hangs, and fails after a minute at the earliest.
    let _ = timeout(Duration::from_secs(50), running).await;
    expected.assert_eq(&script.log.take());
    assert_eq!(
        script.unasked(),
        0,
        "a part of the script was not requested"
    );
    Outcome {
        errors: errors.take(),
        indexer,
    }
}

fn opened(text: String) -> Answer {
    hangs(text)
}

/// Returns the answer to a watch: the server sends `text` and ends the watch after two seconds.
fn closes(text: String) -> Answer {
    Answer::Body(text, Then::EndsAfter(Duration::from_secs(2)))
}

fn breaks(text: String) -> Answer {
    Answer::Body(text, Then::Breaks(Class::Connection))
}

fn modified(name: &str, revision: u64) -> String {
    event("MODIFIED", &pod(name, revision))
}

fn bookmark(revision: u64) -> String {
    let meta = format!(r#"{{"resourceVersion":"{revision}"}}"#);
    event(
        "BOOKMARK",
        &format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{meta}}}"#),
    )
}

// The requested revision.

#[tokio::test(start_paused = true)]
async fn the_first_list_is_at_zero_and_the_watch_starts_at_its_revision() {
    let outcome = check(
        [body(list(5, "", &[pod("a", 3)])), opened(String::new())],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
        "#]],
    )
    .await;
    assert_eq!(outcome.errors, "");
    assert_eq!(format!("{:?}", outcome.indexer.list()), "[default/a@3]");
    let in_namespace = outcome.indexer.index_keys("namespace", "default").unwrap();
    assert_eq!(format!("{in_namespace:?}"), "[default/a]");
}

#[tokio::test(start_paused = true)]
async fn a_relist_is_at_the_revision_of_the_last_event() {
    let events = [modified("a", 32), modified("b", 55)].concat();
    check(
        [
            body(list(5, "", &[])),
            hangs(events + &error_event(INTERNAL)),
            body(list(60, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=55
            1.2 s: watch resourceVersion=60
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn event_older_than_its_object_in_the_cache_is_followed_by_a_list_of_the_newest_state() {
    let outcome = check(
        [
            body(list(5, "", &[])),
            hangs(modified("b", 54) + &modified("a", 55) + &modified("b", 32)),
            body(list(31, "", &[])),
            hangs(modified("b", 32)),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            0.0 s: list limit=500
            0.0 s: watch resourceVersion=31
        "#]],
    )
    .await;
    let what = "the watch sent an object at revision 32, which the cache has at 54: the server was restored from a backup, or is another server";
    assert!(outcome.errors.contains(what), "{}", outcome.errors);
    assert_eq!(outcome.indexer.snapshot().revision(), 32.into());
}

/// The event for pod `a` has the last revision, 55. No event with a lower revision is for pod `a`.
///
/// A revision lower than the cached revision of the same pod would indicate that the server was restored.
#[tokio::test(start_paused = true)]
async fn event_below_the_last_revision_is_applied_and_the_watch_resumes_from_the_last_one() {
    let outcome = check(
        [
            body(list(5, "", &[pod("gone", 3)])),
            closes(
                modified("a", 55)
                    + &modified("b", 32)
                    + &bookmark(33)
                    + &event("DELETED", &pod("gone", 4)),
            ),
            opened(String::new()),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            2.0 s: watch resourceVersion=55
        "#]],
    )
    .await;
    assert_eq!(outcome.errors, "");
    let objects = format!("{:?}", outcome.indexer.list());
    assert_eq!(objects, "[default/a@55, default/b@32]");
    assert_eq!(outcome.indexer.snapshot().revision(), 55.into());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_advance_the_revision_as_events_do() {
    let outcome = check(
        [
            body(list(5, "", &[])),
            closes(bookmark(40)),
            closes(bookmark(42)),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            2.0 s: watch resourceVersion=40
            4.0 s: watch resourceVersion=42
        "#]],
    )
    .await;
    assert_eq!(outcome.errors, "");
    assert_eq!(outcome.indexer.snapshot().revision(), 42.into());
}

/// The reflector ignores the revision of the unknown event.
#[tokio::test(start_paused = true)]
async fn an_event_of_an_unknown_type_is_followed_by_a_relist() {
    let outcome = check(
        [
            body(list(5, "", &[])),
            hangs(modified("a", 40) + &event("REBOOTED", &pod("a", 41))),
            body(list(41, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=40
            1.2 s: watch resourceVersion=41
        "#]],
    )
    .await;
    assert_eq!(
        outcome.errors,
        "unknown type of watch event: \"REBOOTED\"\nthe watch sent an event of unknown type \"REBOOTED\"\n"
    );
    assert_eq!(outcome.indexer.snapshot().revision(), 41.into());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_is_repeated_at_once_at_unset_and_then_after_pauses() {
    let expired = || Answer::RefuseWith(410, EXPIRED);
    check(
        [
            body(list(10, "", &[])),
            hangs(error_event(INTERNAL)),
            expired(),
            expired(),
            expired(),
            body(list(20, "", &[])),
            hangs(error_event(INTERNAL)),
            body(list(30, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=10
            1.2 s: list resourceVersion=10
            1.2 s: list limit=500
            3.2 s: list limit=500
            3.2 s: list limit=500
            3.2 s: watch resourceVersion=20
            6.4 s: list resourceVersion=20
            6.4 s: watch resourceVersion=30
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_too_large_revision_is_dropped_at_once_in_all_three_wire_forms() {
    let forms = [
        r#"{"code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
        r#"{"code":504,"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}}"#,
        r#"{"code":504,"reason":"Timeout","message":"Too large resource version: 40, current: 1"}"#,
    ];
    let mut answers = vec![body(list(20, "", &[]))];
    for (form, revision) in forms.into_iter().zip([30, 40, 50]) {
        answers.push(hangs(error_event(EXPIRED)));
        answers.push(Answer::RefuseWith(504, form));
        answers.push(body(list(revision, "", &[])));
    }
    check(
        answers,
        expect![[r#"
        0.0 s: list resourceVersion=0 limit=500
        0.0 s: watch resourceVersion=20
        0.0 s: list resourceVersion=20
        0.0 s: list limit=500
        0.0 s: watch resourceVersion=30
        1.0 s: list resourceVersion=30
        1.0 s: list limit=500
        1.0 s: watch resourceVersion=40
        2.6 s: list resourceVersion=40
        2.6 s: list limit=500
        2.6 s: watch resourceVersion=50
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_at_revision_zero_is_watched_from_zero() {
    let existing = [event("ADDED", &pod("a", 9)), event("ADDED", &pod("b", 7))];
    check(
        [
            body(list(0, "", &[])),
            closes(existing.concat()),
            closes(existing.concat() + &modified("b", 11)),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=0
            2.0 s: watch resourceVersion=0
            4.0 s: watch resourceVersion=11
        "#]],
    )
    .await;
}

// The page size.

#[tokio::test(start_paused = true)]
async fn relists_are_paged_after_a_list_at_zero_was_paged() {
    let relist = || hangs(error_event(INTERNAL));
    check(
        [
            body(list(5, "t1", &[pod("a", 1)])),
            body(list(5, "", &[pod("b", 2)])),
            relist(),
            body(list(6, "t2", &[pod("a", 1)])),
            body(list(6, "", &[pod("b", 2)])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: list limit=500 continue=t1
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=5 limit=500
            1.2 s: list limit=500 continue=t2
            1.2 s: watch resourceVersion=6
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_paged_list_at_unset_does_not_page_later_relists() {
    check(
        [
            Answer::RefuseWith(410, EXPIRED),
            body(list(5, "t1", &[pod("a", 1)])),
            body(list(5, "", &[pod("b", 2)])),
            hangs(error_event(EXPIRED)),
            body(list(6, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: list limit=500
            0.0 s: list limit=500 continue=t1
            0.0 s: watch resourceVersion=5
            0.0 s: list resourceVersion=5
            0.0 s: watch resourceVersion=6
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_custom_page_size_is_used_at_every_revision() {
    check_with(
        [
            body(list(5, "t1", &[pod("a", 1)])),
            body(list(5, "", &[pod("b", 2)])),
            hangs(error_event(INTERNAL)),
            body(list(6, "", &[])),
            hangs(error_event(EXPIRED)),
            body(list(7, "", &[])),
        ],
        |reflector| reflector.page_size(4),
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=4
            0.0 s: list limit=4 continue=t1
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=5 limit=4
            1.2 s: watch resourceVersion=6
            4.1 s: list limit=4
            4.1 s: watch resourceVersion=7
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_expires_is_followed_by_the_whole_list_at_the_first_page_s_revision() {
    check_with(
        [
            body(list(10, "", &[])),
            hangs(error_event(INTERNAL)),
            body(list(11, "t1", &[pod("gone", 1)])),
            Answer::RefuseWith(410, EXPIRED),
            body(list(12, "", &[pod("a", 2)])),
        ],
        |reflector| reflector.page_size(4),
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=4
            0.0 s: watch resourceVersion=10
            1.2 s: list resourceVersion=10 limit=4
            1.2 s: list limit=4 continue=t1
            1.2 s: list resourceVersion=10
            1.2 s: watch resourceVersion=12
        "#]],
    )
    .await;
}

// Responses to a list that are not a list.

#[tokio::test(start_paused = true)]
async fn a_table_is_rejected_and_listed_again() {
    let table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"rows":[]}"#;
    let outcome = check(
        [body(table.to_owned()), body(list(6, "", &[]))],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            1.3 s: list resourceVersion=0 limit=500
            1.3 s: watch resourceVersion=6
        "#]],
    )
    .await;
    let expected = "the server responded with a Table instead of a list\n";
    assert_eq!(outcome.errors, expected);
}
