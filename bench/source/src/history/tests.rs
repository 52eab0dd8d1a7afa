//! Tests that the versions computed by [`History`] match a complete record of all versions, and that
//! revisions expire.

use super::*;

/// Returns the versions of all objects after 0, 1, … `changes` changes.
fn remembered(history: &History, objects: usize, changes: u64) -> Vec<Vec<Version>> {
    let moment = Moment {
        changes: 0,
        revision: 0,
    };
    let mut now: Vec<_> = (0..objects)
        .map(|object| history.version(object, moment))
        .collect();
    let mut all = vec![now.clone()];
    for number in 0..changes {
        let (object, version) = history.get(number).unwrap();
        now[object] = version;
        all.push(now.clone());
    }
    all
}

#[test]
fn versions_at_every_moment_match_a_complete_record() {
    for objects in [1, 2, 3, 10, 97] {
        let mut history = History::new(objects);
        for stamp in 1..=250 {
            history.change(stamp);
        }
        let expected = remembered(&history, objects, 250);
        for (changes, versions) in (0..).zip(&expected) {
            let moment = Moment {
                changes,
                revision: 0,
            };
            for (object, version) in versions.iter().enumerate() {
                assert_eq!(
                    history.version(object, moment),
                    *version,
                    "{object} of {objects} after {changes}"
                );
            }
        }
    }
}

#[test]
fn each_round_changes_every_object_once() {
    let mut history = History::new(1_000);
    for stamp in 0..1_000 {
        history.change(stamp);
    }
    let mut changed: Vec<_> = (0..1_000)
        .map(|number| history.get(number).unwrap().0)
        .collect();
    assert_ne!(changed[..3], [0, 1, 2]);
    changed.sort_unstable();
    assert_eq!(changed, (0..1_000).collect::<Vec<_>>());
}

#[test]
fn revisions_of_objects_and_changes_are_unique_and_at_most_the_highest() {
    let mut history = History::new(10);
    let start = history.now();
    let mut revisions: Vec<_> = (0..10)
        .map(|object| history.version(object, start).revision)
        .collect();
    for stamp in 0..20 {
        history.change(stamp);
        revisions.push(history.get(stamp).unwrap().1.revision);
    }
    assert_eq!(revisions.iter().max(), Some(&history.now().revision));
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), 30);
}

#[test]
fn a_revision_maps_to_the_moment_after_its_change() {
    let mut history = History::new(10);
    let start = history.now();
    for stamp in 0..5 {
        history.change(stamp);
    }
    assert_eq!(history.moment(start.revision), Ok(start));
    assert_eq!(history.moment(start.revision + 3).unwrap().changes, 3);
    assert_eq!(history.moment(start.revision + 5), Ok(history.now()));
    let newest = start.revision + 5;
    assert_eq!(history.moment(newest + 1), Err(NoMoment::TooNew { newest }));
}

#[test]
fn after_an_expiry_only_the_newest_revision_is_not_too_old() {
    let mut history = History::new(10);
    history.change(1);
    let before = history.now();
    let versions = |history: &History| {
        (0..10)
            .map(|object| history.version(object, history.now()))
            .collect::<Vec<_>>()
    };
    let unexpired = versions(&history);
    history.expire();
    let oldest = before.revision + 1;
    assert_eq!(
        history.moment(before.revision),
        Err(NoMoment::TooOld { oldest })
    );
    assert_eq!(history.check(before), Err(NoMoment::TooOld { oldest }));
    assert_eq!(history.moment(oldest), Ok(history.now()));
    assert_eq!(
        versions(&history),
        unexpired,
        "objects keep their revisions"
    );
    history.change(2);
    assert_eq!(history.moment(oldest).unwrap().changes, 1);
}

#[test]
fn old_changes_are_dropped_and_valid_moments_stay_complete() {
    let objects = 50;
    let mut history = History::new(objects);
    for stamp in 0..KEPT + 1_000 {
        history.change(stamp);
    }
    assert_eq!(history.kept.len() as u64, KEPT + objects as u64);
    let now = history.now();
    let oldest = now.revision - KEPT;
    assert_eq!(history.moment(oldest - 1), Err(NoMoment::TooOld { oldest }));
    let moment = history.moment(oldest).unwrap();
    let stamps: Vec<_> = (0..objects)
        .map(|object| history.version(object, moment).stamp)
        .collect();
    assert!(
        stamps
            .iter()
            .all(|stamp| (1_000 - 50..1_000).contains(stamp)),
        "{stamps:?}"
    );
}
