//! Tests snapshots of the store, and reading from the store while it changes.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use super::*;

#[test]
fn an_entry_takes_no_more_than_a_handle_and_its_source() {
    assert_eq!(size_of::<entry::Entry<K>>(), 16);
}

#[test]
fn a_snapshot_does_not_change_while_the_store_does() {
    let (indexer, mut writer) = by_colour();
    writer.apply(batch(
        0,
        [list(3, [object("a/x@1 red"), object("a/y@2 red")])],
    ));
    let before = indexer.snapshot();
    assert!(!indexer.is_empty());
    writer.apply(batch(
        0,
        [
            DeltaKind::Updated(object("a/x@4 blue")),
            deleted("a/y@5"),
            DeltaKind::Added(object("b/z@6 red")),
            DeltaKind::Added(broken("b/w@7")),
        ],
    ));
    writer
        .add_indexers(Indexers::new().with("late", colours))
        .unwrap();
    let after = indexer.snapshot();
    writer.apply(batch(0, [list(9, [])]));

    assert_eq!(format!("{before:?}"), "[a/x@1, a/y@2]");
    assert_eq!(index(&before, "colour"), "red: [a/x, a/y]");
    assert_eq!(before.revision(), ResourceVersion::from(3));
    assert_eq!(before.broken_count(), 0);
    assert!(before.index_values("late").is_err());
    let names = |snapshot: &Snapshot<K>| snapshot.index_names().join(", ");
    assert_eq!(names(&before), "colour, namespace");
    assert_eq!(names(&after), "colour, late, namespace");
    assert_eq!(format!("{after:?}"), "[a/x@4, b/w@7 (broken), b/z@6]");
    assert_eq!(index(&after, "colour"), "blue: [a/x], red: [b/z]");
    assert_eq!(index(&after, "late"), "blue: [a/x], red: [b/z]");
    assert!(indexer.is_empty() && indexer.snapshot().is_empty());
    assert!(!before.is_empty());
}

#[test]
fn readers_see_all_of_a_batch_or_nothing() {
    let reader: Arc<OnceLock<Indexer<K>>> = Arc::default();
    let seen = Arc::new(AtomicUsize::new(0));
    let spy = {
        let (reader, seen) = (Arc::clone(&reader), Arc::clone(&seen));
        move |_: &K| {
            // Index functions run while a batch is applied.
            let indexer = reader.get().unwrap();
            assert_eq!(indexer.len(), 1);
            assert_eq!(indexer.snapshot().revision(), ResourceVersion::from(1));
            seen.fetch_add(1, Ordering::Relaxed);
            [""; 0]
        }
    };
    let (indexer, mut writer) = new(Indexers::new()).unwrap();
    writer.add(map("a/x@1")).unwrap();
    reader.set(indexer.clone()).unwrap();
    let errors = writer.add_indexers(Indexers::new().with("spy", spy));
    assert_eq!(errors, Ok(Vec::new()));
    let kinds = ["add a/y@2", "add a/z@3", "list 4: a/w@4 | a/v@5"].map(kind);
    let applied = writer.apply(batch(0, kinds));
    assert_eq!(applied.index_errors, []);
    assert_eq!(seen.load(Ordering::Relaxed), 5);
    assert_eq!(format!("{indexer:?}"), "[a/v@5, a/w@4]");
}

#[test]
fn a_namespace_has_its_objects_in_order_and_none_of_a_longer_name() {
    let (indexer, mut writer) = new(Indexers::new()).unwrap();
    for text in ["a-b/x", "a/z", "b/x", "top", "a/x", "aa/x", "a.b/x", "zz"] {
        writer.add(map(text)).unwrap();
    }
    let snapshot = indexer.snapshot();
    assert_eq!(
        format!(
            "{:?}",
            snapshot.iter().map(Object::object_name).collect::<Vec<_>>()
        ),
        "[top, zz, a/x, a/z, a-b/x, a.b/x, aa/x, b/x]"
    );
    for (namespace, names) in [
        ("a", "[a/x, a/z]"),
        ("a-b", "[a-b/x]"),
        ("aa", "[aa/x]"),
        ("b", "[b/x]"),
        ("c", "[]"),
        // Cluster-scoped objects have the same value as in client-go.
        ("", "[top, zz]"),
    ] {
        let keys = snapshot.index_keys(NAMESPACE, namespace).unwrap();
        assert_eq!(format!("{keys:?}"), names, "index_keys of {namespace:?}");
        let objects = snapshot.by_index(NAMESPACE, namespace).unwrap();
        let objects: Vec<_> = objects.map(Object::object_name).collect();
        assert_eq!(format!("{objects:?}"), names, "by_index of {namespace:?}");
        let view = snapshot.namespace(namespace);
        let objects: Vec<_> = view.iter().map(Object::object_name).collect();
        assert_eq!(format!("{objects:?}"), names, "namespace {namespace:?}");
    }
    let values = snapshot.index_values(NAMESPACE).unwrap();
    assert_eq!(
        format!("{values:?}"),
        r#"["", "a", "a-b", "a.b", "aa", "b"]"#
    );
    assert!(snapshot.namespace("a").get("z").is_some());
    assert!(snapshot.namespace("a-b").get("z").is_none());
    let neighbours = snapshot.index(NAMESPACE, &object("a/new")).unwrap();
    assert_eq!(format!("{neighbours:?}"), "[a/x@, a/z@]");
    assert_eq!(snapshot.index(NAMESPACE, &object("new")).unwrap().len(), 2);
}

