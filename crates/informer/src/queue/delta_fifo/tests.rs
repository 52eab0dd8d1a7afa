//! What goes into a `DeltaFifo`, and what comes out.

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
fn all_deltas_of_a_key_come_out_as_one_unit_and_the_key_keeps_its_place() {
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
fn of_a_unit_with_more_deltas_than_there_is_room_for_the_oldest_come_first() {
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
fn of_two_deletions_in_a_row_the_one_that_knows_more_is_kept() {
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
fn a_deletion_counts_only_if_the_key_is_queued_or_known() {
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
fn a_list_queues_its_items_then_a_tombstone_for_what_vanished() {
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
fn a_deletion_that_is_queued_already_stays_the_only_one() {
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
fn items_of_a_list_come_as_sync_if_asked_for() {
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
fn a_resync_passes_over_keys_with_waiting_deltas() {
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
fn without_known_objects_a_resync_does_nothing_and_vanished_ones_are_missed() {
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
fn older_change_in_a_row_does_not_take_back_how_far_the_store_comes() {
    check(
        "add a@9; bookmark 3; add b@4; pop all",
        &expect![[r#"
            [Added a@9] → 9
            [Added b@4] → 4
        "#]],
    );
}

#[test]
fn a_bookmark_comes_when_all_before_it_is_popped_and_only_the_last_of_a_row() {
    check(
        "add a@1; bookmark 2; bookmark 3; add b@4; update a@5; pop all",
        &expect![[r#"
            [Added a@1, Updated a@5] → 3
            [Added b@4] → 5
        "#]],
    );
}

#[test]
fn a_unit_can_be_put_back_and_what_arrived_meanwhile_wins() {
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
fn get_list_keys_and_len_show_what_waits() {
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
fn an_object_without_a_key_is_an_error_that_carries_it() {
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
fn a_list_deletes_only_what_its_own_source_brought() {
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
