//! Tests of lists, and of the steps to their items.

use serde_json::json;

use super::*;

/// A spec with a set, an atomic list, and a list whose items have two keys, one with a default.
fn spec() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "atomic": {"type": "array", "items": text},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
                "name": text,
            }},
        },
    }})
}

#[test]
fn items_are_identified_by_their_keys_and_defaults() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply(
            "one",
            &json!({"spec": {"ports": [{"port": 80, "name": "a"}]}}),
        )
        .unwrap();
    assert_eq!(
        stored.fields("one"),
        json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {
            ".": {}, "f:name": {}, "f:port": {},
        }}}})
    );
    stored
        .apply(
            "two",
            &json!({"spec": {"ports": [{"port": 80, "protocol": "UDP", "name": "b"}]}}),
        )
        .unwrap();
    assert_eq!(
        stored
            .apply(
                "two",
                &json!({"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "b"}]}})
            )
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.ports[port=80,protocol=\"TCP\"].name"
    );
    let object = stored.apply("one", &json!({"spec": {}})).unwrap();
    assert_eq!(
        object["spec"]["ports"],
        json!([{"port": 80, "protocol": "UDP", "name": "b"}])
    );
}

#[test]
fn items_of_an_applied_list_have_its_order() {
    for (first, second, merged) in [
        ("abcd", "ca", "bcda"),
        ("abc", "xb", "axbc"),
        ("abc", "cx", "abcx"),
        ("ab", "xaby", "xaby"),
        ("", "ab", "ab"),
        ("abcde", "edcba", "edcba"),
        ("axbyc", "cba", "xycba"),
    ] {
        let list = |texts: &str| -> Vec<String> { texts.chars().map(String::from).collect() };
        let mut stored = Stored::of_spec(&spec());
        stored
            .apply("one", &json!({"spec": {"set": list(first)}}))
            .unwrap();
        let object = stored
            .apply("two", &json!({"spec": {"set": list(second)}}))
            .unwrap();
        assert_eq!(
            object["spec"]["set"],
            json!(list(merged)),
            "{first} {second}"
        );
    }
}

#[test]
fn duplicates_are_rejected_in_applied_lists_and_kept_in_stored_ones() {
    let mut stored = Stored::of_spec(&spec());
    let typed = "500 failed to create typed patch object (default/a; example.com/v1, Kind=Thing): ";
    assert_eq!(
        stored
            .apply("one", &json!({"spec": {"set": ["a", "b", "a"]}}))
            .unwrap_err(),
        format!("{typed}.spec.set: duplicate entries for key [=\"a\"]")
    );
    assert_eq!(
        stored
            .apply("one", &json!({"spec": {"ports": [{"name": "a"}, {}]}}))
            .unwrap_err(),
        format!("{typed}errors:\n  .spec.ports[protocol=\"TCP\"].x").replace(
            "errors:\n  .spec.ports[protocol=\"TCP\"].x",
            ".spec.ports: duplicate entries for key [protocol=\"TCP\"]"
        )
    );
    stored.update("two", &json!({"spec": {"set": ["a", "b", "a"]}}));
    assert_eq!(
        stored.fields("two"),
        json!({"f:spec": {".": {}, "f:set": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}}}})
    );
    let object = stored
        .apply("one", &json!({"spec": {"set": ["c"]}}))
        .unwrap();
    assert_eq!(object["spec"]["set"], json!(["a", "b", "a", "c"]));
    // An applied item replaces its duplicates.
    let object = stored.force("one", &json!({"spec": {"set": ["a"]}}));
    assert_eq!(object["spec"]["set"], json!(["a", "b"]));
}

#[test]
fn an_atomic_list_has_one_owner() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply("one", &json!({"spec": {"atomic": ["a", "a"]}}))
        .unwrap();
    assert_eq!(
        stored
            .apply("two", &json!({"spec": {"atomic": ["b"]}}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.atomic"
    );
    let object = stored.force("two", &json!({"spec": {"atomic": ["b"]}}));
    assert_eq!(object["spec"]["atomic"], json!(["b"]));
}

#[test]
fn steps_are_written_and_read_as_by_kubernetes() {
    let mut stored = Stored::of_spec(&json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-int-or-string": true}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }}));
    let spec = json!({
        "set": ["<&>\u{8}\u{2028}é\"\\\n", 10, 9, 1.0, 1e-7, 1e21, true],
        "map": {"<\u{2028}\">": "x", "": "y", "a:b": "z"},
    });
    stored.apply("one", &json!({"spec": spec})).unwrap();
    let fields = json!({"f:spec": {
        "f:map": {"f:<\u{2028}\">": {}, "f:": {}, "f:a:b": {}},
        "f:set": {
            "v:\"\\u003c\\u0026\\u003e\\u0008\\u2028é\\\"\\\\\\n\"": {},
            "v:10": {}, "v:9": {}, "v:1": {}, "v:1e-07": {}, "v:1e+21": {}, "v:true": {},
        },
    }});
    assert_eq!(stored.fields("one"), fields);
    // A second write reads the fields again, and changes nothing.
    stored
        .apply("two", &json!({"spec": {"map": {"b": "x"}}}))
        .unwrap();
    assert_eq!(stored.fields("one"), fields);
    let object = stored
        .apply("one", &json!({"spec": {"set": [10]}}))
        .unwrap();
    assert_eq!(object["spec"], json!({"set": [10], "map": {"b": "x"}}));
}
