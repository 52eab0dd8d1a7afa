//! Tests the contents of indices. Some indices are added to an empty store, and others to a store with
//! objects.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn a_value_is_removed_with_its_last_object() {
    let (indexer, mut writer) = by_colour();
    writer.add(map("a/x red")).unwrap();
    writer.add(map("a/y red")).unwrap();
    writer.delete(&name("a/x"));
    assert_eq!(index(&indexer.snapshot(), "colour"), "red: [a/y]");
    writer.delete(&name("a/y"));
    assert!(indexer.index_values("colour").unwrap().is_empty());
    writer.add(map("a/x blue")).unwrap();
    writer.add(map("a/x green")).unwrap();
    assert_eq!(index(&indexer.snapshot(), "colour"), "green: [a/x]");
}

#[test]
fn an_object_is_found_by_each_of_its_values() {
    let (indexer, mut writer) = by_colour();
    for (change, expected) in [
        ("a/x red,blue", "blue: [a/x], red: [a/x]"),
        ("a/y blue,red", "blue: [a/x, a/y], red: [a/x, a/y]"),
        ("a/y blue", "blue: [a/x, a/y], red: [a/x]"),
        ("a/x", "blue: [a/y]"),
        ("a/x blue,blue,green", "blue: [a/x, a/y], green: [a/x]"),
        ("a/x green,white", "blue: [a/y], green: [a/x], white: [a/x]"),
        ("-a/y", "green: [a/x], white: [a/x]"),
        ("a/y white", "green: [a/x], white: [a/x, a/y]"),
        ("-a/x", "white: [a/y]"),
        ("-a/y", ""),
    ] {
        match change.strip_prefix('-') {
            Some(gone) => {
                assert!(writer.delete(&name(gone)).is_some());
            }
            None => {
                writer.add(map(change)).unwrap();
            }
        }
        assert_eq!(index(&indexer.snapshot(), "colour"), expected, "{change}");
    }
}

#[test]
fn indices_do_not_mix() {
    let initial = |map: &K| [map.name_any()[..1].to_owned()];
    let (indexer, mut writer) = new(Indexers::new()
        .with("colour", colours)
        .with("initial", initial))
    .unwrap();
    writer
        .replace([map("a/red x"), map("a/x red"), map("b/xy red,x")], 1)
        .unwrap();
    let snapshot = indexer.snapshot();
    assert_eq!(
        index(&snapshot, "colour"),
        "red: [a/x, b/xy], x: [a/red, b/xy]"
    );
    assert_eq!(index(&snapshot, "initial"), "r: [a/red], x: [a/x, b/xy]");
    assert_eq!(
        format!("{:?}", snapshot.index_names()),
        r#"["colour", "initial", "namespace"]"#
    );
    writer.add(map("a/red")).unwrap();
    let snapshot = indexer.snapshot();
    assert_eq!(index(&snapshot, "colour"), "red: [a/x, b/xy], x: [b/xy]");
    assert_eq!(index(&snapshot, "initial"), "r: [a/red], x: [a/x, b/xy]");
}

#[test]
fn objects_are_found_by_the_values_of_an_object_outside_the_store() {
    let (indexer, mut writer) = by_colour();
    for text in ["b/z red,blue", "a/x red", "a/y blue", "a/w green"] {
        writer.add(map(text)).unwrap();
    }
    let sharing = |text| format!("{:?}", indexer.index("colour", &object(text)).unwrap());
    assert_eq!(sharing("new red"), "[a/x@, b/z@]");
    assert_eq!(
        sharing("new red,blue"),
        "[a/x@, a/y@, b/z@]",
        "each once, in order"
    );
    assert_eq!(sharing("new white"), "[]");
    assert_eq!(sharing("new"), "[]");
    assert_eq!(
        sharing("a/x green"),
        "[a/w@]",
        "the values of the given state apply, not of the stored one"
    );
}

