//! Tests the reflector's state machine with scripts of responses. Each test compares the requests of the
//! state machine with an expected trace.

mod edges;
mod epochs;
mod pages;
mod probe;
mod refusals;
mod streaming;
mod timeouts;
mod unordered;
mod watch_errors;

use expect_test::{Expect, expect};

use super::*;
use crate::transport::ResourceVersionMatch;

fn listing() -> RequestOptions {
    RequestOptions {
        initial_list: Some(InitialList::List),
        ..RequestOptions::default()
    }
}

fn streaming() -> RequestOptions {
    RequestOptions {
        initial_list: Some(InitialList::Streaming),
        ..RequestOptions::default()
    }
}

/// Runs a script of responses, and compares the requests and pauses with `trace`.
///
/// The test clock advances by each pause, and by the seconds in each line `wait SECONDS`.
fn check(config: RequestOptions, script: &str, trace: &Expect) {
    trace.assert_eq(&play_all(config, script));
}

fn play_all(config: RequestOptions, script: &str) -> String {
    let mut machine = Machine::new(config, fastrand::Rng::with_seed(7));
    let mut now = Instant::now();
    let mut lines = vec![show(&machine.start(now))];
    let mut revision = ResourceVersion::UNSET;
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["wait", seconds] = words.as_slice() {
            now += Duration::from_secs(seconds.parse().unwrap());
            continue;
        }
        let Some(action) = play(&mut machine, &words, &revision, now) else {
            continue;
        };
        if let Action::Replace(at) = &action {
            revision = at.clone();
        }
        if let Action::Sleep(pause) = &action {
            now += *pause;
        }
        lines.push(format!("{line}: {}", show(&action)));
    }
    lines.join("\n") + "\n"
}

/// Passes a script line to the machine, and returns the machine's action, if any.
fn play(
    machine: &mut Machine,
    words: &[&str],
    listed: &ResourceVersion,
    now: Instant,
) -> Option<Action> {
    Some(match words {
        ["page", at, token @ ..] => {
            let end = ListEnd {
                resource_version: (*at).into(),
                continue_token: token.first().map(ToString::to_string),
                ..ListEnd::default()
            };
            match machine.page(&end) {
                Ok(action) => action,
                Err(error) => machine.list_failed(&error, now),
            }
        }
        ["replaced"] => machine.replaced(listed.clone(), now),
        ["streamed", at] => match machine.end_in_order(&(*at).into()) {
            Ok(()) => {
                machine.streamed((*at).into(), now);
                return None;
            }
            Err(error) => machine.watch_ended(WatchEnd::Error(&error), now),
        },
        ["overdue"] => machine.watch_ended(WatchEnd::Overdue(&error("timeout")), now),
        ["let-go"] => machine.watch_ended(WatchEnd::StoreFull, now),
        ["probed", at] => match machine.probed(&(*at).into(), now) {
            Ok(action) => action,
            Err(error) => machine.probe_failed(&error, now),
        },
        ["probe-failed", class] => machine.probe_failed(&error(class), now),
        ["list-requested"] => machine.relist_requested(now),
        ["list-failed", class] => machine.list_failed(&error(class), now),
        ["opened"] => {
            machine.watch_opened(now);
            return None;
        }
        ["event", kind, at] => {
            let kind = match *kind {
                "added" => FrameKind::Added,
                "bookmark" => FrameKind::Bookmark,
                _ => FrameKind::Modified,
            };
            machine.observe(&kind, Some((*at).into()));
            return None;
        }
        ["unanswered"] => machine.watch_ended(WatchEnd::Unanswered(&error("timeout")), now),
        ["below", at, cached @ ..] => {
            let cached = cached.first().map(|at| ResourceVersion::from(*at));
            let error = machine.below_last(&(*at).into(), cached.as_ref()).err()?;
            machine.watch_ended(WatchEnd::Error(&error), now)
        }
        ["watch-probed", requested, at] => {
            let probed = machine.watch_probe_answered(&(*requested).into(), &(*at).into(), now);
            machine.probe_failed(&probed.err()?, now)
        }
        ["watch-probe-failed", class] => {
            machine.watch_probe_failed(&error(class), now);
            return None;
        }
        ["unconfirmed"] => machine.watch_ended(WatchEnd::Unconfirmed, now),
        ["refused", class] => machine.watch_ended(WatchEnd::Refused(&error(class)), now),
        ["error", class] => machine.watch_ended(WatchEnd::Error(&error(class)), now),
        ["broken", class] => machine.watch_ended(WatchEnd::Broken(&error(class)), now),
        ["closed", millis] => {
            let open_for = Duration::from_millis(millis.parse().unwrap());
            machine.watch_ended(WatchEnd::Closed(open_for), now)
        }
        ["relist-requested"] => machine.watch_ended(WatchEnd::RelistRequested, now),
        ["slept"] => machine.slept(now),
        other => panic!("unknown line {other:?}"),
    })
}

