//! Tests that decoded values equal those of `serde_json` and have no spare capacity. Also tests the estimated
//! heap memory.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Pod, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, JSONSchemaProps,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube_core::DynamicObject;
use proptest::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    #[serde(default)]
    name: Option<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Numbers(Vec<i64>),
    Texts { name: Vec<String> },
    Any(serde_json::Value),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    #[serde(rename = "a")]
    A { items: Vec<Vec<u8>> },
    #[serde(rename = "b")]
    B(Flat),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Plain {
    A,
    Name(Vec<IntOrString>),
    Items { items: Vec<u8> },
    Kind(u8, Vec<String>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Name(String);

#[derive(Debug, Serialize, Deserialize)]
struct Mixed {
    #[serde(default)]
    name: Option<Box<RawValue>>,
    #[serde(default)]
    items: Option<Box<[Plain]>>,
    #[serde(default)]
    a: BTreeMap<Name, Vec<u8>>,
    #[serde(default)]
    b: BTreeMap<u8, Vec<Option<Vec<i8>>>>,
    #[serde(default)]
    kind: Option<(Vec<u8>, Cow<'static, str>)>,
}

/// Generates JSON texts, some of which are valid values of the tested types.
fn json() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "items",
        "kind",
        "a",
        "b",
        "7",
        "metadata",
        "labels",
        "finalizers",
        "spec",
        "containers",
        "env",
        "value",
        "ports",
        "data",
        "managedFields",
        "status",
        "conditions",
        "versions",
        "schema",
        "openAPIV3Schema",
        "x-kubernetes-validations",
        "anyOf",
        "enum",
        r"na\u006de",
        "}],",
        "[",
        r#"\""#,
    ]);
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1e999".to_owned()),
        any::<i16>().prop_map(|number| number.to_string()),
        key.clone().prop_map(|text| format!("\"{text}\"")),
        Just(r#""é[{,\"\\""#.to_owned()),
    ];
    let space = prop::sample::select(vec!["", "", " ", "\n\t"]);
    scalar.prop_recursive(6, 60, 6, move |inner| {
        let list = (prop::collection::vec(inner.clone(), 0..6), space.clone());
        let list = list.prop_map(|(all, space)| format!("[{space}{}{space}]", all.join(",")));
        let entry = (key.clone(), space.clone(), inner);
        let entry =
            entry.prop_map(|(key, space, value)| format!("\"{key}\"{space}:{space}{value}"));
        let map = prop::collection::vec(entry, 0..6);
        prop_oneof![list, map.prop_map(|all| format!("{{{}}}", all.join(",")))]
    })
}

/// Checks that [`measured`] and `serde_json` return equal values, or errors with equal messages.
fn same<K: DeserializeOwned + Serialize>(json: &[u8]) -> Result<(), TestCaseError> {
    let shown = |value: &K| serde_json::to_string(value).map_err(|error| error.to_string());
    let expected = serde_json::from_slice::<K>(json);
    let expected = expected
        .map_err(|error| error.to_string())
        .and_then(|value| shown(&value));
    let found = measured::<K>(json).map_err(|error| error.to_string());
    let found = found.and_then(|measured| shown(&measured.value));
    prop_assert_eq!(found, expected);
    Ok(())
}

fn same_of_all(json: &[u8]) -> Result<(), TestCaseError> {
    same::<Pod>(json)?;
    same::<ConfigMap>(json)?;
    same::<Secret>(json)?;
    same::<CustomResourceDefinition>(json)?;
    same::<DynamicObject>(json)?;
    same::<Flat>(json)?;
    same::<Untagged>(json)?;
    same::<Tagged>(json)?;
    same::<Plain>(json)?;
    same::<Mixed>(json)?;
    same::<Vec<IntOrString>>(json)?;
    same::<Vec<Vec<u8>>>(json)?;
    same::<Box<RawValue>>(json)?;
    same::<serde_json::Value>(json)
}

