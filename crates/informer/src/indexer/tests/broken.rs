//! Tests how the store handles broken objects, which are objects that failed to decode.

use super::*;

#[test]
fn broken_states_of_an_object_are_not_reported() {
    check(
        "add !a/x@1; update a/x@2
         update !a/x@3; update !a/x@4; update a/x@5
         update !a/x@6; missing a/x
         add !a/x@8; missing a/x",
        &expect![[r#"
            add a/x@2
            update a/x@2 → 5 (Watch)
            missing a/x, last known Some(a/x@5)
            []
        "#]],
    );
}

#[test]
fn a_deletion_with_a_broken_state_is_reported_with_the_last_valid_one() {
    let (_, mut writer) = by_colour();
    writer.apply(batch(
        0,
        ["add a/x@1", "update !a/x@2", "add !a/y@3"].map(kind),
    ));
    let gone = ["a/x@2", "a/y@3"].map(|text| {
        let last_known = broken(text);
        DeltaKind::Deleted(Deleted::FinalStateUnknown {
            name: last_known.object_name().clone(),
            last_known: Some(last_known),
        })
    });
    let changes = writer.apply(batch(0, gone)).changes;
    let trace: Vec<_> = changes.iter().map(show).collect();
    assert_eq!(trace, ["missing a/x, last known Some(a/x@1)"]);
    assert_eq!(writer.snapshot().broken_count(), 0);
}

#[test]
fn a_broken_object_is_counted_and_found_by_name_only() {
    let (indexer, mut writer) = by_colour();
    writer.apply(batch(
        0,
        [
            list(9, [object("a/x@1 red"), broken("a/y@2")]),
            DeltaKind::Updated(broken("a/x@10")),
            DeltaKind::Added(object("a/z@11 red")),
        ],
    ));
    let snapshot = indexer.snapshot();
    let counts = (snapshot.len(), snapshot.broken_count(), indexer.len());
    assert_eq!(counts, (1, 2, 1));
    let broken_names: Vec<_> = snapshot.broken().map(|(name, _)| name.as_str()).collect();
    assert_eq!(broken_names, ["a/x", "a/y"]);
    let found = snapshot.get(&name("a/x")).unwrap();
    assert_eq!(found.revision(), &ResourceVersion::from(10));
    assert!(found.get().is_err());
    assert_eq!(
        format!("{:?}", snapshot.iter().collect::<Vec<_>>()),
        "[a/z@11]"
    );
    assert_eq!(index(&snapshot, "colour"), "red: [a/z]");
    assert_eq!(index(&snapshot, NAMESPACE), "a: [a/z]");
    assert_eq!(snapshot.namespace("a").iter().count(), 1);
    assert!(snapshot.index("colour", found).unwrap().is_empty());

    // Every way out of the broken state is counted once: a valid state, a removal, a list without the object.
    let after = |writer: &mut IndexerWriter<K>, kind| {
        writer.apply(batch(0, [kind]));
        (writer.snapshot().len(), writer.snapshot().broken_count())
    };
    let healed = DeltaKind::Updated(object("a/y@12 red"));
    assert_eq!(after(&mut writer, healed), (2, 1));
    assert_eq!(after(&mut writer, missing("a/x")), (2, 0));
    let twice = DeltaKind::Updated(broken("a/z@13"));
    assert_eq!(after(&mut writer, twice), (1, 1));
    let twice = DeltaKind::Updated(broken("a/z@14"));
    assert_eq!(after(&mut writer, twice), (1, 1));
    assert_eq!(after(&mut writer, list(15, [])), (0, 0));
}

#[test]
fn a_list_keeps_a_valid_state_of_an_unchanged_revision_and_replaces_a_broken_one() {
    check(
        "add a/x@1 red; add !a/y@2; update a/z@3; update !a/z@4
         list 9: !a/x@1 | a/y@2 | !a/z@4
         list 10: a/x@1 | a/y@2 | a/z@4 blue",
        &expect![[r#"
            add a/x@1
            add a/z@3
            [a/x@1, a/y@2 (broken), a/z@4 (broken)] → [a/x@1, a/y@2, a/z@4 (broken)]: gone [], same a/x, changed a/y, changed a/z
            [a/x@1, a/y@2, a/z@4 (broken)] → [a/x@1, a/y@2, a/z@4]: gone [], same a/x, same a/y, changed a/z
            [a/x@1, a/y@2, a/z@4] blue: [a/z], red: [a/x]
        "#]],
    );
}
