//! Tests that pruning removes the pruned fields from JSON text, and leaves all other bytes unchanged. The
//! members in the text can have any order.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::codec::Codec;

/// Creates a [`Pruning`] that removes the fields at `paths`.
///
/// Panics if a path is not `metadata.managedFields`, `metadata.annotations` or the path of one annotation.
fn pruning(paths: &[&str]) -> Pruning {
    pruning_of::<Value>(paths).unwrap()
}

fn pruning_of<K: Prunable>(paths: &[&str]) -> Result<Pruning, NotPrunable> {
    let mut pruning = Pruning::default();
    pruning.prune::<K>(paths.iter().map(|path| path.parse().unwrap()))?;
    Ok(pruning)
}

fn keeping(kept: &[&str], pruned: &[&str]) -> Pruning {
    let mut pruning = pruning_of::<Pruned<Value>>(pruned).unwrap();
    pruning.keep(kept.iter().map(|path| path.parse().unwrap()));
    pruning
}

fn cut(paths: &[&str], json: &str) -> String {
    cut_by(&pruning(paths), json)
}

fn cut_by(pruning: &Pruning, json: &str) -> String {
    String::from_utf8(
        Codec::Json
            .object(json.as_bytes())
            .cut(pruning)
            .into_owned(),
    )
    .unwrap()
}

#[test]
fn paths_have_names_with_dots_and_keys_in_brackets() {
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
    for (text, same) in [
        ("spec.containers[*].env", "spec.containers.env"),
        ("a[*][*]['b.c'][*].d", "a['b.c'].d"),
    ] {
        assert_eq!(text.parse::<FieldPath>(), same.parse(), "{text}");
    }
    for text in [
        "", ".", "a.", ".a", "a..b", "a b", "a[", "a['b'", "a['b']c", "a[0]", "a.['", "ä", "a[*]",
        "[*]", "[*].a", "a.[*]", "a[*]b", "a[*",
    ] {
        let error = text.parse::<FieldPath>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("invalid path of a field: {text:?}; "))
        );
    }
}

#[test]
fn plain_types_allow_only_managed_fields_and_annotations_to_be_pruned() {
    for path in [
        "spec",
        "spec.volumes",
        "status.conditions",
        "metadata.finalizers",
        "metadata.annotations.a.b",
        "data",
    ] {
        let error = pruning_of::<Value>(&[path]).unwrap_err().to_string();
        let expected =
            format!("{path} can't be pruned: an object without it could be written back");
        assert!(error.starts_with(&expected), "{error}");
        assert!(pruning_of::<Pruned<Value>>(&[path]).is_ok(), "{path}");
    }
}

