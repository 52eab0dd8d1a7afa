//! Tests which changes the store reports for handlers when it applies a batch.

use super::*;

#[test]
fn a_change_is_added_or_updated_by_the_stored_state() {
    check(
        "add a/x@1; update a/y@2
         update a/x@3; add a/y@4
         relisted a/x@3; relisted a/z@5",
        &expect![[r#"
            add a/x@1
            add a/y@2
            update a/x@1 → 3 (Watch)
            update a/y@2 → 4 (Watch)
            update a/x@3 → 3 (Relist)
            add a/z@5
            [a/x@3, a/y@4, a/z@5]
        "#]],
    );
}

#[test]
fn a_deletion_is_reported_with_the_last_state_if_the_object_was_reported() {
    check(
        "delete a/x@1; missing a/x
         add a/x@2 red; add a/y@3 red
         delete a/x@4; missing a/y
         delete a/x@4",
        &expect![[r#"
            add a/x@2
            add a/y@3
            delete a/x@4
            missing a/y, last known Some(a/y@3)
            []
        "#]],
    );
}

#[test]
fn a_list_reports_removed_names_in_order_and_its_objects_in_its_order() {
    check(
        "add b/x@1 red; add a/y@2 red; add a/x@3
         list 9: c/z@7 blue | a/y@2 red | a/w@8
         list 10:",
        &expect![[r#"
            add b/x@1
            add a/y@2
            add a/x@3
            [a/x@3, a/y@2, b/x@1] → [a/w@8, a/y@2, c/z@7]: gone [a/x, b/x], changed c/z, same a/y, changed a/w
            [a/w@8, a/y@2, c/z@7] → []: gone [a/w, a/y, c/z]
            []
        "#]],
    );
}

#[test]
fn a_duplicate_name_in_a_list_is_reported_once_with_its_last_state() {
    check(
        "add a/x@1 red
         list 9: a/x@7 blue | a/y@3 | a/x@8 green | a/y@3",
        &expect![[r#"
            add a/x@1
            [a/x@1] → [a/x@8, a/y@3]: gone [], changed a/x, changed a/y
            [a/x@8, a/y@3] green: [a/x]
        "#]],
    );
}

#[test]
fn a_list_deletes_only_objects_of_its_own_source() {
    check(
        "list 5: a/x@1 | a/y@2
         1: list 6: b/x@3
         list 7: a/y@2
         1: list 8:",
        &expect![[r#"
            [] → [a/x@1, a/y@2]: gone [], changed a/x, changed a/y
            [a/x@1, a/y@2] → [a/x@1, a/y@2, b/x@3]: gone [], changed b/x
            [a/x@1, a/y@2, b/x@3] → [a/y@2, b/x@3]: gone [a/x], same a/y
            [a/y@2, b/x@3] → [a/y@2]: gone [b/x]
            [a/y@2]
        "#]],
    );
}

#[test]
fn an_object_of_another_source_is_neither_deleted_nor_unchanged() {
    check(
        "add a/x@1 red; add a/y@1 red
         1: update a/x@2 blue; list 3: a/x@2 blue | a/y@1 green
         delete a/x@4; missing a/y
         list 5:
         1: missing a/x",
        &expect![[r#"
            add a/x@1
            add a/y@1
            update a/x@1 → 2 (Watch)
            [a/x@2, a/y@1] → [a/x@2, a/y@1]: gone [], same a/x, changed a/y
            [a/x@2, a/y@1] → [a/x@2, a/y@1]: gone []
            missing a/x, last known Some(a/x@2)
            [a/y@1] green: [a/y]
        "#]],
    );
}

#[test]
fn a_resync_shows_the_store_between_the_changes_around_it() {
    check(
        "add a/x@1; resync; add a/y@2",
        &expect![[r#"
            add a/x@1
            resync [a/x@1]
            add a/y@2
            [a/x@1, a/y@2]
        "#]],
    );
}

#[test]
fn a_resync_of_one_object_is_an_update_to_the_same_state() {
    let (indexer, mut writer) = by_colour();
    writer.apply(batch(0, [DeltaKind::Added(object("a/x@1 red"))]));
    let kept = indexer.get(&name("a/x")).unwrap();
    let applied = writer.apply(batch(0, [DeltaKind::Sync(kept.clone())]));
    let [
        Change::Updated {
            old,
            new,
            cause: Cause::Resync,
        },
    ] = applied.changes.as_slice()
    else {
        panic!("{applied:?}");
    };
    assert!(old.is_same(&kept) && new.is_same(&kept));
}

#[test]
fn the_first_list_is_flagged_and_ends_with_its_completion() {
    let (_, mut writer) = by_colour();
    let mut first = batch(3, [DeltaKind::Replaced(object("a/x@1"))]);
    first.in_initial_list = true;
    first.completes = Some(SourceId::new(3));
    let changes = writer.apply(first).changes;
    let trace: Vec<_> = changes.iter().map(show).collect();
    assert_eq!(trace, ["add a/x@1 (initial)", "source 3 listed"]);

    let mut whole = batch(3, [list(2, [object("a/y@2")])]);
    whole.in_initial_list = true;
    assert!(matches!(
        writer.apply(whole).changes.as_slice(),
        [Change::Replaced {
            in_initial_list: true,
            ..
        }]
    ));
    let later = batch(3, [list(3, [object("a/y@2")])]);
    assert!(matches!(
        writer.apply(later).changes.as_slice(),
        [Change::Replaced {
            in_initial_list: false,
            ..
        }]
    ));
}