fn error(class: &str) -> Error {
    let class = match class {
        "expired" => Class::Expired,
        "too-large" => Class::TooLargeResourceVersion,
        "429" => Class::TooManyRequests,
        "429/40s" => {
            let error = Error::new(Class::TooManyRequests, "");
            return error.with_retry_after(Some(Duration::from_secs(40)));
        }
        "500/40s" => {
            let error = Error::new(Class::Server, "");
            return error.with_retry_after(Some(Duration::from_secs(40)));
        }
        "401" | "502" | "503" | "504" => {
            return Error::from_status_body(class.parse().unwrap(), b"");
        }
        "refused" => Class::ConnectionRefused,
        "went-back" => Class::WentBack,
        "reset" => Class::Connection,
        "timeout" => Class::Timeout,
        "403" => Class::Forbidden,
        "422" => Class::Invalid,
        "store" => Class::Store,
        "500" => Class::Server,
        "internal" => Class::Internal,
        "very-short" => Class::VeryShortWatch,
        "garbage" => Class::Protocol,
        other => panic!("unknown class {other:?}"),
    };
    Error::new(class, "")
}

fn show(action: &Action) -> String {
    match action {
        Action::List { options, first } => {
            let page = if *first { "list" } else { "next" };
            query(page, options)
        }
        Action::Probe(options) => query("probe", options),
        Action::Stream(options) => {
            assert!(options.allow_watch_bookmarks);
            assert_eq!(options.send_initial_events, Some(true));
            let not_older = Some(ResourceVersionMatch::NotOlderThan);
            assert_eq!(options.resource_version_match, not_older);
            let timeout = options.timeout_seconds.unwrap();
            assert!((300..=600).contains(&timeout), "{timeout} s");
            format!("stream resourceVersion={}", options.resource_version)
        }
        Action::Replace(revision) => format!("replace at {revision}"),
        Action::Watch(options) => {
            assert!(options.allow_watch_bookmarks);
            let timeout = options.timeout_seconds.unwrap();
            assert!((300..=600).contains(&timeout), "{timeout} s");
            assert_eq!(
                (options.limit, &options.resource_version_match),
                (None, &None)
            );
            format!("watch resourceVersion={}", options.resource_version)
        }
        Action::Sleep(pause) => {
            let range = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 60.0];
            let secs = pause.as_secs_f64();
            let low = range.iter().rev().find(|low| secs >= **low).unwrap_or(&0.0);
            format!("sleep from {low} s")
        }
    }
}

fn query(what: &str, options: &ListOptions) -> String {
    let query: Vec<_> = options
        .query()
        .into_iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    format!("{what} {}", query.join(" ")).trim_end().to_owned()
}

const STARTED: &str = "page 10\nreplaced\nopened\n";

fn after_start(script: &str, trace: &Expect) {
    check(listing(), &format!("{STARTED}{script}"), trace);
}

