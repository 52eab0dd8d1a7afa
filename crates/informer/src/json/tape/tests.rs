//! Tests that `simd-json` and `serde_json` decode equal values, and that unsupported JSON yields no value.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value as Json, json, value::RawValue};

use super::{CERTAIN, has_surrogates, read};

fn decode<K: DeserializeOwned>(json: &[u8]) -> Option<K> {
    read(json, |value| K::deserialize(value))
}

/// Returns whether `simd-json` decodes the text. Panics if `serde_json` does not decode the same value.
fn agrees<K: DeserializeOwned + PartialEq + fmt::Debug>(json: &[u8]) -> bool {
    let Some(made) = decode::<K>(json) else {
        return false;
    };
    let text = String::from_utf8_lossy(json);
    match serde_json::from_slice::<K>(json) {
        Ok(other) => assert_eq!(made, other, "{text}"),
        Err(error) => panic!("{error}, and yet {made:?} was made of {text}"),
    }
    true
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-1_000_000_i32..1_000_000).prop_map(|number| Json::from(f64::from(number) / 64.0)),
        any::<f64>().prop_map(Json::from),
        ".{0,20}".prop_map(Json::from),
        "[\"\\\\/a\n\t\u{0}\u{7f}é😀]{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
            prop::collection::btree_map(".{0,8}", inner, 0..8)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

