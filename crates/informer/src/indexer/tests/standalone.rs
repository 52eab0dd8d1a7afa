//! Tests a store that application code writes directly, without an informer.

use super::*;

#[test]
fn a_standalone_store_adds_replaces_and_deletes() {
    let (indexer, mut writer) = by_colour();
    let added = writer.add(map("a/x@1 red")).unwrap().unwrap();
    assert_eq!(show(&added), "add a/x@1");
    let updated = writer.add(map("a/x@2 blue")).unwrap().unwrap();
    assert_eq!(show(&updated), "update a/x@1 → 2 (Watch)");
    assert_eq!(indexer.snapshot().revision(), ResourceVersion::from(2));
    assert!(writer.delete(&name("a/never")).is_none());

    writer.replace([map("a/y@3 red"), map("a/z@4")], 7).unwrap();
    assert_eq!(format!("{:?}", indexer.list()), "[a/y@3, a/z@4]");
    assert_eq!(index(&indexer.snapshot(), "colour"), "red: [a/y]");
    assert_eq!(indexer.snapshot().revision(), ResourceVersion::from(7));

    let nameless = writer.replace([map("a/w@8"), K::default()], 9).unwrap_err();
    assert_eq!(*nameless.0, K::default(), "the object is returned");
    writer.add(K::default()).unwrap_err();
    assert_eq!(format!("{:?}", indexer.list()), "[a/y@3, a/z@4]");

    let gone = writer.delete(&name("a/y")).unwrap();
    assert_eq!(show(&gone), "missing a/y, last known Some(a/y@3)");
    assert_eq!(format!("{:?}", writer.snapshot()), "[a/z@4]");
    let revision = indexer.snapshot().revision();
    assert_eq!(
        revision,
        ResourceVersion::from(7),
        "a deletion by name does not change the revision"
    );
}

#[test]
fn a_standalone_store_stores_an_object_at_an_equal_revision() {
    let (indexer, mut writer) = by_colour();
    writer.replace([map("a/x@3 red")], 5).unwrap();
    for (revision, colour) in [(5, "green"), (6, "blue"), (4, "red")] {
        let given = map(&format!("a/x@3 {colour}"));
        writer.replace([given.clone()], revision).unwrap();
        let kept = indexer.get(&name("a/x")).unwrap();
        assert_eq!(kept.live(), Some(&given), "at {revision}");
        assert_eq!(
            index(&indexer.snapshot(), "colour"),
            format!("{colour}: [a/x]")
        );
    }
}
