//! The ways to name an index, and copies of what defines one.

use super::*;

#[test]
fn an_index_is_found_by_its_name_and_by_its_token() {
    let (indexer, mut writer) = by_colour();
    writer.add(map("a/x red")).unwrap();
    let token = IndexToken::new("colour");
    assert_eq!(token.name(), "colour");
    let found = [
        indexer.index_keys("colour", "red"),
        indexer.index_keys(&"colour".to_owned(), "red"),
        indexer.index_keys(&token, "red"),
    ];
    assert_eq!(found, [(); 3].map(|()| Ok(vec![name("a/x")])));
    let other = indexer.index_keys(&IndexToken::new("shape"), "red");
    assert_eq!(other, Err(NoSuchIndex("shape".to_owned())));
}

#[test]
fn a_copy_of_index_functions_is_as_good_as_they_are() {
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
