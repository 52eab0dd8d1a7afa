//! Tests which request follows a watch that the server does not open: the same watch or a list.

use super::*;
use crate::reflector::TimeoutConfig;

#[tokio::test(start_paused = true)]
async fn a_watch_rejected_while_the_server_is_unavailable_is_retried_after_a_probe() {
    for refused in ["502", "503", "504"] {
        let trace = play_all(
            listing(),
            &format!("{STARTED}event modified 12\nrefused {refused}\nslept\nprobed 12"),
        );
        let expected = format!(
            "list resourceVersion=0 limit=500
page 10: replace at 10
replaced: watch resourceVersion=10
refused {refused}: sleep from 0.8 s
slept: probe resourceVersion=12 resourceVersionMatch=NotOlderThan limit=1
probed 12: watch resourceVersion=12
"
        );
        assert_eq!(trace, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_rejected_for_its_credentials_is_retried_without_a_probe() {
    after_start(
        "refused 401\nslept\nrefused 401\nslept",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            refused 401: sleep from 0.8 s
            slept: watch resourceVersion=10
            refused 401: sleep from 1.6 s
            slept: watch resourceVersion=10
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_rejected_for_ten_minutes_is_followed_by_a_list() {
    let after_minutes = |minutes: u64| {
        let script = format!("{STARTED}refused 503\nwait {}\nrefused 401", 60 * minutes);
        let trace = play_all(listing(), &(script + "\nslept\nprobed 10"));
        trace.lines().nth(4).unwrap().to_owned() + "; " + trace.lines().nth(5).unwrap()
    };
    assert_eq!(
        after_minutes(9),
        "refused 401: sleep from 1.6 s; slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1"
    );
    assert_eq!(
        after_minutes(10),
        "refused 401: sleep from 1.6 s; slept: list resourceVersion=10"
    );
}

#[tokio::test(start_paused = true)]
async fn an_opened_watch_and_an_accepted_list_restart_the_ten_minutes() {
    for success in ["opened", "refused expired\nslept\npage 10\nreplaced"] {
        let script = format!(
            "{STARTED}refused 401\nwait 590\n{success}\nrefused 401\nwait 590\nrefused 401\nslept"
        );
        let trace = play_all(listing(), &script);
        let last = trace.lines().last().unwrap();
        assert_eq!(last, "slept: watch resourceVersion=10", "after {success}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_rejected_as_unavailable_or_unauthorized_is_still_required() {
    for refused in ["401", "502", "503", "504"] {
        let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
        let now = Instant::now();
        machine.begin_at("10".into());
        machine.start(now);
        machine.watch_ended(WatchEnd::Broken(&error("reset")), now);
        assert!(matches!(machine.slept(now), Action::Probe(_)));
        let next = machine.probe_failed(&error(refused), now);
        assert!(matches!(next, Action::Sleep(_)), "{refused}: {next:?}");
        assert!(matches!(machine.slept(now), Action::Watch(_)));
        assert!(machine.requires_probe(), "{refused}");
    }
}

/// Requests watches that receive no response headers. Returns the header timeout of each watch in seconds.
fn header_timeouts(machine: &mut Machine, watches: usize) -> Vec<u64> {
    let now = Instant::now();
    let mut allowed = Vec::new();
    for _ in 0..watches {
        machine.watch();
        allowed.push(machine.headers_allowed().as_secs());
        machine.watch_ended(WatchEnd::Unanswered(&error("timeout")), now);
    }
    allowed
}

#[tokio::test(start_paused = true)]
async fn the_header_timeout_doubles_up_to_the_watch_timeout_and_an_opened_watch_resets_it() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    machine.begin_at("10".into());
    machine.start(Instant::now());
    let allowed = header_timeouts(&mut machine, 5);
    assert_eq!(allowed[..2], [90, 180]);
    assert!((330..=360).contains(&allowed[2]), "{allowed:?}");
    for ends in &allowed[3..] {
        assert!((330..=630).contains(ends), "{allowed:?}");
    }
    machine.replaced(10.into(), Instant::now());
    assert!(
        machine.headers_allowed().as_secs() > 180,
        "a list does not reset the timeout"
    );
    machine.watch_opened(Instant::now());
    assert_eq!(header_timeouts(&mut machine, 2), [90, 180]);
}

#[tokio::test(start_paused = true)]
async fn the_header_timeout_is_limited_for_any_configuration() {
    let allowed = |watch_headers| {
        let timeouts = TimeoutConfig {
            watch_headers,
            ..TimeoutConfig::default()
        };
        let config = RequestOptions {
            timeouts: Some(timeouts),
            ..listing()
        };
        let mut machine = Machine::new(config, fastrand::Rng::with_seed(7));
        machine.watch();
        machine.headers_allowed()
    };
    assert_eq!(allowed(Duration::ZERO), Duration::from_millis(1));
    let most = allowed(Duration::MAX).as_secs();
    assert!((330..=630).contains(&most), "{most}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_headers_is_retried_and_followed_by_a_list_after_a_watch_timeout() {
    after_start(
        "unanswered
         slept
         probed 10
         unanswered
         slept
         unanswered
         slept
         unanswered
         slept",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            unanswered: sleep from 0.8 s
            slept: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
            probed 10: watch resourceVersion=10
            unanswered: sleep from 1.6 s
            slept: watch resourceVersion=10
            unanswered: sleep from 3.2 s
            slept: watch resourceVersion=10
            unanswered: sleep from 6.4 s
            slept: list resourceVersion=10
        "#]],
    );
}
