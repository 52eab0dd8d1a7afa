//! How a watch ends, and what is asked for then.

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    indexer::{self, Indexers},
    reflector::{BackoffConfig, Reflector},
    transport::Class,
};
use tokio::time::sleep;

use super::{EXPIRED, INTERNAL, breaks, check, check_with, closes, modified, opened};
use crate::script::{Answer, Script, Then, body, error_event, hangs, list, pod};

const THROTTLED: &str = r#"{"kind":"Status","code":429,"reason":"TooManyRequests"}"#;

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_answers_or_that_is_throttled_is_asked_for_again() {
    check(
        [
            body(list(5, "", &[])),
            Answer::Refuse(Class::ConnectionRefused),
            Answer::RefuseWith(429, THROTTLED),
            opened(String::new()),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: watch resourceVersion=5
            4.1 s: watch resourceVersion=5
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn watch_refused_while_the_server_is_away_or_for_its_credentials_is_requested_again() {
    let outcome = check(
        [
            body(list(5, "", &[])),
            Answer::RefuseWith(401, r#"{"code":401,"message":"expired token"}"#),
            Answer::RefuseWith(502, "<html>"),
            Answer::RefuseWith(503, r#"{"code":503,"message":"shutting down"}"#),
            Answer::RefuseWith(504, "upstream timed out"),
            opened(modified("a", 6)),
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
    assert_eq!(
        outcome.errors,
        "expired token\nthe server responded with status 502 and no readable message\nshutting down\nthe server responded with status 504 and no readable message\n"
    );
    assert_eq!(outcome.indexer.snapshot().revision(), 6.into());
}

#[tokio::test(start_paused = true)]
async fn watch_without_response_headers_is_requested_again_after_ninety_seconds_and_then_twice_that()
 {
    let script = Script::new([
        body(list(5, "", &[])),
        Answer::Never,
        Answer::Never,
        opened(modified("a", 6)),
    ]);
    let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone())
        .rng_seed(1)
        .into_indexer(writer);
    reflector.run(sleep(Duration::from_secs(300))).await;
    expect![[r#"
        0.0 s: list resourceVersion=0 limit=500
        0.0 s: watch resourceVersion=5
        91.2 s: watch resourceVersion=5
        274.1 s: watch resourceVersion=5
    "#]]
    .assert_eq(&script.log.take());
    assert_eq!(indexer.snapshot().revision(), 6.into());
}

#[tokio::test(start_paused = true)]
async fn a_watch_refused_for_another_reason_is_listed_after_a_pause() {
    let outcome = check(
        [
            body(list(5, "", &[])),
            Answer::RefuseWith(403, r#"{"code":403,"message":"no"}"#),
            body(list(6, "", &[])),
            Answer::RefuseWith(500, INTERNAL),
            body(list(7, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.2 s: list resourceVersion=5
            1.2 s: watch resourceVersion=6
            4.1 s: list resourceVersion=6
            4.1 s: watch resourceVersion=7
        "#]],
    )
    .await;
    assert_eq!(
        outcome.errors,
        "no\nthe server responded with status 500 and no readable message\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_refused_as_expired_is_listed_at_its_revision_and_then_at_unset() {
    check(
        [
            body(list(5, "", &[])),
            Answer::RefuseWith(410, EXPIRED),
            Answer::RefuseWith(410, EXPIRED),
            body(list(9, "", &[])),
        ],
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            0.0 s: list resourceVersion=5
            0.0 s: list limit=500
            0.0 s: watch resourceVersion=9
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_expires_is_listed_after_at_once_and_the_next_time_after_a_pause() {
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
async fn the_first_expiry_after_an_outage_is_listed_after_at_once_and_the_next_after_a_pause() {
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
async fn an_expiry_after_throttling_is_listed_after_a_pause() {
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
async fn a_watch_throttled_inside_is_asked_for_again_after_a_pause() {
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
async fn an_internal_error_is_listed_after_unless_there_is_a_budget_for_it() {
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
async fn pauses_of_a_minute_between_internal_errors_don_t_make_their_budget_last_for_ever() {
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
async fn a_failed_read_of_the_server_s_store_is_listed_after_whatever_the_budget() {
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
async fn any_other_error_inside_and_a_very_short_watch_are_listed_after_a_pause() {
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
async fn a_watch_that_was_answered_late_is_very_short_by_the_time_of_its_request() {
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
async fn a_transport_that_ends_a_watch_itself_is_obeyed_by_the_class_it_gives() {
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
async fn a_watch_that_has_been_open_for_long_enough_lets_a_list_follow_at_once_again() {
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

#[tokio::test(start_paused = true)]
async fn refused_connections_are_backed_off_from_up_to_the_cap_without_a_list() {
    let script = Script::new(
        std::iter::once(body(list(5, "", &[])))
            .chain((0..40).map(|_| Answer::Refuse(Class::ConnectionRefused))),
    );
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script.clone()).into_indexer(writer);
    let all_asked = async {
        while script.requests.len() < 42 {
            sleep(Duration::from_secs(1)).await;
        }
    };
    reflector.run(all_asked).await;
    let log = script.log.take();
    let times: Vec<f64> = log
        .lines()
        .filter(|line| line.ends_with("watch resourceVersion=5"))
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(times.len(), 41, "{log}");
    let pauses = times.windows(2).map(|two| two[1] - two[0]);
    let mut d = 0.8_f64;
    for pause in pauses {
        assert!(
            (d - 0.1..2.0 * d + 0.1).contains(&pause),
            "{pause} after {d}"
        );
        d = (2.0 * d).min(30.0);
    }
    assert_eq!(log.lines().filter(|line| line.contains("list")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_back_off_of_one_s_own_is_used() {
    let backoff = BackoffConfig {
        initial: Duration::from_secs(1),
        cap: Duration::from_secs(2),
        ..BackoffConfig::default()
    };
    let mut answers = vec![body(list(5, "", &[]))];
    answers.extend((0..6).map(|_| Answer::Refuse(Class::ConnectionRefused)));
    check_with(
        answers,
        |reflector| reflector.backoff(backoff),
        expect![[r#"
            0.0 s: list resourceVersion=0 limit=500
            0.0 s: watch resourceVersion=5
            1.5 s: watch resourceVersion=5
            5.1 s: watch resourceVersion=5
            8.7 s: watch resourceVersion=5
            12.4 s: watch resourceVersion=5
            14.7 s: watch resourceVersion=5
            17.0 s: watch resourceVersion=5
        "#]],
    )
    .await;
}
