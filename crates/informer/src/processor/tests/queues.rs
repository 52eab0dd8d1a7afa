//! Tests that a handler receives the same events of each object with an [`InOrder`] queue as with a
//! [`DeltaFifo`] queue.
//!
//! Each test passes changes through a queue, a store and a processor to a handler.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;

use super::{World, object, received};
use crate::{
    indexer::Change,
    object::{Deleted, Object, SourceId},
    processor::ListenerBuffer,
    queue::{DeltaFifo, InOrder, Queue, Replaced},
    reflector::{Delta, DeltaKind},
};

/// Creates a pod from text of the form `name@revision`.
fn one(text: &str) -> Object<Pod> {
    let (name, revision) = text.split_once('@').unwrap();
    object(name, revision.parse().unwrap())
}

/// Runs a test script with `queue`, and returns the delivered events, in one line per `pop`.
///
/// ```text
/// known a@1 b@2        sets the initial content of the store
/// add a@2              queues an addition; `update` queues an update, and `delete` queues a deletion
/// bookmark 9           queues a bookmark at revision 9
/// list 9: a@2 c@1      queues a list at revision 9
/// resync               queues a resync for the handler
/// pop, pop one         applies and delivers all queued batches, or only the next batch
/// ```
fn delivered(queue: &mut dyn Queue<Pod>, script: &str) -> String {
    let mut world = World::new();
    let (id, buffer) = world.join(ListenerBuffer::Grow, false);
    let mut lines = Vec::new();
    for line in script.split([';', '\n']).map(str::trim) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let source = SourceId::default();
        let kind = match verb {
            "add" => DeltaKind::Added(one(rest)),
            "update" => DeltaKind::Updated(one(rest)),
            "delete" => DeltaKind::Deleted(Deleted::Known(one(rest))),
            "bookmark" => DeltaKind::Bookmark {
                revision: rest.into(),
            },
            "list" => {
                let (revision, objects) = rest.split_once(':').unwrap();
                let list = Replaced {
                    source,
                    objects: objects.split_whitespace().map(one).collect(),
                    revision: revision.into(),
                };
                queue.replace(list, &world.writer).unwrap();
                continue;
            }
            "known" => {
                world.writer.put_known(rest.split(' ').map(one).collect());
                continue;
            }
            "resync" => {
                world.processor.due.insert(id);
                queue.resync(&world.writer);
                continue;
            }
            "pop" => {
                pop(queue, &mut world, rest == "one");
                let events = received(&buffer);
                let events = if events.is_empty() {
                    "nothing"
                } else {
                    &events
                };
                lines.push(format!("{events}\n"));
                continue;
            }
            other => panic!("unknown verb {other:?}"),
        };
        let pushed = queue.push(Delta::new(source, kind), &world.writer);
        pushed.unwrap();
    }
    lines.concat()
}

/// Pops all batches, or only one, applies them to the store, and distributes the changes.
fn pop(queue: &mut dyn Queue<Pod>, world: &mut World, only_one: bool) {
    while let Some(batch) = queue.pop_batch(usize::MAX) {
        for change in world.writer.apply(batch).changes {
            match change {
                Change::Listed(_) => world.processor.synced(),
                change => {
                    let changes = [change];
                    let distributed = world.processor.distribute(&changes);
                    distributed.now_or_never().expect("nothing is long");
                }
            }
        }
        if only_one {
            return;
        }
    }
}

/// Groups the events in `delivered` by object name, which must be one letter.
fn by_object(delivered: &str) -> BTreeMap<char, Vec<&str>> {
    let mut objects: BTreeMap<char, Vec<&str>> = BTreeMap::new();
    let events = delivered.lines().flat_map(|line| line.split(", "));
    for event in events.filter(|event| event.contains('@')) {
        let name = event.chars().find(char::is_ascii_alphabetic).unwrap();
        objects.entry(name).or_default().push(event);
    }
    objects
}

/// Runs a script with both queues, and compares the delivered events with `trace`.
///
/// Also asserts that both queues deliver the same events for each object. If the queues deliver the objects
/// in different orders, `trace` contains the events of both queues.
fn check(script: &str, trace: &Expect) {
    let in_order = delivered(&mut InOrder::new(), script);
    let per_key = delivered(&mut DeltaFifo::new(), script);
    assert_eq!(by_object(&in_order), by_object(&per_key), "{script}");
    if in_order == per_key {
        trace.assert_eq(&in_order);
    } else {
        trace.assert_eq(&format!("in order\n{in_order}per key\n{per_key}"));
    }
}

