//! When it is asked whether the server has gone back, and when a watch counts as silent.

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
async fn a_server_that_has_gone_back_is_asked_for_everything_at_once() {
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
async fn a_server_that_is_away_is_probed_again_and_one_that_can_not_be_asked_is_watched() {
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
async fn it_is_probed_once_a_minute_at_most_and_then_made_up_for() {
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
async fn a_server_that_nobody_reaches_is_probed_if_it_was_watched_before() {
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
async fn a_clean_close_throttling_and_a_new_list_need_no_probe() {
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
async fn a_watch_that_the_store_held_up_goes_on_at_once() {
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
async fn silence_counts_once_a_server_has_sent_a_bookmark_of_its_own_accord() {
    let mut machine = Machine::new(MachineConfig::default(), fastrand::Rng::with_seed(7));
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
    assert!(machine.silence_allowed().is_some(), "it is remembered");
}

#[tokio::test(start_paused = true)]
async fn who_goes_on_from_what_was_saved_probes_a_server_that_was_away() {
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
async fn a_watch_that_is_closed_before_its_time_is_followed_by_a_probe() {
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

#[tokio::test(start_paused = true)]
async fn a_probe_that_came_too_early_or_was_put_off_is_due_when_the_minute_is_over() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let began = Instant::now();
    machine.begin_at("10".into());
    machine.start(began);
    let lost = || Error::new(Class::Connection, "lost");
    let at = |seconds| began + Duration::from_secs(seconds);

    machine.watch_ended(WatchEnd::Broken(&lost()), began);
    assert!(matches!(machine.slept(at(1)), Action::Probe(_)));
    machine.probed(&"10".into(), at(1)).unwrap();
    assert_eq!(machine.probe_due(), None);

    machine.watch_ended(WatchEnd::Broken(&lost()), at(20));
    assert!(matches!(machine.slept(at(22)), Action::Watch(_)));
    assert_eq!(machine.probe_due(), Some(at(61)));
    let after = machine.watch_ended(WatchEnd::LetGo, at(61));
    assert!(matches!(after, Action::Probe(_)), "{after:?}");

    let throttled = Error::new(Class::TooManyRequests, "later");
    let throttled = throttled.with_retry_after(Some(Duration::from_secs(90)));
    let pause = machine.probe_failed(&throttled, at(61));
    assert_eq!(pause, Action::Sleep(Duration::from_secs(90)));
    assert!(matches!(machine.slept(at(151)), Action::Watch(_)));
    assert_eq!(
        machine.probe_due(),
        Some(at(211)),
        "the watch has its minute"
    );
    machine.watch_ended(WatchEnd::LetGo, at(211));
    machine.probed(&"10".into(), at(211)).unwrap();
    assert_eq!(machine.probe_due(), None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_watches_and_no_probes_is_watched_nearly_all_the_time() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    let began = Instant::now();
    let (mut now, mut watched, mut probes) = (began, Duration::ZERO, Vec::new());
    machine.begin_at("10".into());
    let mut action = machine.start(now);
    let lost = Error::new(Class::Connection, "lost");
    action = match action {
        Action::Watch(_) => machine.watch_ended(WatchEnd::Broken(&lost), now),
        other => other,
    };
    while now < began + Duration::from_secs(4 * 3600) {
        action = match action {
            Action::Sleep(pause) => {
                now += pause;
                machine.slept(now)
            }
            Action::Probe(_) => {
                probes.push((now - began).as_secs() / 60);
                now += Duration::from_secs(60);
                machine.probe_failed(&Error::new(Class::Timeout, "late"), now)
            }
            Action::Watch(_) => {
                machine.watch_opened(now);
                let due = machine.probe_due().unwrap();
                watched += due - now;
                now = due;
                machine.watch_ended(WatchEnd::LetGo, now)
            }
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(probes, [0, 2, 5, 10, 19, 36, 69, 130, 191]);
    assert!(watched > (now - began).mul_f64(0.95), "{watched:?}");

    // One that is answered says that the server has recovered.
    let Action::Probe(_) = action else {
        panic!("{action:?}");
    };
    machine.probed(&"10".into(), now).unwrap();
    machine.watch_ended(WatchEnd::Broken(&lost), now);
    machine.slept(now);
    assert_eq!(machine.probe_due(), Some(now + Duration::from_secs(60)));
}