#[test]
fn every_read_of_a_missing_index_is_an_error() {
    let (indexer, _) = by_colour();
    let error = NoSuchIndex::Name("color".to_owned());
    assert_eq!(error.to_string(), "index with name color does not exist");
    assert_eq!(indexer.by_index("color", "red").unwrap_err(), error);
    assert_eq!(indexer.index_keys("color", "red").unwrap_err(), error);
    assert_eq!(indexer.index_values("color").unwrap_err(), error);
    assert_eq!(indexer.index("color", &object("x")).unwrap_err(), error);
}

#[test]
fn an_index_added_later_equals_one_added_at_the_start() {
    let (indexer, mut writer) = new(Indexers::new()).unwrap();
    let objects = [
        object("a/x@1 red"),
        broken("a/y@2"),
        object("b/x@3 red,blue"),
    ];
    writer.apply(batch(0, [list(3, objects)]));
    let before = indexer.get(&name("a/x")).unwrap();
    let errors = writer.add_indexers(Indexers::new().with("colour", colours));
    assert_eq!(errors, Ok(Vec::new()));
    assert!(indexer.get(&name("a/x")).unwrap().is_same(&before));
    assert_eq!(
        index(&indexer.snapshot(), "colour"),
        "blue: [b/x], red: [a/x, b/x]"
    );
    assert_eq!(indexer.snapshot().broken_count(), 1);

    writer
        .add_indexers(Indexers::new().with("again", colours))
        .unwrap();
    writer.apply(batch(
        0,
        [
            DeltaKind::Updated(object("b/x@4 green")),
            DeltaKind::Updated(object("a/y@5 red")),
            deleted("a/x@6"),
        ],
    ));
    for name in ["colour", "again"] {
        assert_eq!(index(&indexer.snapshot(), name), "green: [b/x], red: [a/y]");
    }
}

#[test]
fn a_duplicate_index_name_is_rejected_and_no_index_is_added() {
    let (indexer, mut writer) = by_colour();
    writer.add(map("a/x red")).unwrap();
    let none = |_: &K| [""; 0];
    let twice = Indexers::new().with("twice", none).with("twice", none);
    for (indexers, taken) in [
        (
            Indexers::new().with("new", none).with("colour", none),
            "colour",
        ),
        (twice, "twice"),
        (
            Indexers::new().with("new", none).with(NAMESPACE, none),
            NAMESPACE,
        ),
    ] {
        let error = writer.add_indexers(indexers).unwrap_err();
        assert_eq!(error, DuplicateIndex(taken.to_owned()));
        assert_eq!(
            error.to_string(),
            format!("an index with name {taken} already exists; choose another name")
        );
        let names = indexer.snapshot().index_names();
        assert_eq!(format!("{names:?}"), r#"["colour", "namespace"]"#);
    }
    assert_eq!(index(&indexer.snapshot(), "colour"), "red: [a/x]");
    assert_eq!(index(&indexer.snapshot(), NAMESPACE), "a: [a/x]");
}

#[test]
fn an_index_function_is_called_once_per_state_and_never_on_removal() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = {
        let calls = Arc::clone(&calls);
        move |map: &K| {
            calls.fetch_add(1, Ordering::Relaxed);
            colours(map)
        }
    };
    let (indexer, mut writer) = new(Indexers::new().with("colour", counted)).unwrap();
    let calls_for = |writer: &mut IndexerWriter<K>, kind| {
        writer.apply(batch(0, [kind]));
        calls.swap(0, Ordering::Relaxed)
    };
    assert_eq!(calls_for(&mut writer, kind("add a/x@1 red")), 1);
    assert_eq!(calls_for(&mut writer, kind("update a/x@2 red")), 1);
    let kept = indexer.get(&name("a/x")).unwrap();
    assert_eq!(calls_for(&mut writer, DeltaKind::Sync(kept)), 0);
    assert_eq!(
        calls_for(&mut writer, kind("list 3: a/x@2 red | a/y@3 red")),
        1
    );
    assert_eq!(calls_for(&mut writer, kind("update !a/y@4")), 0);
    assert_eq!(calls_for(&mut writer, kind("delete a/x@5")), 0);
    assert_eq!(calls_for(&mut writer, kind("list 6:")), 0);
    assert_eq!(calls_for(&mut writer, kind("resync")), 0);
    assert!(indexer.index_values("colour").unwrap().is_empty());
}

