//! Tests of a reflector's next request after the end of a watch that the server had accepted.

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    indexer::{self, Indexers},
    reflector::{BackoffConfig, Reflector},
    transport::Class,
};
use tokio::time::sleep;

use super::{EXPIRED, INTERNAL, THROTTLED, breaks, check, check_with, closes, modified, opened};
use crate::script::{Answer, Script, Then, body, error_event, hangs, list, pod};

#[tokio::test(start_paused = true)]
async fn an_expired_watch_is_followed_by_a_list_at_once_and_the_next_time_after_a_pause() {
    let outcome = check(
        [
            body(list(5, "", &[])),
            hangs(error_event(EXPIRED)),
            body(list(9, "", &[])),
            hangs(error_event(EXPIRED)),
            body(list(11, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            0.0 s: list resourceVersion=5
            0.0 s: watch resourceVersion=9
            1.0 s: list resourceVersion=9
            1.0 s: watch resourceVersion=11
        "#]],
    )
    .await;
    assert_eq!(outcome.errors, "too old\ntoo old\n");
}

#[tokio::test(start_paused = true)]
async fn the_first_expiry_after_an_outage_is_followed_by_a_list_at_once_and_the_next_after_a_pause()
{
    check(
        [
            body(list(5, "", &[])),
            breaks(String::new()),
            Answer::Refuse(Class::ConnectionRefused),
            hangs(error_event(EXPIRED)),
            body(list(9, "", &[])),
            hangs(error_event(EXPIRED)),
            body(list(11, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: watch resourceVersion=5
            4.1 s: watch resourceVersion=5
            4.1 s: list resourceVersion=5
            4.1 s: watch resourceVersion=9
            9.7 s: list resourceVersion=9
            9.7 s: watch resourceVersion=11
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_expiry_after_throttling_is_followed_by_a_list_after_a_pause() {
    check(
        [
            body(list(5, "", &[])),
            Answer::RefuseWith(429, THROTTLED),
            hangs(error_event(EXPIRED)),
            body(list(9, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: watch resourceVersion=5
            4.1 s: list resourceVersion=5
            4.1 s: watch resourceVersion=9
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_a_throttling_error_event_is_requested_again_after_a_pause() {
    let throttled = || hangs(error_event(THROTTLED));
    check(
        [
            body(list(5, "", &[])),
            throttled(),
            throttled(),
            throttled(),
            throttled(),
            opened(String::new()),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: watch resourceVersion=5
            4.1 s: watch resourceVersion=5
            9.8 s: watch resourceVersion=5
            21.6 s: watch resourceVersion=5
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_internal_error_is_followed_by_a_list_unless_a_retry_budget_is_set() {
    let script = || {
        [
            body(list(5, "", &[])),
            hangs(modified("a", 6) + &error_event(INTERNAL)),
        ]
    };
    let mut answers: Vec<_> = script().into();
    answers.push(body(list(7, "", &[])));
    check(
        answers,
        expect![[r#"
        0.0 s: list resourceVersion=0 limit=500
        0.0 s: watch resourceVersion=5
        1.2 s: list resourceVersion=6
        1.2 s: watch resourceVersion=7
    "#]],
    )
    .await;

    let mut answers: Vec<_> = script().into();
    answers.extend((0..3).map(|_| hangs(error_event(INTERNAL))));
    answers.push(body(list(7, "", &[])));
    check_with(
        answers,
        |reflector| reflector.internal_error_retry(Duration::from_secs(2)),
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            0.0 s: watch resourceVersion=6
            1.0 s: watch resourceVersion=6
            2.6 s: watch resourceVersion=6
            8.3 s: list resourceVersion=6
            8.3 s: watch resourceVersion=7
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_retry_budget_of_internal_errors_ends_with_pauses_of_a_minute() {
    let minute = Duration::from_secs(60);
    let mut answers = vec![body(list(5, "", &[]))];
    answers.extend((0..9).map(|_| hangs(error_event(INTERNAL))));
    let script = Script::new(answers);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone())
        .rng_seed(1)
        .backoff(BackoffConfig {
            initial: minute,
            cap: minute,
            ..BackoffConfig::default()
        })
        .internal_error_retry(2 * minute)
        .into_indexer(writer);
    reflector.run(sleep(5 * minute)).await;
    expect![[r#"
        0.0 s: list resourceVersion=0 limit=500
        0.0 s: watch resourceVersion=5
        0.0 s: watch resourceVersion=5
        74.4 s: watch resourceVersion=5
        135.0 s: watch resourceVersion=5
        241.1 s: list resourceVersion=5
    "#]]
    .assert_eq(&script.log.take());
}

#[tokio::test(start_paused = true)]
async fn a_store_read_error_is_followed_by_a_list_with_any_retry_budget() {
    let unreadable = r#"{"code":500,"reason":"StoreReadError","message":"corrupt"}"#;
    let outcome = check_with(
        [
            body(list(5, "", &[pod("corrupt", 1), pod("kept", 2)])),
            hangs(error_event(unreadable)),
            body(list(7, "", &[pod("kept", 2)])),
        ],
        |reflector| reflector.internal_error_retry(Duration::from_secs(9)),
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=5
            1.2 s: watch resourceVersion=7
        "#]],
    )
    .await;
    assert_eq!(format!("{:?}", outcome.indexer.list()), "[default/kept@2]");
}

#[tokio::test(start_paused = true)]
async fn another_error_event_and_a_very_short_watch_are_followed_by_a_list_after_a_pause() {
    let other = r#"{"code":503,"reason":"ServiceUnavailable","message":"later"}"#;
    let outcome = check(
        [
            body(list(5, "", &[])),
            hangs(error_event(other)),
            body(list(6, "", &[])),
            body(String::new()),
            body(list(7, "", &[])),
            hangs("<html>".to_owned()),
            body(list(8, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=5
            1.2 s: watch resourceVersion=6
            4.1 s: list resourceVersion=6
            4.1 s: watch resourceVersion=7
            9.8 s: list resourceVersion=7
            9.8 s: watch resourceVersion=8
        "#]],
    )
    .await;
    expect![[r#"
        later
        very short watch: closed within a second without an event
        the watch sent data that is not a watch event
    "#]]
    .assert_eq(&outcome.errors);
}

#[tokio::test(start_paused = true)]
async fn a_very_short_watch_is_measured_from_its_request() {
    let late = Answer::Body(String::new(), Then::EndsAfter(Duration::from_millis(999)));
    let in_time = Answer::Body(String::new(), Then::EndsAfter(Duration::from_secs(1)));
    check(
        [
            body(list(5, "", &[])),
            in_time,
            late,
            body(list(6, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.0 s: watch resourceVersion=5
            3.0 s: list resourceVersion=5
            3.0 s: watch resourceVersion=6
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_clean_close_is_followed_by_a_watch_at_once() {
    check(
        [
            body(list(5, "", &[])),
            closes(modified("a", 6)),
            closes(String::new()),
            closes(modified("a", 8)),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            2.0 s: watch resourceVersion=6
            4.0 s: watch resourceVersion=6
            6.0 s: watch resourceVersion=8
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_followed_by_a_watch_from_the_last_event_after_a_pause() {
    check(
        [
            body(list(5, "", &[])),
            breaks(modified("a", 6)),
            breaks(modified("a", 7)),
            opened(String::new()),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: watch resourceVersion=6
            4.1 s: watch resourceVersion=7
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_error_class_of_the_transport_decides_what_follows_a_watch() {
    let ends = |class| Answer::Body(String::new(), Then::Breaks(class));
    check(
        [
            body(list(5, "", &[])),
            ends(Class::Expired),
            body(list(6, "", &[])),
            ends(Class::Protocol),
            body(list(7, "", &[])),
            ends(Class::Timeout),
            opened(String::new()),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            0.0 s: list resourceVersion=5
            0.0 s: watch resourceVersion=6
            1.0 s: list resourceVersion=6
            1.0 s: watch resourceVersion=7
            2.6 s: watch resourceVersion=7
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_open_long_enough_resets_the_pause_before_a_list() {
    let backoff = BackoffConfig {
        reset_after: Duration::from_secs(10),
        ..BackoffConfig::default()
    };
    check_with(
        [
            body(list(5, "", &[])),
            breaks(String::new()),
            Answer::Body(String::new(), Then::EndsAfter(Duration::from_secs(10))),
            hangs(error_event(EXPIRED)),
            body(list(6, "", &[])),
        ],
        |reflector| reflector.backoff(backoff),
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: watch resourceVersion=5
            11.2 s: watch resourceVersion=5
            11.2 s: list resourceVersion=5
            11.2 s: watch resourceVersion=6
        "#]],
    )
    .await;
}
