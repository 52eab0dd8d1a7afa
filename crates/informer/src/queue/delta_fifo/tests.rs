//! Tests `DeltaFifo`: most tests run a script of queue operations, and compare the popped batches with
//! expected text.

mod first_lists;
mod popped;

use expect_test::{Expect, expect};

use super::DeltaFifo;
use crate::{
    object::{ObjectName, SourceId},
    queue::{
        Queue, Replaced,
        script::{K, object, play, show_delta},
    },
    reflector::{Delta, DeltaKind, DeltaType},
};

fn check(script: &str, trace: &Expect) {
    trace.assert_eq(&play(&mut DeltaFifo::new(), DeltaFifo::has_synced, script));
}

#[test]
fn all_deltas_of_a_key_are_popped_as_one_unit_at_its_first_place() {
    check(
        "add a@1; add b@2; update a@3; delete a@4; add c@5; pop all",
        &expect![[r#"
            [Added a@1, Updated a@3, Deleted a@4] → 1
            [Added b@2] → 4
            [Added c@5] → 5
        "#]],
    );
}

#[test]
fn a_unit_larger_than_the_room_is_split_oldest_deltas_first() {
    check(
        "add a@1; update a@2; update a@3; add b@4; pop 2; update a@5; pop 2; pop 2; pop 2",
        &expect![[r#"
            [Added a@1, Updated a@2]
            [Updated a@3, Updated a@5] → 3
            [Added b@4] → 5
            nothing
        "#]],
    );
}

#[test]
fn of_two_consecutive_deletions_the_more_informative_is_kept() {
    check(
        "known a@1; delete a@2; tombstone a@1; pop all",
        &expect![[r#"
            [Deleted a@2] → 2
        "#]],
    );
    check(
        "known a@1; tombstone a@1; delete a@2; pop all",
        &expect![[r#"
            [Deleted a@2] → 2
        "#]],
    );
    check(
        "known a@1; delete a@2; delete a@3; pop all",
        &expect![[r#"
            [Deleted a@2] → 3
        "#]],
    );
    check(
        "known a@1; delete a@2; add a@3; delete a@4; pop all",
        &expect![[r#"
            [Deleted a@2, Added a@3, Deleted a@4] → 4
        "#]],
    );
}

#[test]
fn a_deletion_of_an_unknown_key_is_ignored() {
    check(
        "delete a@1; pop all",
        &expect![[r#"
        [] → 1
    "#]],
    );
    check(
        "add a@1; delete a@2; pop all",
        &expect![[r#"
            [Added a@1, Deleted a@2] → 2
        "#]],
    );
    check(
        "known a@1; delete a@2; pop all",
        &expect![[r#"
            [Deleted a@2] → 2
        "#]],
    );
}

#[test]
fn a_list_queues_its_items_and_then_tombstones_of_missing_objects() {
    check(
        "known a@1 b@1 c@1; replace 9: a@2 d@1; pop all",
        &expect![[r#"
            [Replaced a@2] initial
            [Replaced d@1] initial
            [Tombstone b@1] initial
            [Tombstone c@1] initial completes → 9
        "#]],
    );
}

#[test]
fn a_tombstone_carries_the_newest_queued_state() {
    check(
        "known a@1; update a@2; update a@3; replace 9:; pop all",
        &expect![[r#"
            [Updated a@2, Updated a@3, Tombstone a@3] → 9
        "#]],
    );
    check(
        "add a@1; replace 9:; pop all",
        &expect![[r#"
            [Added a@1, Tombstone a@1] → 9
        "#]],
    );
}

#[test]
fn a_list_adds_no_second_deletion_of_a_key() {
    check(
        "known a@1; delete a@2; replace 9:; replace 10:; pop all",
        &expect![[r#"
            [Deleted a@2] → 10
        "#]],
    );
    check(
        "known a@1; replace 9:; replace 10:; pop all",
        &expect![[r#"
            [Tombstone a@1] initial completes → 10
        "#]],
    );
}

#[test]
fn a_recreated_object_is_deleted_and_replaced() {
    check(
        "known a@1; delete a@2; replace 9: a@5; pop all",
        &expect![[r#"
            [Deleted a@2, Replaced a@5] → 9
        "#]],
    );
}

#[test]
fn items_of_a_list_become_sync_deltas_without_emit_replaced() {
    let mut fifo = DeltaFifo::new().emit_replaced(false);
    let trace = play(
        &mut fifo,
        DeltaFifo::has_synced,
        "known b@1; replace 9: a@1; pop all",
    );
    expect![[r#"
        [Sync a@1] initial
        [Tombstone b@1] initial completes → 9
    "#]]
    .assert_eq(&trace);
}

#[test]
fn a_resync_skips_keys_with_queued_deltas() {
    check(
        "known a@1 b@1 c@1; update b@2; delete c@2; resync; resync; pop all",
        &expect![[r#"
            [Updated b@2] → 2
            [Deleted c@2] → 2
            [Sync a@1]
        "#]],
    );
}

#[test]
fn without_a_store_a_resync_is_empty_and_deletions_are_missed() {
    check(
        "replace 1: a@1; resync; pop all; replace 2:; pop all",
        &expect![[r#"
            [Replaced a@1] initial completes → 1
            [] → 2
        "#]],
    );
}

#[test]
fn it_has_synced_when_the_first_list_and_its_tombstones_are_popped() {
    check(
        "synced?; known b@1; replace 9: a@1 a@2; synced?; pop; synced?; pop; synced?",
        &expect![[r#"
            not synced
            not synced
            [Replaced a@1, Replaced a@2] initial
            not synced
            [Tombstone b@1] initial completes → 9
            synced
        "#]],
    );
    check(
        "replace 1:; synced?; pop; pop; pop",
        &expect![[r#"
            synced
            [] initial completes
            [] → 1
            nothing
        "#]],
    );
    check(
        "add a@1; synced?",
        &expect![[r#"
        synced
    "#]],
    );
}

#[test]
fn an_older_bookmark_does_not_lower_the_reached_revision() {
    check(
        "add a@9; bookmark 3; add b@4; pop all",
        &expect![[r#"
            [Added a@9] → 9
            [Added b@4] → 4
        "#]],
    );
}

#[test]
fn a_bookmark_is_popped_after_all_earlier_changes_and_merged_with_its_neighbours() {
    check(
        "add a@1; bookmark 2; bookmark 3; add b@4; update a@5; pop all",
        &expect![[r#"
            [Added a@1, Updated a@5] → 3
            [Added b@4] → 5
        "#]],
    );
}

#[test]
fn a_unit_is_put_back_unless_its_key_was_queued_again() {
    let mut fifo = DeltaFifo::<K>::new();
    fifo.push(Delta::added(object("a@1"))).unwrap();
    fifo.push(Delta::added(object("b@1"))).unwrap();
    let popped = fifo.pop().unwrap();
    fifo.add_if_not_present(popped).unwrap();
    assert_eq!(
        fifo.keys().map(ObjectName::as_str).collect::<Vec<_>>(),
        ["b", "a"]
    );

    fifo.pop().unwrap();
    let popped = fifo.pop().unwrap();
    fifo.push(Delta::updated(object("a@2"))).unwrap();
    let back = fifo.add_if_not_present(popped).unwrap_err();
    assert_eq!(back.newest().map(show_delta).as_deref(), Some("Added a@1"));
    assert_eq!(
        fifo.pop().unwrap().newest().map(show_delta).as_deref(),
        Some("Updated a@2")
    );
    assert_eq!(Queue::len(&fifo), 0);
}

#[test]
fn get_list_keys_and_len_show_queued_deltas() {
    let mut fifo = DeltaFifo::<K>::new();
    for delta in [
        Delta::added(object("a@1")),
        Delta::added(object("b@1")),
        Delta::updated(object("a@2")),
    ] {
        fifo.push(delta).unwrap();
    }
    let deltas = fifo.get(&ObjectName::cluster("a")).unwrap();
    let types: Vec<_> = deltas.iter().map(Delta::delta_type).collect();
    assert_eq!(types, [DeltaType::Added, DeltaType::Updated]);
    let newest: Vec<_> = fifo.list().map(show_delta).collect();
    assert_eq!(newest, ["Updated a@2", "Added b@1"]);
    assert_eq!((fifo.len(), Queue::len(&fifo)), (2, 3));
    assert_eq!(fifo.drain().count(), 2);
    assert!(fifo.is_empty() && fifo.pop().is_none());
}

#[test]
fn an_object_without_a_key_is_returned_in_the_error() {
    let mut fifo = DeltaFifo::<K>::new().key_func(|object| match object.name() {
        "bad" => Err("no key for bad"),
        name => Ok(ObjectName::cluster(&format!("key-of-{name}"))),
    });
    let error = fifo.push(Delta::added(object("bad@7"))).unwrap_err();
    assert_eq!(format!("{:?}", error.object), "bad@7");
    assert_eq!(error.to_string(), "couldn't create key for object bad@7");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "no key for bad");

    let list = Replaced {
        source: SourceId::default(),
        objects: vec![object("good@1"), object("bad@7")],
        revision: 9.into(),
    };
    let errors = fifo.replace(list, &()).unwrap_err();
    let nameless: Vec<_> = errors
        .0
        .iter()
        .map(|error| format!("{:?}", error.object))
        .collect();
    assert_eq!(nameless, ["bad@7"]);
    assert_eq!(fifo.pop().unwrap().name.as_str(), "key-of-good");
    assert!(fifo.is_empty(), "what has no key is left out");
}

#[test]
fn a_list_deletes_only_objects_of_its_own_source() {
    let mut fifo = DeltaFifo::<K>::new();
    let list = |source, objects: &[&str]| Replaced {
        source: SourceId::new(source),
        objects: objects.iter().map(|text| object(text)).collect(),
        revision: 9.into(),
    };
    fifo.replace(list(0, &["a@1"]), &()).unwrap();
    fifo.replace(list(1, &["b@1"]), &()).unwrap();
    fifo.replace(list(1, &[]), &()).unwrap();
    let popped: Vec<_> = fifo
        .drain()
        .map(|p| p.deltas.iter().map(show_delta).collect::<Vec<_>>())
        .collect();
    assert_eq!(
        popped,
        [vec!["Replaced a@1"], vec!["Replaced b@1", "Tombstone b@1"]]
    );
}

#[test]
fn bookmarks_of_several_sources_do_not_pile_up() {
    let mut fifo = DeltaFifo::<K>::new();
    for revision in 1..=1000_u64 {
        let source = SourceId::new(u32::from(revision % 2 == 0));
        let kind = DeltaKind::Bookmark {
            revision: revision.into(),
        };
        fifo.push(Delta::new(source, kind)).unwrap();
    }
    let batch = fifo.pop_batch(1).unwrap();
    let reached = [
        (SourceId::new(0), 999.into()),
        (SourceId::new(1), 1000.into()),
    ];
    assert_eq!(batch.reached, reached);
    assert!(Queue::is_empty(&fifo) && fifo.pop_batch(1).is_none());
}
