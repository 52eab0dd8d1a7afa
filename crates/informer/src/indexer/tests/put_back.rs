//! Tests how the store applies changes after a server was restored from a backup.
//!
//! A restore starts a new epoch. In the new epoch, a revision may identify a different state than in the
//! previous epoch.

use super::*;
use crate::{
    object::Epoch,
    queue::{DeltaFifo, InOrder, Queue, Replaced},
    reflector::Delta,
};

fn suspected() -> Epoch {
    Epoch::FIRST.after_suspicion(Epoch::FIRST)
}

fn put_back() -> Epoch {
    Epoch::FIRST.after_rollback(Epoch::FIRST)
}

fn one(text: &str, epoch: Epoch) -> Object<K> {
    object(text).in_epoch(epoch)
}

fn colour(indexer: &Indexer<K>) -> String {
    let cached = indexer.get(&name("a/x")).unwrap();
    cached.labels().get("colours").unwrap().to_owned()
}

/// Returns three types of delta that contain the object: `ReplacedAll`, `Replaced` and `Sync`.
fn ways(object: &Object<K>) -> [DeltaKind<K>; 3] {
    [
        list(5, [object.clone()]),
        DeltaKind::Replaced(object.clone()),
        DeltaKind::Sync(object.clone()),
    ]
}

#[test]
fn a_list_of_another_epoch_is_applied_whatever_its_revisions() {
    for way in 0..3 {
        for epoch in [suspected(), put_back()] {
            let (indexer, mut writer) = by_colour();
            writer.apply(batch(0, [list(5, [object("a/x@3 red")])]));
            let apply = |writer: &mut IndexerWriter<K>, object| {
                let kind = ways(&object)[way].clone();
                writer.apply(batch(0, [kind])).changes
            };
            apply(&mut writer, object("a/x@3 green"));
            assert_eq!(colour(&indexer), "red", "an equal revision is unchanged");
            let changes = apply(&mut writer, one("a/x@3 green", epoch));
            assert_eq!(colour(&indexer), "green");
            assert_eq!(index(&indexer.snapshot(), "colour"), "green: [a/x]");
            let reported = match &changes[..] {
                [Change::Updated { cause, old, new }] => {
                    assert_eq!(*cause, Cause::Relist);
                    !old.is_unchanged(new)
                }
                [Change::Replaced { changed, .. }] => changed.listed[0].1,
                other => panic!("{other:?}"),
            };
            assert!(reported, "in way {way}");
            apply(&mut writer, one("a/x@3 blue", epoch));
            assert_eq!(
                colour(&indexer),
                "green",
                "an equal revision is unchanged again"
            );
        }
    }
}

#[test]
fn a_store_counts_each_restore_once_and_no_suspicion() {
    for (revision, epoch, rollbacks) in [
        (5, Epoch::FIRST, 0),
        (6, Epoch::FIRST, 0),
        (4, Epoch::FIRST, 1),
        (5, suspected(), 0),
        (4, suspected(), 1),
        (4, put_back(), 1),
        (5, put_back(), 1),
        (9, put_back().after_suspicion(Epoch::FIRST), 1),
    ] {
        let (indexer, mut writer) = by_colour();
        writer.apply(batch(0, [list(5, [])]));
        let kind = DeltaKind::ReplacedAll {
            objects: Vec::new(),
            revision: ResourceVersion::from(revision).in_epoch(epoch),
        };
        writer.apply(batch(0, [kind]));
        assert_eq!(
            indexer.snapshot().rollbacks(),
            rollbacks,
            "{revision} on {epoch:?}"
        );
    }
}

/// Queues an update, a resync, a list and a second resync, and applies all of them to a store.
///
/// The server was restored from a backup before the list. Returns the resulting changes as text, one per
/// line.
fn behind_what_waits(mut queue: impl Queue<K>) -> String {
    let (_, mut writer) = by_colour();
    let known = "a/x@3 red; a/y@2 red; a/z@1 red";
    let kinds = known.split("; ").map(|text| DeltaKind::Added(object(text)));
    writer.apply(batch(0, kinds));
    let push = |queue: &mut dyn Queue<K>, kind, writer: &IndexerWriter<K>| {
        let delta = Delta::new(SourceId::default(), kind);
        queue.push(delta, writer).unwrap();
    };
    let waiting = DeltaKind::Updated(object("a/x@5 red"));
    push(&mut queue, waiting, &writer);
    queue.resync(&writer);
    let list = Replaced {
        source: SourceId::default(),
        objects: ["a/x@5 green", "a/y@2 green"]
            .map(|text| one(text, put_back()))
            .into(),
        revision: ResourceVersion::from(9).in_epoch(put_back()),
    };
    queue.replace(list, &writer).unwrap();
    queue.resync(&writer);
    let mut lines = Vec::new();
    while let Some(popped) = queue.pop_batch(usize::MAX) {
        lines.extend(writer.apply(popped).changes.iter().map(show));
    }
    let snapshot = writer.snapshot();
    assert_eq!(index(&snapshot, "colour"), "green: [a/x, a/y]");
    assert_eq!((snapshot.len(), snapshot.rollbacks()), (2, 1));
    lines.join("\n") + "\n"
}

#[test]
fn a_list_of_another_epoch_is_applied_after_queued_changes_and_resyncs() {
    expect![[r#"
        update a/x@3 → 5 (Watch)
        resync [a/x@5, a/y@2, a/z@1]
        [a/x@5, a/y@2, a/z@1] → [a/x@5, a/y@2]: gone [a/z], changed a/x, changed a/y
    "#]]
    .assert_eq(&behind_what_waits(InOrder::new()));
    expect![[r#"
        update a/x@3 → 5 (Watch)
        update a/x@5 → 5 (Relist)
        update a/y@2 → 2 (Resync)
        update a/y@2 → 2 (Relist)
        update a/z@1 → 1 (Resync)
        missing a/z, last known Some(a/z@1)
    "#]]
    .assert_eq(&behind_what_waits(DeltaFifo::new()));
}

#[test]
fn the_next_list_repairs_a_unit_of_another_epoch_put_back_into_a_queue() {
    let (indexer, mut writer) = by_colour();
    writer.apply(batch(0, [list(5, [object("a/x@3 red")])]));
    let mut queue = DeltaFifo::new();
    queue.push(Delta::updated(object("a/x@4 red"))).unwrap();
    let held = queue.pop().unwrap();
    for (revision, last) in [(9, false), (9, true)] {
        let list = Replaced {
            source: SourceId::default(),
            objects: vec![one("a/x@4 green", put_back())],
            revision: ResourceVersion::from(revision).in_epoch(put_back()),
        };
        queue.replace(list, &writer).unwrap();
        while let Some(popped) = queue.pop_batch(usize::MAX) {
            writer.apply(popped);
        }
        assert_eq!(colour(&indexer), "green");
        if !last {
            let again = crate::queue::Popped {
                name: held.name.clone(),
                deltas: held.deltas.clone(),
                in_initial_list: false,
            };
            queue.add_if_not_present(again).unwrap();
        }
    }
}

#[test]
fn saved_objects_are_not_treated_as_equal_to_listed_ones() {
    for way in 0..3 {
        let (indexer, mut writer) = by_colour();
        writer.put_known(vec![object("a/x@3 red")]);
        writer.apply(batch(0, [ways(&object("a/x@3 green"))[way].clone()]));
        assert_eq!(colour(&indexer), "green");
    }
}
