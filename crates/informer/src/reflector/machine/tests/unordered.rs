//! Tests watch events that are older than the newest revision that the store has accepted.
//!
//! If the cache has a newer state of the event's object, the server has gone back to an earlier state.
//! Otherwise, the reflector sends a probe, which shows whether the server has gone back. After each list, the
//! reflector sends a probe only for the first such event.

use super::*;
use crate::object::Epoch;

fn watching() -> Machine {
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    machine.start(Instant::now());
    machine.replaced("10".into(), Instant::now());
    machine.watch_opened(Instant::now());
    machine
}

fn lists_again(machine: &mut Machine) {
    machine.listed(&"20".into());
    machine.replaced("20".into(), Instant::now());
    machine.watch_opened(Instant::now());
}

#[test]
fn the_revision_to_resume_from_never_decreases() {
    let mut machine = watching();
    for (kind, revision, expected) in [
        (FrameKind::Modified, "12", "12"),
        (FrameKind::Added, "3", "12"),
        (FrameKind::Bookmark, "4", "12"),
        (FrameKind::Deleted, "5", "12"),
        (FrameKind::Modified, "13", "13"),
        // A revision that is not comparable is accepted as the last one.
        (FrameKind::Modified, "x", "x"),
        (FrameKind::Modified, "3", "3"),
    ] {
        machine.observe(&kind, Some(revision.into()));
        assert_eq!(
            machine.last_revision(),
            &expected.into(),
            "after {revision}"
        );
    }
}

#[test]
fn only_comparable_revisions_are_below_the_last_one() {
    let machine = watching();
    let below = |kind: FrameKind, revision: &str| machine.is_below_last(&kind, &revision.into());
    assert!(below(FrameKind::Added, "9") && below(FrameKind::Bookmark, "9"));
    for revision in ["10", "11", "", "x"] {
        assert!(!below(FrameKind::Modified, revision), "{revision}");
    }
    let mut machine = Machine::new(listing(), fastrand::Rng::with_seed(7));
    machine.start(Instant::now());
    machine.replaced("0".into(), Instant::now());
    machine.observe(&FrameKind::Added, Some("9".into()));
    assert!(
        !machine.is_below_last(&FrameKind::Added, &"7".into()),
        "an existing object"
    );
}

#[test]
fn an_event_below_the_last_revision_requires_one_probe_until_the_next_list() {
    let now = Instant::now();
    let mut machine = watching();
    machine.below_last(&"3".into(), None).unwrap();
    let (due, options) = machine.watch_probe(now).unwrap();
    assert!(due <= now, "the probe is due at once");
    assert_eq!(options.resource_version, "10".into());
    assert!(
        machine
            .watch_probe_answered(&"10".into(), &"11".into(), now)
            .unwrap()
    );
    assert!(!machine.requires_probe());
    machine.below_last(&"4".into(), None).unwrap();
    assert!(!machine.requires_probe(), "the collection is unordered");
    machine.watch_ended(WatchEnd::Broken(&error("reset")), now);
    assert!(machine.requires_probe(), "another reason requires a probe");
    assert!(
        !machine
            .watch_probe_answered(&"10".into(), &"11".into(), now)
            .unwrap(),
        "the collection was already unordered"
    );

    lists_again(&mut machine);
    machine.below_last(&"5".into(), None).unwrap();
    assert!(machine.requires_probe(), "after the next list");
    lists_again(&mut machine);
    assert!(!machine.requires_probe(), "the list replaced the probe");
}

#[test]
fn a_probe_that_cannot_be_answered_is_not_required_again_for_the_same_reason() {
    let now = Instant::now();
    let mut machine = watching();
    machine.below_last(&"3".into(), None).unwrap();
    machine.watch_probe_failed(&error("429"), now);
    assert!(machine.requires_probe(), "a later probe may be answered");
    machine.watch_probe_failed(&error("403"), now);
    machine.below_last(&"3".into(), None).unwrap();
    assert!(!machine.requires_probe());
}

#[test]
fn only_an_event_older_than_its_cached_object_is_a_rollback() {
    let mut machine = watching();
    let mut below =
        |cached: Option<ResourceVersion>| machine.below_last(&"5".into(), cached.as_ref());
    for cached in [None, Some("4"), Some("5"), Some(""), Some("x")] {
        below(cached.map(ResourceVersion::from)).unwrap();
    }
    let elsewhere = ResourceVersion::from(6).in_epoch(Epoch::FIRST.after_rollback(Epoch::FIRST));
    below(Some(elsewhere)).expect("the cache has not caught up with the last list");
    let error = below(Some(6.into())).unwrap_err();
    assert_eq!(error.class(), Class::WentBack);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_detected_by_the_cache_or_a_probe_is_followed_by_one_list_at_unset() {
    after_start(
        "event modified 12\nbelow 3\nbelow 4 6\npage 5\nreplaced",
        &expect![[r#"
            list resourceVersion=0 limit=500
            page 10: replace at 10
            replaced: watch resourceVersion=10
            below 4 6: list limit=500
            page 5: replace at 5
            replaced: watch resourceVersion=5
        "#]],
    );
    for answer in [
        "watch-probed 12 11",
        "watch-probe-failed 429\nbroken reset\nslept\nprobed 11",
    ] {
        let script = format!("{STARTED}event modified 12\nbelow 3\n{answer}\npage 5\nreplaced");
        let trace = play_all(listing(), &script);
        let end: Vec<_> = trace.lines().rev().take(3).collect();
        assert!(end[2].ends_with(": list limit=500"), "{trace}");
        assert_eq!(
            end[..2],
            ["replaced: watch resourceVersion=5", "page 5: replace at 5"]
        );
    }
}

#[test]
fn disabled_detection_sends_no_probe_and_detects_no_rollback_in_events() {
    let config = RequestOptions {
        rollback_detection: Some(RollbackDetection::Disabled),
        ..listing()
    };
    let mut machine = Machine::new(config, fastrand::Rng::with_seed(7));
    let now = Instant::now();
    machine.start(now);
    machine.replaced("10".into(), now);
    machine.watch_opened(now);
    machine.below_last(&"3".into(), Some(&"9".into())).unwrap();
    machine.observe(&FrameKind::Modified, Some("3".into()));
    assert!(!machine.requires_probe());
    machine.watch_ended(WatchEnd::Broken(&error("reset")), now);
    assert_eq!(show(&machine.slept(now)), "watch resourceVersion=10");
    machine.listed(&"9".into());
    assert!(
        machine.epoch().rolled_back_since(Epoch::FIRST),
        "a list shows it without confirmation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_empties_a_cache_is_confirmed_by_one_list_at_unset() {
    check(
        streaming(),
        "streamed 10\nerror expired\nunconfirmed\npage 12\nreplaced\nopened\nwait 120\nerror expired",
        &expect![[r#"
            stream resourceVersion=
            error expired: stream resourceVersion=10
            unconfirmed: list limit=500
            page 12: replace at 12
            replaced: watch resourceVersion=12
            error expired: stream resourceVersion=12
        "#]],
    );
}
