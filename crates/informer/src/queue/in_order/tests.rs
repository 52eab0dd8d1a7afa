//! Tests `InOrder`: each test applies a script of changes, and compares the batches that the queue then
//! returns with the expected text.

use expect_test::{Expect, expect};

use k8s_openapi::api::core::v1::ConfigMap;

use super::{InOrder, after_burst};
use crate::{
    object::SourceId,
    queue::{
        Queue,
        script::{object, play},
    },
    reflector::{Delta, DeltaKind},
};

fn check(script: &str, trace: &Expect) {
    trace.assert_eq(&play(&mut InOrder::new(), InOrder::has_synced, script));
}

#[test]
fn changes_are_popped_in_the_order_of_arrival() {
    check(
        "add a@1; add b@2; update a@3; delete b@4; add c@5; pop all",
        &expect![[r#"
            [Added a@1, Added b@2] → 2
            [Updated a@3, Deleted b@4, Added c@5] → 5
        "#]],
    );
}

#[test]
fn a_deletion_of_an_unknown_object_is_queued() {
    check(
        "delete a@1; pop all",
        &expect![[r#"
            [Deleted a@1] → 1
        "#]],
    );
}

#[test]
fn a_deletion_and_a_later_list_with_the_object_are_both_popped() {
    check(
        "known a@1; delete a@2; replace 9: a@5; pop all",
        &expect![[r#"
            [Deleted a@2] → 2
            [ReplacedAll 9: a@5]
        "#]],
    );
}

#[test]
fn the_order_of_each_of_two_producers_is_kept() {
    let mut queue = InOrder::new();
    for n in 1..=500 {
        let script = format!("add left-{n}@{n}; add right-{n}@{n}");
        play(&mut queue, InOrder::has_synced, &script);
    }
    let mut of = [Vec::new(), Vec::new()];
    while let Some(batch) = queue.pop_batch(7) {
        for delta in batch.deltas {
            let (side, n) = delta.object_name().unwrap().name().split_once('-').unwrap();
            of[usize::from(side == "right")].push(n.parse::<u32>().unwrap());
        }
    }
    let in_order: Vec<u32> = (1..=500).collect();
    assert_eq!(of, [in_order.clone(), in_order]);
}

#[test]
fn a_list_is_one_message_after_earlier_changes() {
    check(
        "add a@1; bookmark 2; replace 5: a@1 b@4; replace 6:; add c@7; pop all",
        &expect![[r#"
            [Added a@1] → 1
            [Bookmark 2] → 2
            [ReplacedAll 5: a@1 b@4]
            [ReplacedAll 6:]
            [Added c@7] → 7
        "#]],
    );
}

#[test]
fn everything_up_to_the_end_of_the_first_list_is_initial() {
    check(
        "synced?; bookmark 1; replace 5: a@1 b@4; add c@6; synced?; pop; pop; synced?; pop; replace 9:; pop",
        &expect![[r#"
            not synced
            not synced
            [Bookmark 1] initial → 1
            [ReplacedAll 5: a@1 b@4] initial completes
            synced
            [Added c@6] → 6
            [ReplacedAll 9:]
        "#]],
    );
}

#[test]
fn an_empty_first_list_has_synced_once_it_is_popped() {
    check(
        "replace 1:; synced?; pop; synced?",
        &expect![[r#"
        not synced
        [ReplacedAll 1:] initial completes
        synced
    "#]],
    );
}

#[test]
fn a_change_before_any_list_counts_as_the_first_list() {
    check(
        "add a@1; synced?; replace 2: a@1; pop all",
        &expect![[r#"
            synced
            [Added a@1] → 1
            [ReplacedAll 2: a@1]
        "#]],
    );
}

#[test]
fn at_most_one_resync_is_queued_after_newer_states() {
    check(
        "known a@1; update a@2; resync; resync; update a@3; pop all; resync; pop all",
        &expect![[r#"
            [Updated a@2] → 2
            [SyncAll]
            [Updated a@3] → 3
            [SyncAll]
        "#]],
    );
}

#[test]
fn a_batch_ends_at_its_maximum_at_the_room_or_at_a_repeated_name() {
    let script = "add a@1; add b@1; add c@1; add d@1; add a@2; add e@1; pop 2; pop all";
    let mut queue = InOrder::new().batch_size(3);
    expect![[r#"
        [Added a@1, Added b@1] → 1
        [Added c@1, Added d@1, Added a@2] → 2
        [Added e@1] → 1
    "#]]
    .assert_eq(&play(&mut queue, InOrder::has_synced, script));
    check(
        "add a@1; pop 0; pop",
        &expect![[r#"
            nothing
            [Added a@1] → 1
        "#]],
    );
}

#[test]
fn a_large_batch_ends_at_a_repeated_name() {
    let adds: Vec<_> = (0..20).map(|n| format!("add n{n}@1; ")).collect();
    let mut script = adds.concat();
    script += "update n3@2; add z@1; pop; pop";
    let trace = play(&mut InOrder::new(), InOrder::has_synced, &script);
    let lines: Vec<&str> = trace.lines().collect();
    assert_eq!(lines[0].matches("Added").count(), 20);
    assert_eq!(lines[1], "[Updated n3@2, Added z@1] → 2");
}

#[test]
fn a_batch_has_at_most_a_thousand_changes_by_default() {
    let mut queue = InOrder::new();
    let adds: Vec<_> = (0..2001).map(|n| format!("add n{n}@1")).collect();
    play(&mut queue, InOrder::has_synced, &adds.join("\n"));
    let sizes: Vec<_> = std::iter::from_fn(|| queue.pop_batch(usize::MAX))
        .map(|batch| batch.deltas.len())
        .collect();
    assert_eq!(sizes, [1000, 1000, 1]);
}

#[test]
fn bookmarks_are_popped_between_batches_with_their_revisions() {
    check(
        "replace 5:; bookmark 7; add a@8; bookmark 9; bookmark 11; add b@12; pop all",
        &expect![[r#"
            [ReplacedAll 5:] initial completes
            [Bookmark 7] → 7
            [Added a@8] → 8
            [Bookmark 9] → 9
            [Bookmark 11] → 11
            [Added b@12] → 12
        "#]],
    );
}

#[test]
fn the_length_counts_lists_bookmarks_and_resyncs() {
    let mut queue = InOrder::new();
    let script = "replace 5: a@1 b@2; bookmark 7; add c@8; resync";
    play(&mut queue, InOrder::has_synced, script);
    let mut lengths = vec![queue.len()];
    while queue.pop_batch(usize::MAX).is_some() {
        lengths.push(queue.len());
    }
    assert_eq!(lengths, [4, 3, 2, 1, 0]);
}

#[test]
fn memory_of_a_burst_is_released_at_any_batch_size() {
    for room in [usize::MAX, 1] {
        let mut queue = InOrder::new();
        let adds: Vec<_> = (0..20_000).map(|n| format!("add n{n}@1")).collect();
        play(&mut queue, InOrder::has_synced, &adds.join("\n"));
        assert!(queue.items.capacity() >= 20_000);
        while queue.pop_batch(room).is_some() {}
        assert!(queue.items.capacity() <= 4 * crate::queue::BATCH);
    }
}

#[test]
fn a_resync_may_be_pushed_as_a_change_too() {
    let mut queue = InOrder::<ConfigMap>::new();
    for _ in 0..2 {
        let delta = Delta::new(SourceId::default(), DeltaKind::SyncAll);
        queue.push(delta, &()).unwrap();
    }
    queue.resync(&());
    let popped = std::iter::from_fn(|| queue.pop_batch(usize::MAX));
    assert_eq!(popped.count(), 2, "a third one waits already");
}

#[test]
fn a_queue_less_than_a_quarter_full_shrinks_to_twice_its_length() {
    for (capacity, left, shrunk) in [
        (4000, 0, None),
        (4001, 1000, None),
        (4001, 999, Some(1998)),
        (20_000, 5000, None),
        (20_000, 4999, Some(9998)),
        (20_000, 0, Some(0)),
    ] {
        assert_eq!(after_burst(capacity, left), shrunk, "{left} of {capacity}");
    }
}

#[test]
fn a_list_pushed_as_a_change_is_the_first_list() {
    let mut queue = InOrder::<ConfigMap>::new();
    let list = || {
        let objects = vec![object("a@1")];
        let revision = 9.into();
        Delta::new(
            SourceId::new(3),
            DeltaKind::ReplacedAll { objects, revision },
        )
    };
    queue.push(list(), &()).unwrap();
    queue.push(list(), &()).unwrap();
    assert!(!queue.has_synced());
    let first = queue.pop_batch(1).unwrap();
    assert!(first.in_initial_list && queue.has_synced());
    assert_eq!(first.completes, Some(SourceId::new(3)));
    let second = queue.pop_batch(1).unwrap();
    assert!(!second.in_initial_list && second.completes.is_none());
}
