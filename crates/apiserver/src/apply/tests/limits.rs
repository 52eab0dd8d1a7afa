//! Tests of the limits on hostile objects.

use serde_json::json;

use super::super::conflict::CONFLICTS_MAX;
use super::super::errors::ERRORS_MAX;
use super::*;
use crate::object::DEPTH_MAX;

#[test]
fn objects_of_the_maximum_depth_are_applied() {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut stored = Stored::of_spec(&any);
    let deep = |leaf: &str| {
        // The object and `spec` are two levels.
        (2..DEPTH_MAX).fold(json!(leaf), |below, _| json!({ "a": below }))
    };
    stored.apply("one", &json!({"spec": deep("x")})).unwrap();
    stored.update("two", &json!({"spec": deep("y")}));
    assert!(stored.apply("one", &json!({"spec": deep("z")})).is_err());
    stored.force("one", &json!({"spec": deep("z")}));
    let object = stored.apply("one", &json!({})).unwrap();
    assert_eq!(object.get("spec"), None);
}

#[test]
fn large_lists_are_merged_in_any_order() {
    // With work that grows with the square of the length, this test would take long.
    const LENGTH: i64 = 10_000;
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}});
    let mut stored = Stored::of_spec(&json!({"type": "object", "properties": {"set": set}}));
    let backwards: Vec<i64> = (0..LENGTH).rev().collect();
    let forwards: Vec<i64> = (0..LENGTH).collect();
    stored
        .apply("one", &json!({"spec": {"set": backwards}}))
        .unwrap();
    let object = stored
        .apply("two", &json!({"spec": {"set": forwards}}))
        .unwrap();
    assert_eq!(object["spec"]["set"], json!(forwards));
    stored.apply("one", &json!({})).unwrap();
    let object = stored.apply("two", &json!({"spec": {"set": [7]}})).unwrap();
    assert_eq!(object["spec"]["set"], json!([7]));
}

#[test]
fn the_lists_of_errors_and_conflicts_are_limited() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let mut stored = Stored::of_spec(&map);
    let spec = |value: Value| {
        let members = (0..2 * CONFLICTS_MAX).map(|number| (format!("k{number}"), value.clone()));
        json!({"spec": Value::Object(members.collect())})
    };
    let error = stored.apply("one", &spec(json!(1))).unwrap_err();
    assert_eq!(error.lines().count(), 1 + ERRORS_MAX);
    stored.apply("one", &spec(json!("x"))).unwrap();
    let error = stored.apply("two", &spec(json!("y"))).unwrap_err();
    assert!(error.starts_with("Apply failed with 2000 conflicts: "));
    assert_eq!(error.lines().count(), 1 + CONFLICTS_MAX);
}