proptest! {
    #[test]
    fn any_json_decodes_as_with_serde_json(json in json()) {
        same_of_all(json.as_bytes())?;
    }

    #[test]
    fn damaged_json_fails_as_with_serde_json(
        json in json(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"\"\\[]{}:, \xff0".to_vec()),
        cuts in any::<bool>(),
    ) {
        let mut json = json.into_bytes();
        let at = at.index(json.len());
        json[at] = byte;
        if cuts {
            json.truncate(at);
        }
        same_of_all(&json)?;
    }

    #[test]
    fn lists_have_no_spare_capacity(
        lists in prop::collection::vec(prop::collection::vec(0..9_u8, 0..20), 0..20),
        skipped in json(),
    ) {
        #[derive(Deserialize)]
        struct Skips {
            lists: Vec<Inner>,
            last: Vec<u8>,
        }
        #[derive(Deserialize)]
        struct Inner {
            list: Option<Vec<u8>>,
        }
        let inner = |list| format!(r#"{{"skipped":{skipped},"list": {list:?}}}"#);
        let all: Vec<_> = lists.iter().map(inner).collect();
        let json = format!(
            r#"{{"lists":[{}],"other":{skipped},"last" :{:?}}}"#,
            all.join(","),
            lists.concat(),
        );
        // A number out of range is left to `serde_json`, which does not know the length of a list.
        prop_assume!(!json.contains("1e999"));
        let read = measured::<Skips>(json.as_bytes()).unwrap().value;
        prop_assert_eq!(read.lists.capacity(), lists.len());
        prop_assert_eq!(read.last.capacity(), lists.concat().len());
        for (read, list) in read.lists.iter().zip(&lists) {
            let read = read.list.as_ref().unwrap();
            prop_assert_eq!((read, read.capacity()), (list, list.len()));
        }
    }
}

#[test]
fn no_list_of_a_pod_has_spare_capacity() {
    let container =
        r#"{"name":"c","args":["a","b","c"],"env":[{"name":"A","value":"1"},{"name":"B"}]}"#;
    let json = format!(
        r#"{{"metadata":{{"name":"a","finalizers":["x"]}},
            "spec":{{"unknown":[[1,2],[3]],"containers":[{container},{container},{container}]}}}}"#
    );
    let pod = measured::<Pod>(json.as_bytes()).unwrap().value;
    assert_eq!(pod.metadata.finalizers.unwrap().capacity(), 1);
    let containers = pod.spec.unwrap().containers;
    assert_eq!(containers.capacity(), 3);
    for container in containers {
        assert_eq!(container.args.unwrap().capacity(), 3);
        assert_eq!(container.env.unwrap().capacity(), 2);
    }
}

#[test]
fn keys_with_escapes_match_their_fields() {
    let lists = measured::<BTreeMap<String, Vec<u8>>>(br#"{"\u0061":[1,2,3],"b":[4]}"#).unwrap();
    assert_eq!(lists.value["a"], [1, 2, 3]);
    assert_eq!(lists.value["b"].capacity(), 1);
}

#[test]
fn invalid_utf8_is_accepted_in_ignored_fields() {
    let json = b"{\"metadata\":{\"name\":\"a\"},\"unknown\":\"\xff\"}";
    assert!(serde_json::from_slice::<ConfigMap>(json).is_ok());
    let map = measured::<ConfigMap>(json).unwrap().value;
    assert_eq!(map.metadata.name.as_deref(), Some("a"));
    assert!(measured::<ConfigMap>(b"{\"data\":{\"a\":\"\xff\"}}").is_err());
}

#[test]
fn strings_lists_and_maps_are_counted() {
    fn heap<K: DeserializeOwned>(json: &str) -> usize {
        measured::<K>(json.as_bytes()).unwrap().heap_bytes
    }
    let (string, node) = (size_of::<String>(), |entry| 11 * entry + 16);
    assert_eq!(heap::<String>(r#""four""#), 4);
    assert_eq!(heap::<Vec<String>>(r#"["four","\n"]"#), 2 * string + 5);
    assert_eq!(heap::<Vec<u64>>("[1,2,3]"), 24);
    assert_eq!(
        heap::<BTreeMap<String, String>>(r#"{"a":"bc"}"#),
        node(2 * string) + 3
    );
    assert_eq!(heap::<BTreeMap<String, String>>("{}"), 0);
    assert_eq!(heap::<ByteString>(r#""AAECAwQF""#), 6);
    assert_eq!(
        heap::<ConfigMap>(r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"}}"#),
        0
    );
    let boxed = r#"{"allOf":[{"not":{"type":"x"}}]}"#;
    assert_eq!(
        heap::<JSONSchemaProps>(boxed),
        2 * size_of::<JSONSchemaProps>() + 1
    );
}

#[test]
fn a_map_counts_the_nodes_that_it_allocates() {
    let (leaf, inner) = (11 * 8 + 16, 11 * 8 + 16 + 12 * 8);
    let expected = [
        (0, 0),
        (1, leaf),
        (11, leaf),
        (12, 2 * leaf + inner),
        (19, 3 * leaf + inner),
    ];
    for (entries, bytes) in expected {
        assert_eq!(map_bytes(entries, 8), bytes, "{entries}");
    }
}
