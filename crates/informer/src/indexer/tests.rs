//! Tests the store with scripts that describe batches of deltas.
//!
//! A test compares the reported changes and the final content of the store with the expected ones.

mod broken;
mod brought_back;
mod changes;
mod index;
mod index_model;
mod index_reference;
mod model;
mod put_back;
mod query;
mod reading;
mod standalone;

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

/// Type of the objects in the tests. The index `colour` reads its values from an object's label `colours`.
type K = ConfigMap;

/// Parses text such as `namespace/name@revision colour,colour`; only the name is required.
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

/// Creates an object that failed to decode. `text` is its name and revision: `namespace/name@revision`.
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

/// Formats an index as text: each value with the names of its objects.
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

/// Runs a script, one batch per line, and compares the changes and the final store with `trace`.
///
/// ```text
/// add a/x@1 red; update a/x@2      two deltas of source 0
/// 1: add a/x@3                     one delta of source 1
/// list 9: a/x@2 red | a/y@1        a complete list of two objects at revision 9
/// ```
///
/// The word `red` is the object's value in the index `colour`. A script can also contain the deltas
/// `relisted`, `delete`, `missing`, `resync` and `bookmark`. A leading `!` marks an object that failed to
/// decode.
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
    assert_eq!(
        indexer.snapshot().rollbacks(),
        1,
        "only the older list is a rollback"
    );
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
