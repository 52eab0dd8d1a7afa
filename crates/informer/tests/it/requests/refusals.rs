//! Tests of a reflector's next request after a watch that the server rejects or does not answer.

use std::time::Duration;

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    indexer::{self, Indexers},
    reflector::{BackoffConfig, Reflector},
    transport::Class,
};
use tokio::time::sleep;

use super::{EXPIRED, INTERNAL, THROTTLED, check, check_with, modified, opened};
use crate::script::{Answer, Script, body, list};

#[tokio::test(start_paused = true)]
async fn an_unanswered_or_throttled_watch_is_requested_again() {
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
async fn a_watch_rejected_for_an_unavailable_server_or_its_credentials_is_requested_again() {
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
async fn a_watch_without_response_headers_is_requested_again_after_90_and_then_180_seconds() {
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
async fn a_watch_rejected_for_another_reason_is_followed_by_a_list_after_a_pause() {
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
async fn a_watch_rejected_as_expired_is_followed_by_a_list_at_its_revision_and_then_at_unset() {
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
async fn refused_connections_are_retried_with_back_off_up_to_the_cap_without_a_list() {
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
async fn a_custom_back_off_is_used() {
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
