//! Tests the comparison of a store with a server: which differences it reports.
//!
//! The tests use no server. They create both the objects in the store and the items of the server's list.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;
use serde_json::{Value, json};

use super::*;
use crate::codec::Codec;
use crate::{
    indexer::{self, IndexerWriter, Indexers},
    object::Object,
    queue::Batch,
    reflector::{Delta, DeltaKind},
};

fn object(name: &str, uid: &str, revision: u64) -> Object<ConfigMap> {
    Object::new(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(revision.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
    .unwrap()
}

/// Returns the writer of a store that contains the objects of one or more sources. A source is one list and
/// watch.
///
/// `lists` contains one list per source, in the order of the source IDs, which start at 0. Each list item is
/// the name, uid and revision of an object. The revision of each list is 9.
fn store(lists: &[&[(&str, &str, u64)]]) -> IndexerWriter<ConfigMap> {
    let (_, mut writer) = indexer::new(Indexers::new()).unwrap();
    for (source, list) in (0..).map(SourceId::new).zip(lists) {
        let objects = list
            .iter()
            .map(|(name, uid, revision)| object(name, uid, *revision));
        let kind = DeltaKind::ReplacedAll {
            objects: objects.collect(),
            revision: 9.into(),
        };
        writer.apply(Batch {
            deltas: vec![Delta::new(source, kind)],
            in_initial_list: false,
            completes: None,
            reached: vec![(source, 9.into())],
        });
    }
    writer
}

fn item(name: &str, uid: &str, revision: u64) -> Value {
    json!({"metadata": {
        "resourceVersion": revision.to_string(), "uid": uid,
        "name": name, "namespace": "shop", "labels": {"a": "b"},
    }, "kind": "PartialObjectMetadata"})
}

fn compare(store: &IndexerWriter<ConfigMap>, source: u32, items: &[Value]) -> Option<Found> {
    let snapshot = store.snapshot();
    let mut comparison = Comparison::new(&snapshot, SourceId::new(source), "maps".to_owned());
    assert_eq!(*comparison.revision(), 9.into());
    for item in items {
        let item = item.to_string();
        comparison.see(Codec::Json.object(item.as_bytes())).unwrap();
    }
    comparison.finish()
}

#[test]
fn what_is_the_same_is_no_difference_in_whatever_order_it_comes() {
    let store = store(&[&[("a", "u1", 1), ("b", "u2", 2)]]);
    let [a, b] = [item("a", "u1", 1), item("b", "u2", 2)];
    assert!(compare(&store, 0, &[a.clone(), b.clone()]).is_none());
    assert!(compare(&store, 0, &[b, a]).is_none());
    assert!(compare(&super::tests::store(&[&[]]), 0, &[]).is_none());
}

#[test]
fn every_kind_of_difference_is_counted_and_named() {
    let store = store(&[&[
        ("a", "u1", 1),
        ("b", "u2", 2),
        ("c", "u3", 3),
        ("d", "u4", 4),
    ]]);
    let found = compare(
        &store,
        0,
        &[
            item("e", "u5", 5),
            item("b", "u2", 6),
            item("c", "new", 3),
            item("d", "u4", 4),
        ],
    );
    let difference = found.unwrap().difference;
    assert_eq!(
        difference.to_string(),
        "maps: the cache differs from the server at revision 9: 1 missing, 1 outdated, 1 replaced, 1 surplus (shop/e, shop/b, shop/c, shop/a)"
    );
    assert_eq!(difference.objects(), 4);
}

#[test]
fn few_objects_are_named_of_many_that_differ() {
    let items: Vec<_> = (0..40)
        .map(|n| item(&format!("n{n}"), "u", n + 1))
        .collect();
    let difference = compare(&store(&[&[]]), 0, &items).unwrap().difference;
    assert_eq!(
        (difference.missing, difference.examples.len()),
        (40, Difference::NAMED)
    );
    assert!(
        difference
            .to_string()
            .ends_with("(shop/n0, shop/n1, shop/n2, shop/n3, shop/n4, …)")
    );
}

#[test]
fn another_sources_objects_are_neither_surplus_nor_missing() {
    let store = store(&[&[("a", "u1", 1)], &[("b", "u2", 2)]]);
    assert!(compare(&store, 0, &[item("a", "u1", 1)]).is_none());
    let moving = [item("a", "u1", 1), item("b", "u2", 1)];
    assert!(
        compare(&store, 0, &moving).is_none(),
        "b is brought by the other by now"
    );
    assert_eq!(compare(&store, 1, &[]).unwrap().difference.surplus, 1);
}

#[test]
fn where_there_is_no_uid_revisions_are_compared_alone() {
    let store = store(&[&[("a", "", 1), ("b", "u2", 2)]]);
    let without = json!({"metadata": {"name": "b", "namespace": "shop", "resourceVersion": "2"}});
    assert!(compare(&store, 0, &[item("a", "u1", 1), without]).is_none());
}

#[test]
fn a_fingerprint_is_of_the_objects_that_differ_and_of_their_revisions() {
    let store = store(&[&[]]);
    let fingerprint = |items: &[Value]| compare(&store, 0, items).unwrap().fingerprint;
    let [a, b] = [item("a", "u1", 1), item("b", "u2", 2)];
    let both = fingerprint(&[a.clone(), b.clone()]);
    assert_eq!(both, fingerprint(&[b.clone(), a.clone()]));
    assert_ne!(both, fingerprint(&[a]));
    assert_ne!(fingerprint(&[b]), fingerprint(&[item("b", "u2", 3)]));
}

#[test]
fn an_item_without_a_name_ends_the_comparison() {
    let store = store(&[&[]]);
    let snapshot = store.snapshot();
    let mut comparison = Comparison::new(&snapshot, SourceId::default(), String::new());
    for item in [
        r#"{"metadata":{}}"#,
        "{}",
        "7",
        r#"{"metadata":{"name":7}}"#,
    ] {
        let error = comparison
            .see(Codec::Json.object(item.as_bytes()))
            .unwrap_err();
        assert_eq!(error.class(), Class::Protocol, "{item}");
    }
}

#[test]
fn what_an_informer_leaves_out_is_looked_for_by_no_comparison() {
    let store = store(&[&[("a", "u1", 1)]]);
    let [a, long] = [item("a", "u1", 1), item(&"n".repeat(2000), "u2", 2)];
    let mut endless = item("b", "u3", 3);
    endless["metadata"]["resourceVersion"] = json!("r".repeat(300));
    assert!(compare(&store, 0, &[long.clone(), a, endless]).is_none());
    let found = compare(&store, 0, &[long]).unwrap();
    assert_eq!(found.difference.surplus, 1, "what else differs is found");
}