#[derive(Debug, Deserialize, PartialEq)]
enum Choice {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { a: i8 },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Either {
    Number(u64),
    Text(String),
    Fraction(f64),
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Everything {
    choice: Option<Choice>,
    either: Option<Either>,
    pair: Option<(u8, i64)>,
    three: Option<[f32; 3]>,
    letter: Option<char>,
    nothing: Option<()>,
    map: BTreeMap<String, Option<i32>>,
    numbered: BTreeMap<u8, bool>,
    boxed: Option<Box<Everything>>,
    #[serde(flatten)]
    rest: BTreeMap<String, Json>,
}

fn pod() -> Vec<u8> {
    let pod = json!({
        "metadata": {"name": "a\u{e9}\n", "labels": {"a": "b"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {"containers": [{"name": "main", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": "web"}}}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": true, "restartCount": 3, "image": "", "imageID": ""}]},
    });
    serde_json::to_vec(&pod).expect("it is JSON")
}

proptest! {
    #[test]
    fn any_value_decodes_as_with_serde_json(value in any_json(), pretty: bool) {
        let json = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
        let json = json.unwrap();
        prop_assert!(agrees::<Json>(&json) || has_surrogates(&json) || has_uncertain(&value));
    }

    #[test]
    fn damaged_json_yields_no_other_value(at: prop::sample::Index, byte: u8, cut: bool) {
        let mut json = pod();
        let at = at.index(json.len());
        json[at] = byte;
        if cut {
            json.truncate(at);
        }
        agrees::<Pod>(&json);
        agrees::<Json>(&json);
    }

    #[test]
    fn any_text_decodes_as_with_serde_json_or_not_at_all(text in "[\\[\\]{}:,\"0-9eE.+\\-tfnrulase \\\\]{0,24}") {
        agrees::<Json>(text.as_bytes());
    }
}

/// Returns whether a value has a number that `simd-json` and `serde_json` may decode differently.
fn has_uncertain(value: &Json) -> bool {
    match value {
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number > CERTAIN,
            (None, Some(number)) => number.unsigned_abs() > CERTAIN,
            (None, None) => true,
        },
        Json::Array(values) => values.iter().any(has_uncertain),
        Json::Object(members) => members.values().any(has_uncertain),
        Json::Null | Json::Bool(_) | Json::String(_) => false,
    }
}

#[test]
fn every_kind_of_type_decodes_from_a_tape() {
    assert!(agrees::<Pod>(&pod()));
    let taken = [
        json!({"choice": "Unit"}),
        json!({"choice": {"Unit": null}}),
        json!({"choice": {"Newtype": 7}}),
        json!({"choice": {"Tuple": [7, "a"]}}),
        json!({"choice": {"Struct": {"a": -7}}}),
        json!({"either": 7, "pair": [1, -2], "three": [1, 2, -3]}),
        json!({"either": "seven", "letter": "é", "nothing": null}),
        json!({"map": {"a": null, "b": -1}}),
        json!({"boxed": {"boxed": {"more": [1, {"than": {}}]}}}),
    ];
    for json in taken {
        assert!(agrees::<Everything>(json.to_string().as_bytes()), "{json}");
    }
}

#[test]
fn a_type_mismatch_is_left_to_serde_json() {
    let refused = [
        json!({"choice": "None"}),
        json!({"choice": {"Newtype": 256}}),
        json!({"choice": {"Unit": 1}}),
        json!({"choice": {"Newtype": 1, "Unit": null}}),
        json!({"pair": [1, 2, 3]}),
        json!({"pair": [1]}),
        json!({"three": [1, 2, 3, 4]}),
        json!({"letter": "ab"}),
        json!({"nothing": 0}),
        // `serde_json` accepts this key as a number.
        json!({"numbered": {"7": true}}),
    ];
    for json in refused {
        assert!(!agrees::<Everything>(json.to_string().as_bytes()), "{json}");
    }
    assert!(decode::<Box<RawValue>>(b"{}").is_none());
    for json in [
        "",
        " ",
        "nul",
        "[1,]",
        "{\"a\":1,}",
        "[1] 2",
        "\"\\ud800\"",
        "\"\u{1}\"",
        "01",
        "1.",
        "-",
        "[1e999]",
    ] {
        assert!(!agrees::<Json>(json.as_bytes()), "{json}");
    }
    assert!(decode::<Json>(b"\"\xff\"").is_none());
    for json in ["1\0", "null\0", "[true\0]", "\"\0\""] {
        assert!(!agrees::<Json>(json.as_bytes()), "{json:?}");
    }
    // Surrogates may be unpaired.
    for json in [
        r#""\ud83d\ude00""#,
        r#""\uD83D""#,
        r#""\ude00""#,
        r#""\ud83dx""#,
    ] {
        assert!(!agrees::<Json>(json.as_bytes()), "{json}");
    }
    assert!(agrees::<Json>(br#""\u00e9\u003c\u0000""#));
}

#[test]
fn numbers_up_to_18_digits_decode_from_a_tape() {
    for number in ["0", "-1", "999999999999999999", "-999999999999999999"] {
        assert!(agrees::<Json>(number.as_bytes()), "{number}");
    }
}

#[test]
fn longer_numbers_are_left_to_serde_json() {
    for number in [
        "-0",
        "-0.0",
        "1.5",
        "1e3",
        "1000000000000000000",
        "-1000000000000000000",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "123456789012345678901234567890",
        "1.234567890123456789012345",
    ] {
        // `simd-json` accepts any bytes after a number of 19 digits.
        for behind in ["", "x", "\"", "-"] {
            let number = format!("{number}{behind}");
            assert!(!agrees::<Json>(number.as_bytes()), "{number}");
            let ignored = format!("[{number}]");
            assert!(!agrees::<Vec<IgnoredAny>>(ignored.as_bytes()));
        }
    }
}

#[test]
fn siblings_do_not_count_as_nesting() {
    let parts: Vec<_> = (0..500)
        .map(|number| json!([{"a": number}, [number]]))
        .collect();
    assert!(agrees::<Json>(Json::from(parts).to_string().as_bytes()));
    let choices = vec![json!({"choice": {"Newtype": 7}}); 500];
    let json = Json::from(choices).to_string();
    assert!(agrees::<Vec<Everything>>(json.as_bytes()));
}

#[test]
fn nesting_beyond_the_limit_is_left_to_serde_json() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(agrees::<Json>(nested(127).as_bytes()));
    for depth in [128, 129, 1000, 100_000] {
        assert!(!agrees::<Json>(nested(depth).as_bytes()), "{depth}");
        assert!(agrees::<IgnoredAny>(nested(1).as_bytes()));
        // Ignored values may be nested deeper.
        assert!(
            decode::<IgnoredAny>(nested(depth).as_bytes()).is_some(),
            "{depth}"
        );
    }
}

/// A type that reads only the first element of an array, or the first key of a map.
#[derive(Debug, PartialEq)]
struct First(String);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;

        impl<'de> Visitor<'de> for Visit {
            type Value = First;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("parts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
                Ok(First(list.next_element()?.unwrap_or_default()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<First, A::Error> {
                let key = map.next_key()?.unwrap_or_default();
                Ok(First(key))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

#[test]
fn a_type_that_leaves_parts_unread_gets_no_value() {
    assert_eq!(decode(br#"["a"]"#), Some(First("a".to_owned())));
    assert_eq!(decode::<First>(br#"["a","b"]"#), None);
    assert_eq!(decode::<First>(br#"{"a":"b"}"#), None);
    assert_eq!(decode::<First>(br#"{"a":{"b":"c"}}"#), None);
    assert_eq!(decode(b"{}"), Some(First(String::new())));
}

#[test]
fn a_failed_text_does_not_affect_the_next() {
    assert_eq!(
        decode(br#"{"a":["long enough to need room"]}"#),
        Some(json!({"a": ["long enough to need room"]}))
    );
    assert_eq!(decode::<Json>(b"[1,"), None);
    assert_eq!(decode(b"[]"), Some(json!([])));
}

#[test]
fn lists_are_allocated_with_their_exact_length() {
    let json = format!("[{}]", vec!["7"; 1000].join(","));
    let list: Vec<u64> = decode(json.as_bytes()).unwrap();
    assert_eq!((list.len(), list.capacity()), (1000, 1000));
}