#[test]
fn a_queued_object_that_a_list_omits_is_delivered_and_then_deleted() {
    check(
        "add a@6; list 9:; pop",
        &expect![[r#"
        +a@6, -?a@6
    "#]],
    );
    check(
        "add a@6; delete a@7; list 9:; pop",
        &expect![[r#"
        +a@6, -a@7
    "#]],
    );
    check(
        "add a@6; delete a@7; add a@8; list 9:; pop",
        &expect![[r#"
            +a@6, -a@7, +a@8, -?a@8
        "#]],
    );
    check(
        "add a@6; bookmark 9; pop",
        &expect![[r#"
        +a@6
    "#]],
    );
}

#[test]
fn several_lists_without_an_object_delete_it_once() {
    check(
        "list 5: a@1; pop; list 9:; list 10:; pop",
        &expect![[r#"
        +a@1!, synced
        -?a@1
    "#]],
    );
    check(
        "list 5: a@1; pop; list 9:; list 9:; pop",
        &expect![[r#"
        +a@1!, synced
        -?a@1
    "#]],
    );
    check(
        "list 5: a@1; pop; list 9:; pop; list 9:; pop",
        &expect![[r#"
            +a@1!, synced
            -?a@1
            nothing
        "#]],
    );
}

#[test]
fn a_list_deletes_missing_objects_of_queue_and_store_with_their_newest_state() {
    let known = "list 5: a@1 b@2 c@3; pop";
    check(
        &format!("{known}; delete b@6; list 9: a@1; pop"),
        &expect![[r#"
            +a@1!, +b@2!, +c@3!, synced
            -b@6, -?c@3
        "#]],
    );
    check(
        &format!("{known}; add d@6; list 9: a@1; pop"),
        &expect![[r#"
            in order
            +a@1!, +b@2!, +c@3!, synced
            +d@6, -?b@2, -?c@3, -?d@6
            per key
            +a@1!, +b@2!, +c@3!, synced
            +d@6, -?d@6, -?b@2, -?c@3
        "#]],
    );
    check(
        &format!("{known}; delete b@6; add b@7; list 9: a@1 c@3; pop"),
        &expect![[r#"
            +a@1!, +b@2!, +c@3!, synced
            -b@6, +b@7, -?b@7
        "#]],
    );
    check(
        &format!("{known}; list 9: a@1 b@7 c@3; list 10: a@1 c@3; pop"),
        &expect![[r#"
            +a@1!, +b@2!, +c@3!, synced
            ~b@2→7 relist, -?b@7
        "#]],
    );
}

#[test]
fn a_deletion_is_delivered_before_a_list_that_contains_the_object_again() {
    check(
        "list 5: a@1; pop; delete a@6; list 9: a@8; pop",
        &expect![[r#"
            +a@1!, synced
            -a@6, +a@8
        "#]],
    );
}

#[test]
fn a_resync_delivers_no_older_state_after_a_newer_one() {
    let known = "list 5: a@1 b@2; pop one; pop";
    let newer_first = format!("{known}; update a@6; resync; pop");
    expect![[r#"
        +a@1!, +b@2!, synced
        nothing
        ~a@1→6, ~a@6→6 resync, ~b@2→2 resync
    "#]]
    .assert_eq(&delivered(&mut InOrder::new(), &newer_first));
    expect![[r#"
        +a@1!
        +b@2!, synced
        ~a@1→6, ~b@2→2 resync
    "#]]
    .assert_eq(&delivered(&mut DeltaFifo::new(), &newer_first));
    check(
        &format!("{known}; resync; update a@6; pop"),
        &expect![[r#"
            in order
            +a@1!, +b@2!, synced
            nothing
            ~a@1→1 resync, ~b@2→2 resync, ~a@1→6
            per key
            +a@1!
            +b@2!, synced
            ~a@1→1 resync, ~a@1→6, ~b@2→2 resync
        "#]],
    );
}

#[test]
fn synced_follows_every_object_and_deletion_of_the_first_list() {
    let script = "known a@1 b@2; list 9: a@3 c@4; pop one; pop one; pop one";
    expect![[r#"
        -?b@2, ~a@1→3 relist, +c@4!, synced
        nothing
        nothing
    "#]]
    .assert_eq(&delivered(&mut InOrder::new(), script));
    expect![[r#"
        ~a@1→3 relist
        +c@4!
        -?b@2, synced
    "#]]
    .assert_eq(&delivered(&mut DeltaFifo::new(), script));
}
