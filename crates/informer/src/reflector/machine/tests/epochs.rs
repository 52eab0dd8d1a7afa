//! Tests that the reflector's state machine begins a new epoch if the server has, or may have, gone back to
//! an earlier state. An epoch is the time between two such rollbacks.

use super::*;
use crate::object::Epoch;

#[derive(Debug, PartialEq)]
enum Noticed {
    Nothing,
    Suspicion,
    Rollback,
}

/// Passes the events in `script`, one per line, to a state machine. Returns whether the state machine
/// detected a rollback of the server, suspected one, or neither.
///
/// Asserts that a newer list after these events is not taken for another rollback.
fn noticed(config: RequestOptions, script: &str) -> Noticed {
    let mut machine = Machine::new(config, fastrand::Rng::with_seed(7));
    let mut now = Instant::now();
    machine.start(now);
    let mut revision = ResourceVersion::UNSET;
    let before = machine.epoch();
    for line in script.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["listed", at] = words.as_slice() {
            machine.listed(&(*at).into());
        }
        let played = match words.as_slice() {
            ["wait", seconds] => {
                now += Duration::from_secs(seconds.parse().unwrap());
                None
            }
            ["listed", at] => {
                revision = (*at).into();
                play(&mut machine, &["replaced"], &revision, now)
            }
            _ => play(&mut machine, &words, &revision, now),
        };
        if let Some(Action::Sleep(pause)) = played {
            now += pause;
        }
    }
    let after = machine.epoch();
    assert_eq!(machine.last_revision().epoch(), after, "{script}");
    machine.listed(&"1000".into());
    machine.replaced("1000".into(), now);
    assert_eq!(machine.epoch(), after, "after another list: {script}");
    if after.rolled_back_since(before) {
        Noticed::Rollback
    } else if after == before {
        Noticed::Nothing
    } else {
        Noticed::Suspicion
    }
}

#[tokio::test(start_paused = true)]
async fn a_detected_or_suspected_rollback_starts_a_new_epoch() {
    use Noticed::{Nothing, Rollback, Suspicion};

    for (script, expected) in [
        ("listed 10\nopened\nclosed 700000", Nothing),
        ("listed 10\nopened\nerror expired\nlisted 12", Nothing),
        ("listed 10\nopened\nbroken reset\nslept\nprobed 12", Nothing),
        ("listed 10\nlist-failed expired\nlisted 10", Nothing),
        (
            "listed 10\nopened\nerror expired\nlist-requested\nlisted 12",
            Suspicion,
        ),
        ("listed 10\nlisted 9", Rollback),
        ("listed 10\nlist-failed too-large\nlisted 12", Nothing),
        (
            "listed 10
opened
refused too-large
slept
listed 12",
            Nothing,
        ),
        ("listed 10\nopened\nerror went-back\nlisted 12", Rollback),
        ("listed 10\nopened\nrelist-requested\nlisted 12", Suspicion),
        (
            "listed 10\nopened\nbroken reset\nslept\nprobed 9\nlisted 12",
            Rollback,
        ),
        (
            "listed 10
opened
broken reset
slept
probe-failed too-large
listed 12",
            Nothing,
        ),
        (
            "listed 10\nopened\nbroken reset\nslept\nprobe-failed too-large\nlisted 9",
            Rollback,
        ),
        (
            "listed 10\nopened\nrelist-requested\nlist-failed 500\nslept\nlist-failed 500\nslept\nlisted 12",
            Suspicion,
        ),
    ] {
        assert_eq!(noticed(listing(), script), expected, "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_of_a_streaming_source_starts_a_new_epoch() {
    use Noticed::{Nothing, Rollback, Suspicion};

    for (script, expected) in [
        (
            "streamed 10\nclosed 700000\nerror expired\nstreamed 12",
            Nothing,
        ),
        (
            "streamed 10\nerror expired\nstreamed 9\nlisted 12",
            Rollback,
        ),
        (
            "streamed 10
error expired
refused too-large
listed 12",
            Nothing,
        ),
        (
            "streamed 10\nerror expired\nerror too-large\nlisted 9",
            Rollback,
        ),
        ("streamed 10\nerror went-back\nlisted 12", Rollback),
        (
            "streamed 10\nerror expired\nrelist-requested\nlisted 12",
            Suspicion,
        ),
    ] {
        let config = RequestOptions::default();
        assert_eq!(noticed(config, script), expected, "{script}");
    }
}

#[test]
fn a_second_run_suspects_a_rollback_since_the_first() {
    let machine = || Machine::new(listing(), fastrand::Rng::with_seed(7));
    let known = Epoch::FIRST.after_rollback(Epoch::FIRST);
    let mut second = machine();
    second.not_before(ResourceVersion::from(5).in_epoch(known));
    assert_ne!(second.epoch(), known);
    assert!(!second.epoch().rolled_back_since(known));

    let mut first = machine();
    first.not_before(ResourceVersion::UNSET);
    assert_eq!(first.epoch(), Epoch::FIRST, "no earlier revision is known");
    first.not_before("5".into());
    first.begin_at("5".into());
    assert_eq!(
        first.epoch(),
        Epoch::FIRST,
        "the run resumes from that revision"
    );
}

#[test]
fn the_last_revision_has_the_epoch_of_the_last_event() {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    machine.begin_at("5".into());
    machine.suspect();
    machine.replaced("6".into(), Instant::now());
    machine.observe(&FrameKind::Modified, Some("7".into()));
    assert_eq!(machine.last_revision().epoch(), machine.epoch());
    assert_ne!(machine.epoch(), Epoch::FIRST);
}
