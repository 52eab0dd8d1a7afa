//! Tests queries with conditions on several indices, and queries by field selectors.

use super::*;
use crate::selector::FieldSelector;

fn store() -> (Indexer<K>, IndexerWriter<K>) {
    let initial = |map: &K| [map.name_any()[..1].to_owned()];
    let indexers = Indexers::new()
        .with("colour", colours)
        .with("initial", initial);
    let (indexer, mut writer) = new(indexers).unwrap();
    for text in [
        "a/x1 red",
        "a/x2 red,blue",
        "a/y1 blue",
        "b/x1 red,blue",
        "b/y1",
        "x9 blue",
    ] {
        writer.add(map(text)).unwrap();
    }
    writer.apply(batch(0, [kind("add !b/x7@9")]));
    (indexer, writer)
}

fn names<'a>(objects: impl IntoIterator<Item = &'a Object<K>>) -> String {
    let names: Vec<_> = objects.into_iter().map(Object::object_name).collect();
    format!("{names:?}")
}

#[test]
fn a_query_finds_objects_that_meet_all_conditions_in_order() {
    let (indexer, _) = store();
    let snapshot = indexer.snapshot();
    let token = snapshot.index_token("colour").unwrap();
    let query = || snapshot.query();
    assert_eq!(names(query()), "[x9, a/x1, a/x2, a/y1, b/x1, b/y1]");
    let red = query().and(&token, "red").unwrap();
    assert_eq!(names(red.iter()), "[a/x1, a/x2, b/x1]");
    assert_eq!(format!("{red:?}"), "[a/x1@, a/x2@, b/x1@]");
    let both = red.clone().and("colour", "blue").unwrap();
    assert_eq!(names(both), "[a/x2, b/x1]");
    let in_b = red.clone().and(NAMESPACE, "b").unwrap();
    assert_eq!(names(in_b), "[b/x1]");
    let not_in_b = red.clone().and_not(NAMESPACE, "b").unwrap();
    assert_eq!(names(not_in_b), "[a/x1, a/x2]");
    let not_blue = red.clone().and_not("colour", "blue").unwrap();
    assert_eq!(names(not_blue), "[a/x1]");
    let nothing = red.and_any("initial", [""; 0]).unwrap();
    assert_eq!(names(nothing), "[]");
    let either = query().and_any("colour", ["red", "blue", "red"]).unwrap();
    let of_y = either.and("initial", "y").unwrap();
    assert_eq!(names(of_y), "[a/y1]");
    let none = query().and_not("colour", "blue").unwrap();
    assert_eq!(
        names(none.and_not("colour", "red").unwrap()),
        "[b/y1]",
        "an object without a value has none of them"
    );
    let cluster = query().and_any(NAMESPACE, ["", "a"]).unwrap();
    let cluster = cluster.and("colour", "blue").unwrap();
    assert_eq!(names(cluster), "[x9, a/x2, a/y1]");
}

#[test]
fn pairs_of_index_and_value_are_a_query() {
    let (indexer, _) = store();
    let snapshot = indexer.snapshot();
    let found = snapshot.by_indices([("colour", "blue"), ("initial", "x"), (NAMESPACE, "a")]);
    assert_eq!(names(found.unwrap()), "[a/x2]");
    let owned = indexer.by_indices([("colour", "blue"), ("initial", "x")]);
    assert_eq!(names(&owned.unwrap()), "[x9, a/x2, b/x1]");
    let error = snapshot.by_indices([("colour", "blue"), ("shape", "x")]);
    let missing = NoSuchIndex::Name("shape".to_owned());
    assert_eq!(error.unwrap_err(), missing);
    assert_eq!(snapshot.query().and_not("shape", "").unwrap_err(), missing);
}

#[test]
fn field_selectors_use_the_indices_named_after_fields() {
    let (indexer, _) = store();
    let snapshot = indexer.snapshot();
    let found = |text: &str| {
        let fields: FieldSelector = text.parse().unwrap();
        names(snapshot.by_fields(&fields).unwrap())
    };
    assert_eq!(found(""), "[x9, a/x1, a/x2, a/y1, b/x1, b/y1]");
    assert_eq!(found("colour=red,initial!=y"), "[a/x1, a/x2, b/x1]");
    assert_eq!(found("colour!=red"), "[x9, a/y1, b/y1]");
    assert_eq!(
        found("colour="),
        "[b/y1]",
        "an object without the field has the empty value"
    );
    assert_eq!(found("colour!="), "[x9, a/x1, a/x2, a/y1, b/x1]");
    assert_eq!(found("metadata.name=x1"), "[a/x1, b/x1]");
    assert_eq!(found("metadata.name!=x1,colour=red"), "[a/x2]");
    assert_eq!(
        found("metadata.namespace=b,metadata.name=x1,colour=red"),
        "[b/x1]"
    );
    assert_eq!(found("metadata.namespace!=a"), "[x9, b/x1, b/y1]");
    assert_eq!(found("metadata.namespace="), "[x9]");
}

#[test]
fn a_field_without_an_index_is_named_in_the_error() {
    let (indexer, mut writer) = store();
    let fields: FieldSelector = "colour=red,spec.nodeName=n".parse().unwrap();
    let error = indexer.snapshot().by_fields(&fields).unwrap_err();
    assert_eq!(error, FieldNotIndexed("spec.nodeName".to_owned()));
    assert_eq!(
        error.to_string(),
        "field spec.nodeName can't be selected: no index has its name; add an index named spec.nodeName"
    );
    let node = Indexers::new().with("spec.nodeName", |_: &K| ["n"]);
    writer.add_indexers(node).unwrap();
    let snapshot = indexer.snapshot();
    let found = snapshot.by_fields(&fields).unwrap();
    assert_eq!(names(found), "[a/x1, a/x2, b/x1]");
    let namespace = FieldSelector::equals(NAMESPACE, "a");
    let error = snapshot.by_fields(&namespace).unwrap_err();
    assert_eq!(error, FieldNotIndexed(NAMESPACE.to_owned()));
}
