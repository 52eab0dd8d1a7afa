//! Tests the conditions under which the state machine sends a probe: a request that detects whether the
//! server has gone back to an earlier state.
//!
//! Also tests that the maximum time between two watch events applies only after the server has sent a
//! bookmark.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_followed_by_a_probe_and_then_by_the_watch() {
    after_start(
        "broken reset\nslept\nprobed 10\nwait 60\nclosed 700000",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        broken reset: sleep from 0.8 s
        slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        probed 10: watch resourceVersion=10
        closed 700000: watch resourceVersion=10
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_detects_a_rollback_is_followed_by_a_list_at_unset() {
    after_start(
        "broken reset\nslept\nprobe-failed too-large\npage 4\nreplaced",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            broken reset: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probe-failed too-large: list limit=500
            page 4: replace at 4
            replaced: watch resourceVersion=4
        "#]],
    );
    after_start(
        "broken reset\nslept\nprobed 9",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        broken reset: sleep from 0.8 s
        slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        probed 9: list limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_probed_again_and_one_that_rejects_probes_is_watched() {
    after_start(
        "broken reset\nslept\nprobe-failed refused\nslept\nprobe-failed 429\nslept",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            broken reset: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probe-failed refused: sleep from 1.6 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probe-failed 429: sleep from 3.2 s
            slept: watch resourceVersion=10
        "#]],
    );
    after_start(
        "broken reset\nslept\nprobe-failed reset\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        broken reset: sleep from 0.8 s
        slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        probe-failed reset: sleep from 1.6 s
        slept: watch resourceVersion=10
    "#]],
    );
    after_start(
        "broken reset\nslept\nprobe-failed 403",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        broken reset: sleep from 0.8 s
        slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        probe-failed 403: watch resourceVersion=10
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn probes_are_sent_at_most_once_a_minute_and_a_skipped_one_later() {
    after_start(
        "broken reset\nslept\nprobed 10\nbroken reset\nslept\nclosed 700000\nwait 60\nclosed 700000",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            broken reset: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probed 10: watch resourceVersion=10
            broken reset: sleep from 1.6 s
            slept: watch resourceVersion=10
            closed 700000: watch resourceVersion=10
            closed 700000: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_probed_only_if_a_watch_was_open_before() {
    after_start(
        "refused refused\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        refused refused: sleep from 0.8 s
        slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
    "#]],
    );
    check(
        listing(),
        "page 10\nreplaced\nrefused refused\nslept",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            refused refused: sleep from 0.8 s
            slept: watch resourceVersion=10
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_clean_close_throttling_and_a_new_list_require_no_probe() {
    after_start(
        "closed 700000\nrefused 429\nslept\nbroken reset\nwait 60\nrefused expired\npage 20\nreplaced\nclosed 700000",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            closed 700000: watch resourceVersion=10
            refused 429: sleep from 0.8 s
            slept: watch resourceVersion=10
            broken reset: sleep from 1.6 s
            refused expired: list resourceVersion=10
            page 20: replace at 20
            replaced: watch resourceVersion=20
            closed 700000: watch resourceVersion=20
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_store_delayed_resumes_at_once() {
    after_start(
        "event modified 12\nlet-go",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        let-go: watch resourceVersion=12
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn silence_counts_after_the_server_sent_a_regular_bookmark() {
    let mut machine = Machine::new(RequestOptions::default(), fastrand::Rng::with_seed(7));
    let now = Instant::now();
    machine.start(now);
    machine.watch_opened(now);
    let early = Some(&5.into());
    machine.initial_event(&FrameKind::Bookmark, early, false, now);
    machine.streamed(10.into(), now);
    machine.observe(&FrameKind::Modified, Some(11.into()));
    assert_eq!(machine.silence_allowed(), None);
    machine.observe(&FrameKind::Bookmark, Some(12.into()));
    assert_eq!(machine.silence_allowed(), Some(Duration::from_secs(180)));
    machine.watch_ended(WatchEnd::Closed(Duration::from_secs(300)), now);
    assert!(
        machine.silence_allowed().is_some(),
        "the bookmark is remembered"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_resumes_from_a_saved_revision_probes_an_unreachable_server() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let now = Instant::now();
    machine.begin_at(10.into());
    assert_eq!(show(&machine.start(now)), "watch resourceVersion=10");
    let refused = WatchEnd::Refused(&error("refused"));
    let pause = machine.watch_ended(refused, now);
    assert!(matches!(pause, Action::Sleep(_)), "{pause:?}");
    let probe = "probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1";
    assert_eq!(show(&machine.slept(now)), probe);
}

#[tokio::test(start_paused = true)]
async fn a_watch_closed_before_its_timeout_is_followed_by_a_probe() {
    after_start(
        "event modified 12\nclosed 299000\nprobe-failed too-large\npage 4\nreplaced",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            closed 299000: probe resourceVersion=12 resourceVersionMatch=NotOlderThan limit=1
            probe-failed too-large: list limit=500
            page 4: replace at 4
            replaced: watch resourceVersion=4
        "#]],
    );
}

/// Returns the time at which a probe is due in parallel to the open watch; `None` if no probe is required.
fn due(machine: &Machine, now: Instant) -> Option<Instant> {
    machine.watch_probe(now).map(|(due, _)| due)
}

#[tokio::test(start_paused = true)]
async fn a_skipped_or_failed_probe_is_due_during_the_next_watch() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let began = Instant::now();
    machine.begin_at("10".into());
    machine.start(began);
    let lost = || Error::new(Class::Connection, "lost");
    let at = |seconds| began + Duration::from_secs(seconds);

    machine.watch_ended(WatchEnd::Broken(&lost()), began);
    assert!(matches!(machine.slept(at(1)), Action::Probe(_)));
    machine.probed(&"10".into(), at(1)).unwrap();
    assert_eq!(due(&machine, at(1)), None);

    machine.watch_ended(WatchEnd::Broken(&lost()), at(20));
    assert!(matches!(machine.slept(at(22)), Action::Watch(_)));
    assert_eq!(due(&machine, at(22)), Some(at(61)));
    machine.observe(&FrameKind::Modified, Some("12".into()));
    let (_, options) = machine.watch_probe(at(61)).unwrap();
    assert_eq!(
        options.resource_version,
        "12".into(),
        "the last revision at that time"
    );

    let throttled = Error::new(Class::TooManyRequests, "later");
    let throttled = throttled.with_retry_after(Some(Duration::from_secs(90)));
    machine.watch_probe_failed(&throttled, at(61));
    assert_eq!(
        due(&machine, at(61)),
        Some(at(211)),
        "a minute after the requested pause"
    );
    let refused = error("refused");
    machine.watch_probe_failed(&refused, at(211));
    assert!(
        due(&machine, at(211)) >= Some(at(331)),
        "the interval doubles"
    );

    let newer = |machine: &mut Machine, revision: &str| {
        machine.watch_probe_answered(&"12".into(), &revision.into(), at(400))
    };
    machine.observe(&FrameKind::Modified, Some("20".into()));
    let is_unordered = newer(&mut machine, "12").expect("not older than the requested revision");
    assert!(!is_unordered);
    assert_eq!(due(&machine, at(400)), None);
    assert_eq!(
        newer(&mut machine, "11").unwrap_err().class(),
        Class::WentBack
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_after_a_throttled_probe_waits_for_the_pause() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let now = Instant::now();
    machine.begin_at("10".into());
    machine.start(now);
    machine.watch_probe_failed(&error("429/40s"), now);
    let closed = WatchEnd::Closed(Duration::from_secs(700));
    let next = machine.watch_ended(closed, now + Duration::from_secs(10));
    assert_eq!(next, Action::Sleep(Duration::from_secs(30)));
    let next = machine.slept(now + Duration::from_secs(40));
    assert_eq!(show(&next), "watch resourceVersion=10");

    machine.watch_probe_failed(&error("403"), now);
    let next = machine.watch_ended(closed, now + Duration::from_secs(10));
    assert_eq!(
        show(&next),
        "watch resourceVersion=10",
        "a rejected probe is not repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_probe_is_probed_at_growing_intervals_up_to_an_hour() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let began = Instant::now();
    let (mut now, mut probes) = (began, Vec::new());
    machine.begin_at("10".into());
    machine.start(now);
    machine.watch_ended(WatchEnd::Broken(&error("reset")), now);
    while now < began + Duration::from_secs(4 * 3600) {
        probes.push((now - began).as_secs() / 60);
        machine.watch_probe_failed(&Error::new(Class::Timeout, "late"), now);
        now = due(&machine, now).unwrap();
    }
    assert_eq!(probes, [0, 1, 3, 7, 15, 32, 64, 125, 186]);

    // An answered probe shows that the server has recovered.
    machine
        .watch_probe_answered(&"10".into(), &"10".into(), now)
        .unwrap();
    machine.watch_ended(WatchEnd::Broken(&error("reset")), now);
    machine.slept(now);
    assert_eq!(due(&machine, now), Some(now + Duration::from_secs(60)));
}
