//! Tests lists and resyncs that deliver an object which the store already contains.
//!
//! The delivered state is either changed or unchanged.

use super::*;

#[test]
fn a_duplicate_name_in_a_list_has_changed_if_either_state_is_new() {
    check(
        "add a/x@1; add a/y@1; add a/z@1
         list 9: a/x@1 | a/x@8 | a/y@8 | a/y@8 | a/z@1 | a/z@1",
        &expect![[r#"
            add a/x@1
            add a/y@1
            add a/z@1
            [a/x@1, a/y@1, a/z@1] → [a/x@8, a/y@8, a/z@1]: gone [], changed a/x, changed a/y, same a/z
            [a/x@8, a/y@8, a/z@1]
        "#]],
    );
}

#[test]
fn a_resync_with_a_state_that_is_not_stored_is_reported_as_a_relist() {
    let (indexer, mut writer) = by_colour();
    writer.apply(batch(0, ["add a/x@1", "add a/y@1"].map(kind)));
    let resynced = ["a/x@2", "a/y@1", "a/z@3"].map(|text| DeltaKind::Sync(object(text)));
    let changes = writer.apply(batch(0, resynced)).changes;
    let trace: Vec<_> = changes.iter().map(show).collect();
    assert_eq!(
        trace,
        [
            "update a/x@1 → 2 (Relist)",
            "update a/y@1 → 1 (Resync)",
            "add a/z@3",
        ]
    );
    assert_eq!(format!("{indexer:?}"), "[a/x@2, a/y@1, a/z@3]");
}

#[test]
fn the_broken_version_grows_with_changes_of_broken_objects_only() {
    let (indexer, mut writer) = by_colour();
    let mut before = indexer.snapshot().broken_version();
    for (change, is_other) in [
        ("add a/x@1 red", false),
        ("add !a/y@2", true),
        ("add !a/z@3", true),
        ("update a/x@4", false),
        ("update !a/y@5", true),
        ("update a/y@6", true),
        ("update a/y@7", false),
        ("delete a/y@8", false),
        ("resync", false),
        ("list 9: a/x@4 | !a/z@3", true),
        ("missing a/x", false),
        ("missing a/z", true),
    ] {
        writer.apply(batch(0, [kind(change)]));
        let version = indexer.snapshot().broken_version();
        assert!(version >= before, "{change}: no version is used again");
        assert_eq!(version > before, is_other, "{change}");
        before = version;
    }
}
