//! Tests that an index is found by its name and by its [`IndexToken`]. Also tests that a store created from a
//! clone of [`Indexers`] has the same indices.

use super::*;

#[test]
fn an_index_is_found_by_its_name_and_by_its_token() {
    let (indexer, mut writer) = by_colour();
    writer.add(map("a/x red")).unwrap();
    let token = indexer.snapshot().index_token("colour").unwrap();
    assert_eq!(token.name(), "colour");
    let found = [
        indexer.index_keys("colour", "red"),
        indexer.index_keys(&"colour".to_owned(), "red"),
        indexer.index_keys(&token, "red"),
    ];
    assert_eq!(found, [(); 3].map(|()| Ok(vec![name("a/x")])));
    let missing = |name: &str| indexer.snapshot().index_token(name).unwrap_err();
    assert_eq!(missing("shape"), NoSuchIndex::Name("shape".to_owned()));
    assert_eq!(missing(NAMESPACE), NoSuchIndex::Name(NAMESPACE.to_owned()));
}

#[test]
fn a_token_finds_its_own_index_only() {
    let (indexer, mut writer) = by_colour();
    writer.add(map("a/x red")).unwrap();
    let token = indexer.snapshot().index_token("colour").unwrap();
    let before = indexer.snapshot();
    let (other, mut other_writer) = by_colour();
    other_writer.add(map("a/y red")).unwrap();
    let not_found = NoSuchIndex::Token("colour".to_owned());
    assert_eq!(other.index_keys(&token, "red"), Err(not_found.clone()));

    assert_eq!(writer.remove_index(&token), Ok(()));
    let none = NoSuchIndex::Name("colour".to_owned());
    assert_eq!(indexer.index_keys("colour", "red"), Err(none));
    assert_eq!(indexer.index_keys(&token, "red"), Err(not_found.clone()));

    let again = Indexers::new().with("colour", |_: &K| ["grey"]);
    assert_eq!(writer.add_indexers(again), Ok(Vec::new()));
    assert_eq!(indexer.index_keys(&token, "red"), Err(not_found.clone()));
    assert_eq!(
        not_found.to_string(),
        "the index colour of this token was removed, or belongs to another store"
    );
    let newer = indexer.snapshot().index_token("colour").unwrap();
    assert_ne!(newer, token);
    assert_eq!(newer, newer.clone());
    assert_eq!(indexer.index_keys(&newer, "grey"), Ok(vec![name("a/x")]));
    let kept = before.index_keys(&token, "red");
    assert_eq!(kept, Ok(vec![name("a/x")]), "in a snapshot from before");
}

#[test]
fn copied_index_functions_work_like_the_original() {
    let functions = Indexers::new().with("colour", colours);
    let (indexer, mut writer) = new(functions.clone()).unwrap();
    writer.add(map("a/x red")).unwrap();
    assert_eq!(index(&indexer.snapshot(), "colour"), "red: [a/x]");
    assert!(functions.names().eq(["colour"]));
    let (none, _) = new(Indexers::<K>::by_namespace()).unwrap();
    assert_eq!(
        none.snapshot().index_names(),
        [Arc::from(NAMESPACE)],
        "which is always there"
    );
}
