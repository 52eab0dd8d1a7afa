//! Tests of the decisions, on a small store: a script of writes, and the changes that they lead to.

mod conflicts;
mod random;
mod world;

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use world::World;

/// Runs a script, whose commands in one line are observed together, and compares the changes of the garbage
/// collector and the objects that are left.
fn check(script: &str, expected: &Expect) {
    let mut world = World::default();
    let mut trace = String::new();
    for line in script.lines().map(str::trim) {
        if line.is_empty() {
            continue;
        }
        for command in line.split("; ") {
            world.command(command);
        }
        writeln!(trace, "> {line}").unwrap();
        trace += &world.collect();
    }
    let left = match world.left().join(" ") {
        left if left.is_empty() => "nothing".to_owned(),
        left => left,
    };
    writeln!(trace, "left: {left}").unwrap();
    expected.assert_eq(&trace);
    assert_eq!(world.nodes_without_relations(), 0);
}

#[test]
fn a_background_deletion_deletes_dependents_at_any_depth() {
    check(
        "create n/a
        create n/b < n/a
        create n/c < n/b
        delete n/a background",
        &expect![[r#"
            > create n/a
            > create n/b < n/a
            > create n/c < n/b
            > delete n/a background
            delete n/b Background
            delete n/c Background
            left: nothing
        "#]],
    );
}

#[test]
fn a_foreground_deletion_waits_for_blocking_dependents_only() {
    check(
        "create n/a
        create n/b < n/a!
        create n/c < n/b!
        create n/d < n/a
        hold n/c
        hold n/d
        delete n/a foreground
        release n/c
        release n/d",
        &expect![[r#"
            > create n/a
            > create n/b < n/a!
            > create n/c < n/b!
            > create n/d < n/a
            > hold n/c
            > hold n/d
            > delete n/a foreground
            delete n/b Foreground
            delete n/d Background
            delete n/c Background
            > release n/c
            unfinalize n/b foregroundDeletion
            unfinalize n/a foregroundDeletion
            > release n/d
            left: nothing
        "#]],
    );
}

#[test]
fn an_orphaning_deletion_removes_references() {
    check(
        "create n/a
        create n/b < n/a!
        create n/c < n/a n/b
        delete n/a orphan",
        &expect![[r#"
            > create n/a
            > create n/b < n/a!
            > create n/c < n/a n/b
            > delete n/a orphan
            unrefer n/b < n/a
            unrefer n/c < n/a
            unfinalize n/a orphan
            left: n/b n/c(n/b)
        "#]],
    );
}

#[test]
fn an_object_with_another_owner_stays() {
    check(
        "create n/a
        create n/b
        create n/c < n/a! n/b!
        delete n/a background
        delete n/b foreground",
        &expect![[r#"
            > create n/a
            > create n/b
            > create n/c < n/a! n/b!
            > delete n/a background
            unrefer n/c < n/a
            > delete n/b foreground
            delete n/c Background
            unfinalize n/b foregroundDeletion
            left: nothing
        "#]],
    );
}

#[test]
fn an_object_of_missing_owners_is_deleted() {
    check(
        "create n/a < n/missing
        create n/owner
        create n/b < n/owner:other-uid
        create n/c < n/missing n/owner
        create n/d < n/wrong-name:n/owner",
        &expect![[r#"
            > create n/a < n/missing
            delete n/a Background
            > create n/owner
            > create n/b < n/owner:other-uid
            delete n/b Background
            > create n/c < n/missing n/owner
            unrefer n/c < n/missing
            > create n/d < n/wrong-name:n/owner
            delete n/d Background
            left: n/c(n/owner) n/owner
        "#]],
    );
}

#[test]
fn an_owner_in_another_namespace_is_missing_and_reported() {
    check(
        "create m/owner
        create n/a < owner:m/owner
        create n/other
        create n/b < owner:m/owner n/other",
        &expect![[r#"
            > create m/owner
            > create n/a < owner:m/owner
            report n/a < m/owner
            delete n/a Background
            > create n/other
            > create n/b < owner:m/owner n/other
            report n/b < m/owner
            unrefer n/b < m/owner
            left: m/owner n/b(n/other) n/other
        "#]],
    );
}

#[test]
fn an_owner_without_namespace_has_dependents_everywhere() {
    check(
        "create owner
        create n/a < owner
        create other < owner
        delete owner background",
        &expect![[r#"
            > create owner
            > create n/a < owner
            > create other < owner
            > delete owner background
            delete n/a Background
            delete other Background
            left: nothing
        "#]],
    );
}

#[test]
fn an_object_without_namespace_keeps_its_namespaced_owner() {
    check(
        "create n/owner
        create a < cm/owner:n/owner
        delete n/owner background",
        &expect![[r#"
            > create n/owner
            > create a < cm/owner:n/owner
            report a < n/owner
            > delete n/owner background
            left: a(n/owner)
        "#]],
    );
}

#[test]
fn an_owner_of_a_kind_that_is_not_served_is_unclear() {
    check(
        "create n/a < Unserved/x
        create n/b
        create n/c < n/b Unserved/y
        delete n/b background",
        &expect![[r#"
            > create n/a < Unserved/x
            > create n/b
            > create n/c < n/b Unserved/y
            > delete n/b background
            left: n/a(Unserved/x) n/c(n/b,Unserved/y)
        "#]],
    );
}

#[test]
fn owners_in_a_circle_do_not_wait_for_each_other() {
    check(
        "create n/a
        create n/b < n/a!
        refer n/a < n/b!
        delete n/a foreground",
        &expect![[r#"
            > create n/a
            > create n/b < n/a!
            > refer n/a < n/b!
            > delete n/a foreground
            unblock n/b
            delete n/b Foreground
            unfinalize n/a foregroundDeletion
            unfinalize n/b foregroundDeletion
            left: nothing
        "#]],
    );
}

#[test]
fn a_finalizer_of_the_object_selects_the_policy() {
    check(
        "create n/a
        create n/b < n/a
        finalize n/b orphan
        create n/c < n/b
        delete n/a background",
        &expect![[r#"
            > create n/a
            > create n/b < n/a
            > finalize n/b orphan
            > create n/c < n/b
            > delete n/a background
            delete n/b Orphan
            unrefer n/c < n/b
            unfinalize n/b orphan
            left: n/c
        "#]],
    );
}

#[test]
fn a_dependent_that_is_added_to_a_waiting_owner_is_deleted() {
    check(
        "create n/a
        create n/b < n/a!
        hold n/b
        delete n/a foreground
        create n/c < n/a!
        release n/b",
        &expect![[r#"
            > create n/a
            > create n/b < n/a!
            > hold n/b
            > delete n/a foreground
            delete n/b Background
            > create n/c < n/a!
            delete n/c Background
            > release n/b
            unfinalize n/a foregroundDeletion
            left: nothing
        "#]],
    );
}

#[test]
fn a_dependent_that_no_longer_blocks_releases_its_owner() {
    check(
        "create n/a
        create n/b < n/a!
        hold n/b
        delete n/a foreground
        refer n/b < n/a",
        &expect![[r#"
            > create n/a
            > create n/b < n/a!
            > hold n/b
            > delete n/a foreground
            delete n/b Background
            > refer n/b < n/a
            unfinalize n/a foregroundDeletion
            left: n/b†(n/a)
        "#]],
    );
}

#[test]
fn a_rebuilt_graph_continues() {
    check(
        "create n/a
        create n/b < n/a!
        create n/c < n/b!
        hold n/c
        delete n/a foreground
        restart
        release n/c",
        &expect![[r#"
            > create n/a
            > create n/b < n/a!
            > create n/c < n/b!
            > hold n/c
            > delete n/a foreground
            delete n/b Foreground
            delete n/c Background
            > restart
            > release n/c
            unfinalize n/b foregroundDeletion
            unfinalize n/a foregroundDeletion
            left: nothing
        "#]],
    );
}