#[tokio::test(start_paused = true)]
async fn first_list_at_zero_then_watch_from_its_revision() {
    after_start(
        "",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_clean_close_the_next_watch_starts_at_once_from_the_last_event() {
    after_start(
        "event modified 55\nevent bookmark 32\nclosed 700000\nclosed 700000",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            closed 700000: watch resourceVersion=55
            closed 700000: watch resourceVersion=55
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn from_the_second_close_within_a_second_there_is_a_pause() {
    after_start(
        "closed 900\nprobed 10\nclosed 900\nslept\nclosed 900\nslept\nclosed 2000\nclosed 900",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        closed 900: probe resourceVersion=10 resourceVersionMatch=NotOlderThan limit=1
        probed 10: watch resourceVersion=10
        closed 900: sleep from 0.8 s
        slept: watch resourceVersion=10
        closed 900: sleep from 1.6 s
        slept: watch resourceVersion=10
        closed 2000: watch resourceVersion=10
        closed 900: watch resourceVersion=10
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_relists_at_the_last_revision_and_then_at_unset() {
    after_start(
        "event modified 12\nerror expired\nlist-failed expired\npage 30\nreplaced",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error expired: list resourceVersion=12
        list-failed expired: list limit=500
        page 30: replace at 30
        replaced: watch resourceVersion=30
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_relist_request_lists_at_unset_at_once_and_the_next_after_a_pause() {
    after_start(
        "event modified 12\nrelist-requested\npage 30\nreplaced\nrelist-requested\nslept\npage 31\nreplaced\nerror expired",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            relist-requested: list limit=500
            page 30: replace at 30
            replaced: watch resourceVersion=30
            relist-requested: sleep from 0.8 s
            slept: list limit=500
            page 31: replace at 31
            replaced: watch resourceVersion=31
            error expired: sleep from 1.6 s
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_expiry_without_health_backs_off() {
    after_start(
        "error expired\npage 11\nreplaced\nopened\nerror expired\nslept\npage 12\nreplaced\nopened\nwait 120\nerror expired",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error expired: list resourceVersion=10
        page 11: replace at 11
        replaced: watch resourceVersion=11
        error expired: sleep from 0.8 s
        slept: list resourceVersion=11
        page 12: replace at 12
        replaced: watch resourceVersion=12
        error expired: list resourceVersion=12
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_at_an_expired_revision_is_followed_by_one_at_unset() {
    let script = "page 16\nreplaced\nerror expired\npage 16\nreplaced\nopened\nerror expired\nslept\npage 37\nreplaced";
    check(
        listing(),
        script,
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 16: replace at 16
        replaced: watch resourceVersion=16
        error expired: list resourceVersion=16
        page 16: replace at 16
        replaced: watch resourceVersion=16
        error expired: sleep from 0.8 s
        slept: list limit=500
        page 37: replace at 37
        replaced: watch resourceVersion=37
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn synthetic_added_events_of_a_watch_from_zero_do_not_advance_the_revision() {
    check(
        listing(),
        "page 0\nreplaced\nevent added 9\nevent added 7\nclosed 700000\nevent added 9\nevent modified 11\nevent added 12\nclosed 700000",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 0: replace at 0
        replaced: watch resourceVersion=0
        closed 700000: watch resourceVersion=0
        closed 700000: watch resourceVersion=12
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_revision_does_not_change_the_last_revision() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    machine.start(Instant::now());
    machine.replaced(10.into(), Instant::now());
    machine.observe(&FrameKind::Modified, Some(12.into()));
    machine.observe(&FrameKind::Modified, Some("".into()));
    machine.observe(&FrameKind::Modified, None);
    let closed = WatchEnd::Closed(Duration::from_secs(700));
    let action = machine.watch_ended(closed, Instant::now());
    assert_eq!(show(&action), "watch resourceVersion=12");
}
