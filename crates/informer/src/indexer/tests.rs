//! Tests of the content of a store after each write, and of the reported changes.

mod brought_back;
mod index;
mod index_model;
mod index_reference;
mod model;
mod put_back;
mod query;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use expect_test::{Expect, expect};
use futures_util::FutureExt as _;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube_core::{ObjectMeta, ResourceExt};

use super::*;
use crate::{
    codec::{Identity, IdentityMetadata},
    object::{DecodeError, Deleted, Known, ResourceVersion, SourceId},
    queue::Batch,
    reflector::DeltaKind,
};

/// The test type: its label `colours` has the values of the index with that name.
type K = ConfigMap;

/// Parses `namespace/name@revision colour,colour`; all parts except the name are optional.
fn map(text: &str) -> K {
    let (text, colours) = text.split_once(' ').unwrap_or((text, ""));
    let (name, revision) = text.split_once('@').unwrap_or((text, ""));
    let name: ObjectName = name.parse().unwrap();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.name().to_owned()),
            namespace: name.namespace().map(str::to_owned),
            resource_version: Some(revision.to_owned()).filter(|revision| !revision.is_empty()),
            labels: Some([("colours".to_owned(), colours.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn object(text: &str) -> Object<K> {
    Object::new(map(text)).unwrap()
}

/// A broken object with this name and revision.
fn broken(text: &str) -> Object<K> {
    let (name, revision) = text.split_once('@').unwrap();
    let name: ObjectName = name.parse().unwrap();
    let head = Identity {
        metadata: IdentityMetadata {
            resource_version: revision.into(),
            ..IdentityMetadata::default()
        },
    };
    let error = DecodeError::new(Some(name.clone()), "data", "planted");
    Object::from_broken(name, &head, error)
}

fn colours(map: &K) -> Vec<String> {
    let colours = map.labels().get("colours").map_or("", String::as_str);
    let colours = colours.split(',').filter(|colour| !colour.is_empty());
    colours.map(str::to_owned).collect()
}

fn name(text: &str) -> ObjectName {
    text.parse().unwrap()
}

fn by_colour() -> (Indexer<K>, IndexerWriter<K>) {
    new(Indexers::new().with("colour", colours)).unwrap()
}

/// Returns every value of an index with its names.
fn index(snapshot: &Snapshot<K>, index: &str) -> String {
    let values = snapshot.index_values(index).unwrap();
    let lines = values.iter().map(|value| {
        let names = snapshot.index_keys(index, value).unwrap();
        let objects: Vec<_> = snapshot.by_index(index, value).unwrap().collect();
        let found: Vec<_> = objects.iter().map(|object| object.object_name()).collect();
        assert_eq!(
            found,
            names.iter().collect::<Vec<_>>(),
            "names and objects agree"
        );
        format!("{value}: {names:?}")
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn batch(source: u32, kinds: impl IntoIterator<Item = DeltaKind<K>>) -> Batch<K> {
    let deltas = kinds.into_iter();
    let deltas = deltas.map(|kind| crate::reflector::Delta::new(SourceId::new(source), kind));
    let deltas: Vec<_> = deltas.collect();
    Batch {
        reached: crate::queue::reached(&deltas),
        deltas,
        in_initial_list: false,
        completes: None,
    }
}

fn list(revision: u64, objects: impl IntoIterator<Item = Object<K>>) -> DeltaKind<K> {
    DeltaKind::ReplacedAll {
        objects: objects.into_iter().collect(),
        revision: revision.into(),
    }
}

fn deleted(text: &str) -> DeltaKind<K> {
    DeltaKind::Deleted(Deleted::Known(object(text)))
}

fn missing(text: &str) -> DeltaKind<K> {
    DeltaKind::Deleted(Deleted::FinalStateUnknown {
        name: name(text),
        last_known: None,
    })
}

/// Runs a script with one batch per line, and traces the changes and the final store.
///
/// ```text
/// add a/x@1 red; update a/x@2      deltas of source 0; also delete, missing, sync, resync, bookmark
/// 1: add a/x@3                     a delta of source 1
/// list 9: a/x@2 red | a/y@1        a whole list at revision 9
/// ```
///
/// A name with a leading `!` is a broken object.
fn check(script: &str, trace: &Expect) {
    let (indexer, mut writer) = by_colour();
    let mut lines = Vec::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (source, line) = line.strip_prefix("1: ").map_or((0, line), |line| (1, line));
        let kinds = line.split(';').map(|text| kind(text.trim()));
        let applied = writer.apply(batch(source, kinds));
        assert_eq!(applied.index_errors, []);
        lines.extend(applied.changes.iter().map(show));
    }
    let snapshot = indexer.snapshot();
    let last = format!("{snapshot:?} {}", index(&snapshot, "colour"));
    lines.push(last.trim_end().to_owned());
    trace.assert_eq(&(lines.join("\n") + "\n"));
}

fn kind(text: &str) -> DeltaKind<K> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let one = |text: &str| match text.strip_prefix('!') {
        Some(text) => broken(text),
        None => object(text),
    };
    match verb {
        "add" => DeltaKind::Added(one(rest)),
        "update" => DeltaKind::Updated(one(rest)),
        "relisted" => DeltaKind::Replaced(one(rest)),
        "delete" => deleted(rest),
        "missing" => missing(rest),
        "resync" => DeltaKind::SyncAll,
        "bookmark" => DeltaKind::Bookmark {
            revision: rest.into(),
        },
        "list" => {
            let (revision, objects) = rest.split_once(':').unwrap();
            let objects = objects.split('|').map(str::trim).filter(|o| !o.is_empty());
            list(revision.parse().unwrap(), objects.map(one))
        }
        other => panic!("unknown verb {other:?}"),
    }
}

fn show(change: &Change<K>) -> String {
    match change {
        Change::Added {
            object,
            in_initial_list: initial,
        } => format!("add {object:?}{}", if *initial { " (initial)" } else { "" }),
        Change::Updated { old, new, cause } => {
            assert_eq!(old.object_name(), new.object_name());
            format!("update {old:?} → {} ({cause:?})", new.revision())
        }
        Change::Deleted(Deleted::Known(object)) => format!("delete {object:?}"),
        Change::Deleted(Deleted::FinalStateUnknown { name, last_known }) => {
            format!("missing {name}, last known {last_known:?}")
        }
        Change::Replaced {
            old, new, changed, ..
        } => {
            let listed = changed.listed.iter().map(|(name, changed)| {
                let mark = if *changed { "changed" } else { "same" };
                format!(", {mark} {name}")
            });
            let listed: String = listed.collect();
            format!("{old:?} → {new:?}: gone {:?}{listed}", changed.gone)
        }
        Change::Resync(snapshot) => format!("resync {snapshot:?}"),
        Change::Listed(source) => format!("source {} listed", source.number()),
    }
}

// === reported changes ===

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

// === broken objects ===

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

// === sources ===

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

// === revisions ===

#[test]
fn the_revision_of_a_source_is_that_of_its_last_list_or_the_largest_since() {
    let (indexer, mut writer) = by_colour();
    let revisions = |source| {
        let snapshot = indexer.snapshot();
        let revision = snapshot.source_revision(SourceId::new(source)).to_string();
        (snapshot.revision().to_string(), revision)
    };
    let steps = [
        (0, vec![], "", ""),
        (0, vec![kind("add a/x@10")], "10", ""),
        (0, vec![kind("update a/x@10")], "10", ""),
        (0, vec![kind("update a/x@20")], "20", ""),
        (1, vec![kind("add b/x@7")], "20", "7"),
        (0, vec![kind("delete a/x@30")], "30", "7"),
        (0, vec![kind("delete a/never@31")], "31", "7"),
        // An older change is applied, but does not lower the revision; nor does one without a revision.
        (0, vec![kind("add a/x@35"), kind("add a/y@33")], "35", "7"),
        (0, vec![kind("add a/w@2")], "35", "7"),
        (0, vec![kind("update a/x"), kind("missing a/y")], "35", "7"),
        (0, vec![kind("update !a/x@36")], "36", "7"),
        (0, vec![kind("relisted a/z@3"), kind("resync")], "36", "7"),
        (1, vec![kind("bookmark 50")], "36", "50"),
        (1, vec![kind("bookmark 49")], "36", "50"),
        (0, vec![kind("list 40: a/x@12")], "40", "50"),
        (1, vec![kind("list 30:")], "40", "30"),
        (1, vec![kind("list 60:")], "40", "60"),
    ];
    for (step, (source, kinds, first, second)) in steps.into_iter().enumerate() {
        writer.apply(batch(source, kinds));
        let expected = (first.to_owned(), second.to_owned());
        assert_eq!(revisions(1), expected, "step {step}");
    }
    assert_eq!(indexer.snapshot().rollbacks(), 1, "the older list alone");
}

// === reading ===

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
    assert_eq!(after("a/x"), Some("x"), "the broken one is passed over");
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
        assert!(object.upgrade().is_some(), "the reader has it");
        drop(reader);
        assert!(object.upgrade().is_some(), "the reader has not freed it");
        writer.add(map("a/y@4")).unwrap();
        assert!(object.upgrade().is_none(), "the writer has");
    };
    replaced_under_a_reader(|writer| writer.replace([], 2).unwrap());
    replaced_under_a_reader(|writer| drop(writer.apply(batch(0, [kind("list 2:")]))));

    writer.add(map("a/x@5")).unwrap();
    let object = indexer.get(&name("a/x")).unwrap().get();
    let object = Arc::downgrade(&object.unwrap());
    writer.replace([], 6).unwrap();
    assert!(object.upgrade().is_none(), "at once if nobody looks");
}

// === objects for a queue ===

#[test]
fn known_objects_are_visited_by_name_with_their_source() {
    let (_, mut writer) = by_colour();
    writer.apply(batch(4, ["add b/x@1", "add a-b/x@2"].map(kind)));
    writer.apply(batch(1, ["add a/x@3", "update b/x@4"].map(kind)));
    for known in [&writer as &dyn Known<K>, &writer.snapshot()] {
        let mut visited = Vec::new();
        known.for_each(&mut |source, name, object| {
            assert_eq!(name, object.object_name());
            visited.push(format!("{object:?} of {}", source.number()));
        });
        assert_eq!(visited, ["a/x@3 of 1", "a-b/x@2 of 4", "b/x@4 of 1"]);
        let (source, object) = known.known(&name("b/x")).unwrap();
        assert_eq!(
            (source.number(), format!("{object:?}")),
            (1, "b/x@4".to_owned())
        );
        assert!(known.known(&name("b/z")).is_none());
    }
}

// === handles ===

#[test]
fn a_list_keeps_the_handle_of_an_unchanged_revision() {
    let (indexer, mut writer) = by_colour();
    writer.apply(batch(0, [list(3, [object("a/x@1"), object("a/y@2")])]));
    let [x, y] = ["a/x", "a/y"].map(|text| indexer.get(&name(text)).unwrap());
    writer.apply(batch(0, [list(9, [object("a/x@1"), object("a/y@8")])]));
    assert!(indexer.get(&name("a/x")).unwrap().is_same(&x));
    assert!(!indexer.get(&name("a/y")).unwrap().is_same(&y));
}

// === a standalone store ===

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
    assert_eq!(*nameless.0, K::default(), "it is handed back");
    writer.add(K::default()).unwrap_err();
    assert_eq!(format!("{:?}", indexer.list()), "[a/y@3, a/z@4]");

    let gone = writer.delete(&name("a/y")).unwrap();
    assert_eq!(show(&gone), "missing a/y, last known Some(a/y@3)");
    assert_eq!(format!("{:?}", writer.snapshot()), "[a/z@4]");
    let revision = indexer.snapshot().revision();
    assert_eq!(
        revision,
        ResourceVersion::from(7),
        "a name says no revision"
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
