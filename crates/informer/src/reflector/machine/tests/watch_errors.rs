//! Tests which errors of a watch are followed by another watch, and which errors are followed by a list.

use super::*;

#[tokio::test(start_paused = true)]
async fn throttling_and_refused_connections_watch_again_without_a_list() {
    after_start(
        "refused 429\nslept\nrefused refused\nslept\nprobed 10\nopened\nerror 429\nslept\nbroken reset\nslept\nrefused 429/40s\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        refused 429: sleep from 0.8 s
        slept: watch resourceVersion=10
        refused refused: sleep from 1.6 s
        slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        probed 10: watch resourceVersion=10
        error 429: sleep from 3.2 s
        slept: watch resourceVersion=10
        broken reset: sleep from 6.4 s
        slept: watch resourceVersion=10
        refused 429/40s: sleep from 30 s
        slept: watch resourceVersion=10
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn any_other_rejection_or_error_is_followed_by_a_list_after_a_pause() {
    after_start(
        "refused 500\nslept\npage 11\nreplaced\nerror very-short\nslept\npage 11\nreplaced\nerror garbage\nslept\npage 11\nreplaced\nrefused expired\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        refused 500: sleep from 0.8 s
        slept: list resourceVersion=10
        page 11: replace at 11
        replaced: watch resourceVersion=11
        error very-short: sleep from 1.6 s
        slept: list resourceVersion=11
        page 11: replace at 11
        replaced: watch resourceVersion=11
        error garbage: sleep from 3.2 s
        slept: list resourceVersion=11
        page 11: replace at 11
        replaced: watch resourceVersion=11
        refused expired: sleep from 6.4 s
        slept: list limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn internal_errors_are_followed_by_a_list_unless_a_retry_budget_is_set() {
    after_start(
        "error internal\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error internal: sleep from 0.8 s
        slept: list resourceVersion=10
    "#]],
    );
    let config = RequestOptions {
        internal_error_retry: Some(Duration::from_secs(30)),
        ..listing()
    };
    let script = "error internal\nevent modified 12\nwait 10\nerror internal\nslept\nwait 30\nerror internal\nslept\npage 13\nreplaced\nerror internal\nslept\nrefused internal\nslept";
    check(
        config,
        &format!("{STARTED}{script}"),
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error internal: watch resourceVersion=10
        error internal: sleep from 0.8 s
        slept: watch resourceVersion=12
        error internal: sleep from 1.6 s
        slept: list resourceVersion=12
        page 13: replace at 13
        replaced: watch resourceVersion=13
        error internal: sleep from 3.2 s
        slept: watch resourceVersion=13
        refused internal: sleep from 6.4 s
        slept: list resourceVersion=13
    "#]],
    );
}