#[test]
fn unchanged_values_write_no_index() {
    let (_, mut writer) = by_colour();
    writer.apply(batch(0, [kind("add a/x@1 red,blue"), kind("add a/y@2")]));
    let before = Arc::clone(&writer.root.indices);
    let same = [
        "update a/x@3 blue,red",
        "relisted a/x@4 red,red,blue",
        "update a/y@5",
        "delete a/y@6",
        "list 7: a/x@7 red,blue | a/z@7",
        "resync",
        "bookmark 8",
    ];
    writer.apply(batch(0, same.map(kind)));
    assert!(Arc::ptr_eq(&before, &writer.root.indices));
    writer.apply(batch(0, [kind("update a/x@9 red")]));
    assert!(!Arc::ptr_eq(&before, &writer.root.indices));
}

#[test]
fn a_failed_index_function_omits_the_object_from_its_index_only() {
    let picky = |map: &K| match map.labels()["colours"].as_str() {
        "fail" => Err("no such colour"),
        "panic" => panic!("planted"),
        colour => Ok([colour.to_owned()]),
    };
    let (indexer, mut writer) = new(Indexers::new()
        .try_with("picky", picky)
        .with("colour", colours))
    .unwrap();
    let applied = writer.apply(batch(
        0,
        [kind("list 3: a/x@1 fail | a/y@2 panic | a/z@3 red")],
    ));
    let errors: Vec<_> = applied
        .index_errors
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        errors,
        [
            "a/x is not in index picky: no such colour",
            "a/y is not in index picky: the index function panicked",
        ]
    );
    let snapshot = indexer.snapshot();
    assert_eq!(index(&snapshot, "picky"), "red: [a/z]");
    assert_eq!(
        index(&snapshot, "colour"),
        "fail: [a/x], panic: [a/y], red: [a/z]"
    );
    assert_eq!(
        snapshot.index("picky", &object("new fail")).unwrap().len(),
        0
    );

    // A state for which the function fails removes the object's earlier entries.
    let applied = writer.apply(batch(
        0,
        [kind("update a/z@4 fail"), kind("update a/x@5 red")],
    ));
    assert_eq!(applied.index_errors.len(), 1);
    assert_eq!(index(&indexer.snapshot(), "picky"), "red: [a/x]");
    let late = writer.add_indexers(Indexers::new().try_with("late", picky));
    let late: Vec<_> = late
        .unwrap()
        .into_iter()
        .map(|error| error.object)
        .collect();
    assert_eq!(format!("{late:?}"), "[a/y, a/z]");
}

#[test]
fn a_new_store_rejects_two_indices_of_one_name() {
    let twice = Indexers::<K>::new().with("a", colours).with("a", colours);
    assert_eq!(new(twice).unwrap_err(), DuplicateIndex("a".to_owned()));
    let namespace = Indexers::<K>::new().with(NAMESPACE, colours);
    assert_eq!(
        new(namespace).unwrap_err(),
        DuplicateIndex(NAMESPACE.to_owned())
    );
}

