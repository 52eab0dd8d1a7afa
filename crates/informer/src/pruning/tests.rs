//! What is cut is gone, and everything else is as it was, wherever the members stand.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pruning(paths: &[&str]) -> Pruning {
    Pruning::new(paths.iter().map(|path| path.parse().unwrap())).unwrap()
}

fn cut(paths: &[&str], json: &str) -> String {
    String::from_utf8(pruning(paths).cut(json.as_bytes()).into_owned()).unwrap()
}

#[test]
fn paths_are_names_with_dots_and_keys_in_brackets() {
    let last = "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']";
    for text in [
        "metadata",
        "metadata.managedFields",
        "a-b.c_d.e1",
        last,
        "['a.b']['']",
        "['a'].b",
    ] {
        let path: FieldPath = text.parse().unwrap();
        let shown = path.to_string();
        assert_eq!(
            shown.parse::<FieldPath>().unwrap(),
            path,
            "{text} as {shown}"
        );
    }
    assert_eq!(last.parse::<FieldPath>().unwrap().to_string(), last);
    for text in [
        "", ".", "a.", ".a", "a..b", "a b", "a[", "a['b'", "a['b']c", "a[0]", "a.['", "ä",
    ] {
        let error = text.parse::<FieldPath>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{text:?} is no path"))
        );
    }
}

#[test]
fn only_what_an_object_can_be_without_is_cut() {
    for path in [
        "metadata",
        "metadata.name",
        "metadata.labels",
        "spec",
        "spec.volumes",
        "status.conditions",
        "metadata.annotations.a.b",
        "data",
    ] {
        let error = Pruning::new([path.parse().unwrap()]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{path} can't be pruned")),
            "{error}"
        );
    }
}

#[test]
fn members_are_cut_with_their_commas_wherever_they_stand() {
    let managed = &["metadata.managedFields"];
    let rows = [
        (
            r#"{"metadata":{"managedFields":[{}],"name":"a"},"b":1}"#,
            r#"{"metadata":{"name":"a"},"b":1}"#,
        ),
        (
            r#"{"b":1,"metadata":{"name":"a","managedFields":[{}]}}"#,
            r#"{"b":1,"metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"a":1,"managedFields":null,"b":2}}"#,
            r#"{"metadata":{"a":1,"b":2}}"#,
        ),
        (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
        (
            "{ \"metadata\" : {\n \"a\" : 1 ,\n \"managedFields\" : [ 1 ] } }",
            "{ \"metadata\" : {\n \"a\" : 1 } }",
        ),
        // Only where it is looked for.
        (
            r#"{"managedFields":1,"spec":{"managedFields":2}}"#,
            r#"{"managedFields":1,"spec":{"managedFields":2}}"#,
        ),
        (
            r#"{"metadata":"managedFields"}"#,
            r#"{"metadata":"managedFields"}"#,
        ),
        (
            r#"{"metadata":{"x":"\"managedFields\":[]"}}"#,
            r#"{"metadata":{"x":"\"managedFields\":[]"}}"#,
        ),
        // Left for the next reader.
        (r#"{"metadata":{"a":}"#, r#"{"metadata":{"a":}"#),
        ("7", "7"),
        ("", ""),
    ];
    for (json, expected) in rows {
        assert_eq!(cut(managed, json), expected);
    }
    let both = &[
        "metadata.annotations['b']",
        "metadata.managedFields",
        "metadata.annotations['d.e/f']",
    ];
    let json = r#"{"metadata":{"annotations":{"a":"1","b":"2","d.e/f":"3"},"managedFields":[]},"spec":{}}"#;
    assert_eq!(
        cut(both, json),
        r#"{"metadata":{"annotations":{"a":"1"}},"spec":{}}"#
    );
    let json = r#"{"metadata":{"managedFields":[],"annotations":{"b":"2","d.e/f":"3"}}}"#;
    assert_eq!(cut(both, json), r#"{"metadata":{"annotations":{}}}"#);
    let all = &["metadata.annotations['b']", "metadata.annotations"];
    assert_eq!(cut(all, json), r#"{"metadata":{"managedFields":[]}}"#);
    let all: Vec<_> = all.iter().rev().copied().collect();
    assert_eq!(cut(&all, json), r#"{"metadata":{"managedFields":[]}}"#);
}

#[test]
fn what_is_no_text_is_left_as_it_is() {
    let bytes = b"{\"metadata\":{\"managedFields\":\"\xff\"}}";
    assert_eq!(&*pruning(&["metadata.managedFields"]).cut(bytes), bytes);
}

fn members() -> impl Strategy<Value = Vec<(String, Value)>> {
    let key = prop::sample::select(vec![
        "a",
        "b",
        "managedFields",
        "annotations",
        "ü\"",
        "n.o/p",
    ]);
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!("],}\\\"")),
        Just(json!([1, {"managedFields": 2}])),
        Just(json!({"a": "x", "b": "y", "n.o/p": "z"})),
    ];
    let member = (key, value).prop_map(|(key, value)| (key.to_owned(), value));
    prop::collection::vec(member, 0..6)
}

proptest! {
    #[test]
    fn the_rest_is_what_a_tree_without_them_is(
        members in members(),
        others in members(),
        pretty: bool,
        which in prop::sample::subsequence(
            vec!["metadata.managedFields", "metadata.annotations", "metadata.annotations['b']", "metadata.annotations['n.o/p']"], 0..4,
        ),
    ) {
        let map = |members: Vec<(String, Value)>| Value::Object(members.into_iter().collect());
        let mut tree = map(others);
        tree["metadata"] = map(members);
        let json = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) };
        let cut = cut(&which, &json.unwrap());
        let metadata = tree["metadata"].as_object_mut().unwrap();
        for path in which {
            match path.strip_prefix("metadata.").unwrap() {
                "annotations['b']" => drop(metadata.get_mut("annotations").and_then(|it| it.as_object_mut()?.remove("b"))),
                "annotations['n.o/p']" => drop(metadata.get_mut("annotations").and_then(|it| it.as_object_mut()?.remove("n.o/p"))),
                whole => drop(metadata.remove(whole)),
            }
        }
        prop_assert_eq!(serde_json::from_str::<Value>(&cut).unwrap(), tree);
    }
}
