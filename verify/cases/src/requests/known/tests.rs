//! Tests that exactly the intentional differences between two servers are recognized.
//!
//! The tests compare constructed answers, and run no server.

use serde_json::json;

use super::*;
use crate::divergences;

fn response(status: u16, body: Value) -> Answer {
    Answer::Response(Response {
        status,
        headers: Vec::new(),
        body: Content::Json(body.into()),
    })
}

fn invalid(fields: &[&str]) -> Answer {
    let causes = fields
        .iter()
        .map(|field| json!({"field": field, "message": "m"}));
    response(
        422,
        json!({"details": {"causes": causes.collect::<Vec<_>>()}}),
    )
}

fn between(script: &str, real: Answer, embedded: Answer) -> Difference {
    let mut answers = [real, embedded];
    settle(&mut answers);
    let [real, embedded] = answers;
    Difference::new(script, &real, &embedded)
}

#[test]
fn each_name_is_in_the_list() {
    let divergences = divergences::read().unwrap();
    for name in [NULL_ITEMS, APPLY] {
        assert!(divergences.contains_key(name), "{name}");
    }
}

#[test]
fn a_difference_without_meaning_is_removed() {
    let mut answers = [response(200, json!({"items": null}))];
    assert_eq!(settle(&mut answers), [NULL_ITEMS]);
    assert!(settle(&mut answers).is_empty(), "{answers:?}");
}

#[test]
fn an_object_in_a_message_has_managers_only_in_kubernetes() {
    let of = |message: &str| {
        let causes = json!([{"field": "patch", "message": message}]);
        response(422, json!({"details": {"causes": causes}}))
    };
    let named = |real, embedded| name(&between("> PATCH /a", real, embedded));
    let with = || of(r#"Invalid value: "{\"managedFields\":[]}": why"#);
    assert_eq!(
        named(with(), of(r#"Invalid value: "{}": why"#)),
        Some(APPLY)
    );
    assert_eq!(named(of("one"), of("other")), None);
    let other = of(r#"Invalid value: "{}": another reason"#);
    assert_eq!(named(with(), other), None);
    assert_eq!(named(with(), invalid(&["metadata.labels"])), None);
    assert_eq!(named(invalid(&["data"]), response(201, json!({}))), None);
}

#[test]
fn the_revision_of_a_write_is_compared_except_that_of_a_scale() {
    let long = "x".repeat(100);
    let of = |revision: &str| response(200, json!({"a": {"resourceVersion": revision, "x": long}}));
    let scale = between("> PUT /a/scale", of("2"), of("1"));
    assert_eq!(name(&scale), Some(APPLY));
    assert!(!is_harmless(&scale));
    assert_eq!(name(&between("> PUT /a", of("2"), of("1"))), None);
    let read = between("> GET /a", of("2"), of("1"));
    assert!(is_harmless(&read));
}