#[test]
fn removing_an_index_does_not_affect_others() {
    let initial = |map: &K| [map.name_any()[..1].to_owned()];
    let (indexer, mut writer) = new(Indexers::new()
        .with("colour", colours)
        .with("initial", initial))
    .unwrap();
    writer.add(map("a/x red")).unwrap();
    let before = indexer.snapshot();
    assert_eq!(writer.remove_index("colour"), Ok(()));
    let gone = NotRemovable::NoSuchIndex(NoSuchIndex::Name("colour".to_owned()));
    assert_eq!(writer.remove_index("colour"), Err(gone));
    let refused = writer.remove_index(NAMESPACE).unwrap_err();
    assert_eq!(refused, NotRemovable::Namespace);
    assert_eq!(
        refused.to_string(),
        "the index by namespace can't be removed: the store needs it"
    );

    writer.add(map("a/yy blue")).unwrap();
    writer.delete(&name("a/x"));
    let snapshot = indexer.snapshot();
    assert_eq!(index(&snapshot, "initial"), "y: [a/yy]");
    assert_eq!(index(&snapshot, NAMESPACE), "a: [a/yy]");
    let names = format!("{:?}", snapshot.index_names());
    assert_eq!(names, r#"["initial", "namespace"]"#);
    assert_eq!(index(&before, "colour"), "red: [a/x]");
}

#[test]
fn predefined_indices_cover_labels_owners_and_metadata() {
    let owned = |text: &str, uids: &[(&str, Option<bool>)]| {
        let mut map = map(text);
        let owners = uids.iter().map(|(uid, controller)| OwnerReference {
            uid: (*uid).to_owned(),
            controller: *controller,
            ..OwnerReference::default()
        });
        map.metadata.owner_references = Some(owners.collect());
        map
    };
    let (indexer, mut writer) = new(Indexers::new()
        .with_label("colour", "colours")
        .with_label("shape", "shape")
        .with_owners("owner")
        .with_controller("controller")
        .with_metadata("name", |object| [object.name().to_owned()]))
    .unwrap();
    let two = [("u1", Some(false)), ("u2", Some(true))];
    writer.add(owned("a/x red", &two)).unwrap();
    writer.add(owned("a/y red", &[("u1", None)])).unwrap();
    writer.add(map("b/x blue")).unwrap();
    writer.apply(batch(0, [kind("add !b/z@9")]));
    let snapshot = indexer.snapshot();
    assert_eq!(index(&snapshot, "colour"), "blue: [b/x], red: [a/x, a/y]");
    assert_eq!(index(&snapshot, "shape"), "");
    assert_eq!(index(&snapshot, "owner"), "u1: [a/x, a/y], u2: [a/x]");
    assert_eq!(index(&snapshot, "controller"), "u2: [a/x]");
    assert_eq!(index(&snapshot, "name"), "x: [a/x, b/x], y: [a/y]");
}

#[test]
fn indices_filled_elsewhere_catch_up_with_the_store() {
    let picky = |map: &K| match colours(map).pop() {
        Some(colour) if colour == "fail" => Err("no such colour"),
        colour => Ok(colour),
    };
    let (indexer, mut writer) = new(Indexers::new()).unwrap();
    let first = "list 5: a/u@1 fail | a/v@2 fail | a/w@3 red | a/x@4 red | a/y@5 red";
    writer.apply(batch(0, [kind(first)]));
    let late = Indexers::new().try_with("late", picky);
    let mut build = IndexBuild::new(late.clone(), &indexer.snapshot()).unwrap();
    let approach = build.approach(|| indexer.snapshot());
    approach
        .now_or_never()
        .expect("a few objects are indexed without a yield");
    let meanwhile = [
        "update a/u@6 blue",
        "update a/w@7 fail",
        "update a/x@8 blue",
        "delete a/y@9",
        "add a/z@10 red",
    ];
    writer.apply(batch(0, meanwhile.map(kind)));
    let twin = IndexBuild::new(late, &indexer.snapshot()).unwrap();
    let (tokens, errors) = writer.install(build).unwrap();
    assert_eq!(tokens, [indexer.snapshot().index_token("late").unwrap()]);
    let failed: Vec<_> = errors.iter().map(|error| error.object.as_str()).collect();
    assert_eq!(failed, ["a/v", "a/w"], "the errors of the current states");
    let expected = "blue: [a/u, a/x], red: [a/z]";
    assert_eq!(index(&indexer.snapshot(), "late"), expected);

    let error = writer.install(twin).unwrap_err();
    assert_eq!(
        error,
        DuplicateIndex("late".to_owned()),
        "the name is used since then"
    );
    assert_eq!(index(&indexer.snapshot(), "late"), expected);
}