#[test]
fn identity_and_labels_are_never_pruned() {
    for path in [
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.labels",
        "metadata.labels.app",
    ] {
        let expected = format!("{path} can't be pruned: it identifies the object");
        for refused in [
            pruning_of::<Value>(&[path]),
            pruning_of::<Pruned<Value>>(&[path]),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn a_rejected_path_leaves_earlier_paths_in_force() {
    let mut pruning = pruning(&["metadata.managedFields"]);
    let before = pruning.clone();
    assert!(pruning.prune::<Value>(["spec".parse().unwrap()]).is_err());
    assert_eq!(pruning, before);
}

const WHOLE: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"1","labels":{"x":"y"},"annotations":{"n":"o"}},"spec":{"nodeName":"node","containers":[{"name":"c1","env":[{"name":"e"}]},{"name":"c2"},7]},"status":{"podIP":"10.0.0.1"}}"#;

#[test]
fn a_name_below_an_array_selects_the_field_of_each_map() {
    let pruning = pruning_of::<Pruned<Value>>(&["spec.containers[*].env", "status"]).unwrap();
    let rest = WHOLE.replace(r#","env":[{"name":"e"}]"#, "");
    let rest = rest.replace(r#","status":{"podIP":"10.0.0.1"}"#, "");
    assert_eq!(cut_by(&pruning, WHOLE), rest);
}

#[test]
fn a_keep_list_keeps_its_fields_and_identity_and_the_maps_around() {
    let identity = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"c","resourceVersion":"1","labels":{"x":"y"}"#;
    let rows: [(&[&str], &[&str], &str); 6] = [
        (&[], &[], "}}"),
        (&["spec.nodeName"], &[], r#"},"spec":{"nodeName":"node"}}"#),
        (
            &["spec.containers.name", "status.nothing"],
            &[],
            r#"},"spec":{"containers":[{"name":"c1"},{"name":"c2"},7]},"status":{}}"#,
        ),
        (
            &["spec", "spec.nodeName"],
            &["spec.containers"],
            r#"},"spec":{"nodeName":"node"}}"#,
        ),
        (
            &["spec.nodeName"],
            &["spec.nodeName", "status"],
            r#"},"spec":{}}"#,
        ),
        (
            &["metadata"],
            &["metadata.managedFields"],
            r#","annotations":{"n":"o"}}}"#,
        ),
    ];
    for (kept, pruned, rest) in rows {
        let expected = format!("{identity}{rest}");
        assert_eq!(cut_by(&keeping(kept, pruned), WHOLE), expected, "{kept:?}");
    }
}

#[test]
fn equal_prunings_have_equal_text() {
    let same = [
        keeping(&["a.b", "a"], &["a.c.d", "x.y"]),
        keeping(&["a"], &["a.c.d"]),
    ];
    assert_eq!(same[0], same[1]);
    assert_eq!(same[0].to_string(), same[1].to_string());
    let others = [
        Pruning::default(),
        keeping(&[], &[]),
        keeping(&["a"], &[]),
        keeping(&["a.c"], &["a.c.d"]),
        keeping(&["a"], &["a.c"]),
        keeping(&["a.d"], &["a.d"]),
        pruning(&["metadata.managedFields"]),
        pruning_of::<Pruned<Value>>(&["a.c.d"]).unwrap(),
    ];
    let texts: Vec<_> = others
        .iter()
        .chain([&same[0]])
        .map(ToString::to_string)
        .collect();
    let distinct: std::collections::BTreeSet<_> = texts.iter().collect();
    assert_eq!(distinct.len(), texts.len(), "{texts:?}");
    assert_eq!(texts[0], "");
    assert_eq!(texts[6], "-metadata.managedFields");
}

#[test]
fn invalid_json_is_not_made_valid() {
    let keeping = keeping(&[], &[]);
    for json in [
        r#"{"metadata":{"name":"a"},"spec":{},}"#,
        r#"{"spec":{} "metadata":{"name":"a"}}"#,
        r#"{"spec":{},"metadata":{"name":"a"}"#,
        r#"{"spec":{},"metadata":{"name":"a",}}"#,
        r#"{"spec":{},"#,
        "[]",
        "null",
    ] {
        assert_eq!(cut_by(&keeping, json), json);
    }
}

#[test]
fn arrays_in_arrays_are_not_searched() {
    let deep = 1_000_000;
    let json = format!(r#"{{"spec":{}{}}}"#, "[".repeat(deep), "]".repeat(deep));
    let pruning = pruning_of::<Pruned<Value>>(&["spec.a.b"]).unwrap();
    assert!(cut_by(&pruning, &json) == json);
    let json = r#"{"spec":[[{"a":1}],{"a":1}]}"#;
    let pruning = pruning_of::<Pruned<Value>>(&["spec.a"]).unwrap();
    assert_eq!(cut_by(&pruning, json), r#"{"spec":[[{"a":1}],{}]}"#);
}

#[test]
fn only_the_library_serializes_a_pruned_object() {
    let json = json!({"metadata": {"name": "a"}});
    let pruned: Pruned<Value> = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(Stored(&pruned)).unwrap(), json);
    assert_eq!(serde_json::to_value(Stored(&json)).unwrap(), json);
}

#[test]
fn members_are_removed_with_their_commas() {
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
        // A field is removed only at its own path.
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
        // Invalid JSON, and JSON that is not an object, is left unchanged.
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
fn invalid_utf8_is_left_unchanged() {
    let bytes = b"{\"metadata\":{\"managedFields\":\"\xff\"}}";
    let pruning = pruning(&["metadata.managedFields"]);
    assert_eq!(&*Codec::Json.object(bytes).cut(&pruning), bytes);
}

const NAMES: [&str; 10] = [
    "metadata",
    "name",
    "labels",
    "annotations",
    "spec",
    "containers",
    "a",
    "b",
    "ü\"",
    "n.o/p",
];

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn paths() -> impl Strategy<Value = Vec<FieldPath>> {
    let path = prop::collection::vec(names(), 1..4).prop_map(FieldPath);
    prop::collection::vec(path, 0..5)
}

fn map(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(names(), value, 0..7)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn object() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(json!(null)),
        Just(json!(-1.5)),
        Just(json!("],}\\\"")),
        Just(json!([])),
    ];
    let value = plain.prop_recursive(4, 60, 6, |inner| {
        let array = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array);
        prop_oneof![2 => map(inner), 1 => array]
    });
    map(value)
}

/// Removes the members at the paths in `pruned` from `value`. `at` is the path of `value`.
///
/// If `kept` is not empty, a member stays only if its path is at, above or below a path in `kept`.
fn cut_tree(value: &mut Value, at: &mut Vec<String>, pruned: &[Vec<String>], kept: &[Vec<String>]) {
    let Value::Object(members) = value else {
        return;
    };
    members.retain(|name, value| {
        at.push(name.clone());
        let is_kept = kept.is_empty()
            || kept
                .iter()
                .any(|kept| kept.starts_with(at) || at.starts_with(kept));
        let stays = is_kept && !pruned.contains(at);
        if stays {
            match value {
                Value::Array(elements) => elements
                    .iter_mut()
                    .for_each(|element| cut_tree(element, at, pruned, kept)),
                value => cut_tree(value, at, pruned, kept),
            }
        }
        at.pop();
        stays
    });
}

proptest! {
    #[test]
    fn pruned_json_equals_a_pruned_tree(
        mut tree in object(),
        pruned in paths(),
        kept in prop::option::of(paths()),
        pretty: bool,
    ) {
        let json = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) };
        let mut pruning = Pruning::default();
        let pruned: Vec<_> = pruned
            .into_iter()
            .filter(|path| Pruning::default().prune::<Pruned<Value>>([path.clone()]).is_ok())
            .collect();
        pruning.prune::<Pruned<Value>>(pruned.iter().cloned()).unwrap();
        if let Some(kept) = &kept {
            pruning.keep(kept.iter().cloned());
        }
        let cut = cut_by(&pruning, &json.unwrap());

        let names = |path: FieldPath| path.0;
        let pruned: Vec<_> = pruned.into_iter().map(names).collect();
        let identity = IDENTITY.iter().map(|path| path.iter().map(ToString::to_string).collect());
        let kept: Option<Vec<_>> = kept.map(|kept| kept.into_iter().map(names).chain(identity).collect());
        cut_tree(&mut tree, &mut Vec::new(), &pruned, &kept.unwrap_or_default());
        prop_assert_eq!(serde_json::from_str::<Value>(&cut).unwrap(), tree);
    }
}