#[test]
fn a_walk_can_pause_after_any_name() {
    let (indexer, mut writer) = by_colour();
    let objects = [object("a/x@1"), broken("a/y@2"), object("b/x@3")];
    writer.apply(batch(0, [list(3, objects)]));
    let snapshot = indexer.snapshot();
    let after = |text: &str| snapshot.after(Some(&name(text))).map(Object::name);
    assert_eq!(snapshot.after(None).unwrap().name(), "x");
    assert_eq!(after("a/x"), Some("x"), "the broken object is skipped");
    assert_eq!(after("a/gone"), Some("x"));
    assert_eq!(after("b/x"), None);
}

#[test]
fn a_hundred_thousand_objects_are_listed_by_index_by_namespace_and_whole() {
    const ALL: usize = 100_000;
    let (indexer, mut writer) = by_colour();
    let object = |n: usize| {
        let colour = if n.is_multiple_of(10) { "red" } else { "blue" };
        object(&format!("ns-{}/o{n:06}@{} {colour}", n % 100, n + 1))
    };
    writer.apply(batch(0, [list(ALL as u64, (0..ALL).map(object))]));
    let snapshot = indexer.snapshot();
    assert_eq!((snapshot.len(), snapshot.iter().count()), (ALL, ALL));
    assert_eq!(
        snapshot.index_keys("colour", "red").unwrap().len(),
        ALL / 10
    );
    assert_eq!(
        snapshot.by_index("colour", "blue").unwrap().count(),
        ALL / 10 * 9
    );
    assert_eq!(snapshot.by_index("colour", "green").unwrap().count(), 0);
    assert_eq!(snapshot.namespace("ns-7").iter().count(), ALL / 100);
    assert!(snapshot.iter().map(Object::object_name).is_sorted());

    let half = (0..ALL).step_by(2).map(object);
    writer.apply(batch(0, [list(ALL as u64 + 1, half)]));
    assert_eq!(indexer.len(), ALL / 2);
    assert_eq!(indexer.index_keys("colour", "red").unwrap().len(), ALL / 10);
    assert_eq!(snapshot.len(), ALL);
}

#[test]
fn the_writer_frees_objects_replaced_while_a_reader_held_them() {
    let (indexer, mut writer) = by_colour();
    let mut replaced_under_a_reader = |clear: fn(&mut IndexerWriter<K>)| {
        writer.add(map("a/x@1 red")).unwrap();
        let object = indexer.get(&name("a/x")).unwrap().get();
        let object = Arc::downgrade(&object.unwrap());
        let reader = indexer.snapshot();
        clear(&mut writer);
        writer.add(map("a/y@3")).unwrap();
        assert!(object.upgrade().is_some(), "the reader holds the object");
        drop(reader);
        assert!(
            object.upgrade().is_some(),
            "the reader does not free the object"
        );
        writer.add(map("a/y@4")).unwrap();
        assert!(object.upgrade().is_none(), "the writer frees the object");
    };
    replaced_under_a_reader(|writer| writer.replace([], 2).unwrap());
    replaced_under_a_reader(|writer| drop(writer.apply(batch(0, [kind("list 2:")]))));

    writer.add(map("a/x@5")).unwrap();
    let object = indexer.get(&name("a/x")).unwrap().get();
    let object = Arc::downgrade(&object.unwrap());
    writer.replace([], 6).unwrap();
    assert!(object.upgrade().is_none(), "freed at once without a reader");
}
