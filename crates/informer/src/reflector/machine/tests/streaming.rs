//! Tests which request follows a streaming list. The tests cover each row of the section "Streaming lists" in
//! the documentation of the `machine` module.

use super::*;

fn streams(script: &str, trace: &Expect) {
    check(streaming(), script, trace);
}

#[tokio::test(start_paused = true)]
async fn the_first_streaming_list_is_at_unset_and_the_next_at_the_last_revision() {
    streams(
        "opened\nstreamed 10\nevent modified 12\nerror expired\nopened\nstreamed 20\nclosed 700000",
        &expect![[r#"
            stream resourceVersion=
            error expired: stream resourceVersion=12
            closed 700000: watch resourceVersion=20
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn throttling_and_refused_connections_always_stream_again_after_a_pause() {
    streams(
        "refused 429\nslept\nrefused refused\nslept\nerror 429\nslept\nrefused 429/40s\nslept",
        &expect![[r#"
            stream resourceVersion=
            refused 429: sleep from 0.8 s
            slept: stream resourceVersion=
            refused refused: sleep from 1.6 s
            slept: stream resourceVersion=
            error 429: sleep from 3.2 s
            slept: stream resourceVersion=
            refused 429/40s: sleep from 30 s
            slept: stream resourceVersion=
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_at_an_unknown_revision_is_repeated_once_at_unset_without_a_pause() {
    streams(
        "opened\nstreamed 10\nerror 500\nslept\nrefused too-large\nerror expired\nslept\nrefused expired\nslept\nrefused expired\npage 30\nreplaced",
        &expect![[r#"
            stream resourceVersion=
            error 500: sleep from 0.8 s
            slept: stream resourceVersion=10
            refused too-large: stream resourceVersion=
            error expired: sleep from 1.6 s
            slept: stream resourceVersion=
            refused expired: sleep from 3.2 s
            slept: stream resourceVersion=
            refused expired: list limit=500
            page 30: replace at 30
            replaced: watch resourceVersion=30
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_at_once_and_not_streamed_for_an_hour() {
    streams(
        "refused 422\npage 10\nreplaced\nopened\nwait 3000\nerror expired\npage 11\nreplaced\nopened\nwait 700\nerror expired",
        &expect![[r#"
            stream resourceVersion=
            refused 422: list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            error expired: list resourceVersion=10
            page 11: replace at 11
            replaced: watch resourceVersion=11
            error expired: stream resourceVersion=11
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn any_other_rejection_is_followed_by_a_list_and_streamed_the_next_time() {
    streams(
        "refused 403\nlist-failed 403\nslept\nrefused 500\npage 10\nreplaced\nerror 500\nslept\nerror garbage\npage 12\nreplaced\nerror 500\nslept",
        &expect![[r#"
            stream resourceVersion=
            refused 403: list resourceVersion=0 limit=500
            list-failed 403: sleep from 0.8 s
            slept: stream resourceVersion=
            refused 500: list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            error 500: sleep from 1.6 s
            slept: stream resourceVersion=10
            error garbage: list resourceVersion=10
            page 12: replace at 12
            replaced: watch resourceVersion=12
            error 500: sleep from 3.2 s
            slept: stream resourceVersion=12
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_three_times_in_a_row_is_replaced_by_a_list() {
    streams(
        "closed 5000\nclosed 10\nslept\nerror very-short\npage 10\nreplaced\nerror 500\nslept",
        &expect![[r#"
            stream resourceVersion=
            closed 5000: stream resourceVersion=
            closed 10: sleep from 0.8 s
            slept: stream resourceVersion=
            error very-short: list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            error 500: sleep from 1.6 s
            slept: list resourceVersion=10
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_retried_after_a_pause_and_a_completed_one_clears_the_count() {
    streams(
        "broken reset\nslept\nrefused timeout\nslept\nopened\nstreamed 10\nerror 500\nslept\nbroken reset\nslept\nbroken reset\nslept\nbroken reset",
        &expect![[r#"
            stream resourceVersion=
            broken reset: sleep from 0.8 s
            slept: stream resourceVersion=
            refused timeout: sleep from 1.6 s
            slept: stream resourceVersion=
            error 500: sleep from 3.2 s
            slept: stream resourceVersion=10
            broken reset: sleep from 6.4 s
            slept: stream resourceVersion=10
            broken reset: sleep from 12.8 s
            slept: stream resourceVersion=10
            broken reset: list resourceVersion=10
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_an_end_is_replaced_by_a_list_at_once_and_not_streamed_for_an_hour() {
    streams(
        "opened\noverdue\npage 10\nreplaced\nerror 500\nslept",
        &expect![[r#"
            stream resourceVersion=
            overdue: list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            error 500: sleep from 0.8 s
            slept: list resourceVersion=10
        "#]],
    );
    streams(
        "opened\nclosed 700000",
        &expect![[r#"
        stream resourceVersion=
        closed 700000: list resourceVersion=0 limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_older_than_the_requested_revision_is_rejected() {
    streams(
        "opened\nstreamed 10\nerror 500\nslept\nopened\nstreamed 9\nopened\nstreamed 9\nclosed 700000",
        &expect![[r#"
            stream resourceVersion=
            error 500: sleep from 0.8 s
            slept: stream resourceVersion=10
            streamed 9: stream resourceVersion=
            closed 700000: watch resourceVersion=9
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_rejected_by_the_store_at_its_end_is_requested_again_after_a_pause() {
    streams(
        "opened\nerror store\nslept",
        &expect![[r#"
        stream resourceVersion=
        error store: sleep from 0.8 s
        slept: stream resourceVersion=
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_open_streaming_list_does_not_count_as_health_before_its_end() {
    streams(
        "broken reset\nslept\nopened\nwait 200\nbroken reset",
        &expect![[r#"
            stream resourceVersion=
            broken reset: sleep from 0.8 s
            slept: stream resourceVersion=
            broken reset: sleep from 1.6 s
        "#]],
    );
}

/// Passes events of a streaming list to the state machine, and returns the deadline of the list.
///
/// The server must send the bookmark that ends the list before the deadline. The deadline is in seconds after
/// the response headers. Each element of `events` contains the seconds since the previous event, the type,
/// the revision, and whether the object is new in the list.
fn deadline(events: &[(u64, FrameKind, &str, bool)]) -> f64 {
    let mut machine = Machine::new(streaming(), fastrand::Rng::with_seed(7));
    let requested = Instant::now();
    machine.start(requested);
    let answered = requested + Duration::from_secs(5);
    machine.watch_opened(answered);
    let mut now = answered;
    for (after, kind, revision, is_new) in events {
        now += Duration::from_secs(*after);
        machine.initial_event(kind, Some(&(*revision).into()), *is_new, now);
    }
    let deadline = machine.initial_events_deadline().unwrap();
    deadline.duration_since(answered).as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn only_new_objects_that_may_be_part_of_the_list_count_as_progress() {
    use FrameKind::{Added, Bookmark, Deleted, Modified};

    let cases = [
        (vec![], 10.0),
        (vec![(3, Added, "5", true), (3, Added, "4", true)], 16.0),
        (vec![(3, Added, "5", true), (3, Added, "5", false)], 13.0),
        (vec![(3, Bookmark, "5", false)], 10.0),
        (vec![(3, Added, "5", true), (3, Modified, "6", false)], 13.0),
        (vec![(3, Added, "5", true), (3, Deleted, "6", false)], 13.0),
        // An object at revision 4 existed before the change at 6. An object at revision 7 may be created
        // later.
        (vec![(3, Modified, "6", false), (3, Added, "4", true)], 16.0),
        (vec![(3, Modified, "6", false), (3, Added, "7", true)], 10.0),
        (vec![(3, Bookmark, "6", false), (3, Added, "7", true)], 10.0),
        // Objects whose revisions are not comparable may be part of the list.
        (vec![(3, Modified, "b", false), (3, Added, "a", true)], 16.0),
    ];
    for (events, expected) in cases {
        let waited = deadline(&events);
        assert!((waited - expected).abs() < 0.01, "{waited}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_temporarily_rejected_streaming_list_is_retried_before_a_list() {
    streams(
        "refused 500/40s\nslept\nrefused 500",
        &expect![[r#"
            stream resourceVersion=
            refused 500/40s: sleep from 30 s
            slept: stream resourceVersion=
            refused 500: list resourceVersion=0 limit=500
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_relist_request_at_the_end_of_a_list_repeats_it_at_unset_and_keeps_streaming() {
    check(
        streaming(),
        "streamed 10\nerror expired\nrelist-requested\nslept\nstreamed 12",
        &expect![[r#"
            stream resourceVersion=
            error expired: stream resourceVersion=10
            relist-requested: sleep from 0.8 s
            slept: stream resourceVersion=
        "#]],
    );
    after_start(
        "error expired\nlist-requested\nslept\npage 12\nreplaced",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            error expired: list resourceVersion=10
            list-requested: sleep from 0.8 s
            slept: list limit=500
            page 12: replace at 12
            replaced: watch resourceVersion=12
        "#]],
    );
}
