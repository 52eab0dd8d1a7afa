//! Tests edge cases of the state machine: resets of the backoff, short watches, rejected watches, a page size
//! of zero, and the reported number of pages and last revision.

use super::*;

#[tokio::test(start_paused = true)]
async fn two_minutes_of_an_open_watch_reset_the_pauses_and_two_minutes_without_one_do_not() {
    after_start(
        "broken reset
         slept
         opened
         wait 119
         broken reset
         slept
         opened
         wait 120
         broken reset
         slept
         wait 120
         broken reset",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            broken reset: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            broken reset: sleep from 1.6 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            broken reset: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            broken reset: sleep from 1.6 s
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_reports_the_pages_of_its_list_and_the_last_revision() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let reported = |machine: &Machine| (machine.pages(), machine.last_revision().to_string());
    machine.start(Instant::now());
    assert_eq!(reported(&machine), (0, String::new()));
    for (pages, token) in [(1, Some("t1")), (2, Some("t2")), (3, None)] {
        let end = ListEnd {
            resource_version: "10".to_owned(),
            continue_token: token.map(str::to_owned),
            ..ListEnd::default()
        };
        machine.page(&end).unwrap();
        assert_eq!(reported(&machine), (pages, String::new()));
    }
    machine.replaced(10.into(), Instant::now());
    assert_eq!(reported(&machine), (0, "10".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_rejected_as_expired_is_followed_by_a_list_at_once() {
    after_start(
        "refused expired
         page 20
         replaced
         refused expired",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            refused expired: list resourceVersion=10
            page 20: replace at 20
            replaced: watch resourceVersion=20
            refused expired: sleep from 0.8 s
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn only_consecutive_watches_of_less_than_a_second_count_as_short() {
    after_start(
        "closed 1000
         probed 10
         closed 999
         closed 1000
         closed 999
         closed 999",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            closed 1000: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probed 10: watch resourceVersion=10
            closed 999: watch resourceVersion=10
            closed 1000: watch resourceVersion=10
            closed 999: watch resourceVersion=10
            closed 999: sleep from 0.8 s
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_configured_page_size_of_zero_sends_no_limit() {
    let config = RequestOptions {
        page_size: Some(0),
        ..listing()
    };
    let trace = expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
    "#]];
    check(config, "page 10", &trace);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_response_or_with_a_temporary_rejection_is_retried_without_a_list() {
    after_start(
        "refused reset
         slept
         probed 10
         refused 500/40s
         slept
         refused 500
         slept",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            refused reset: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probed 10: watch resourceVersion=10
            refused 500/40s: sleep from 30 s
            slept: watch resourceVersion=10
            refused 500: sleep from 3.2 s
            slept: list resourceVersion=10
        "#]],
    );
}
