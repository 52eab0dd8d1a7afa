//! Tests that exactly the intentional differences between two servers are recognized.
//!
//! The tests compare constructed answers, and run no server.

use super::*;
use crate::divergences;

fn response(status: u16, body: Value) -> Answer {
    Answer::Response(Response {
        status,
        headers: Vec::new(),
        body: Content::Json(body),
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
    for name in [NULL_ITEMS, TYPES, RULES, POD, APPLY] {
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
fn an_empty_member_may_be_stored_outside_metadata() {
    let object = |revision: &str, member: Value, labels: Value| {
        let metadata = json!({"labels": labels, "resourceVersion": revision});
        response(200, json!({"member": member, "metadata": metadata}))
    };
    // The object without the member, as kube-apiserver returns it.
    let stored = || {
        let metadata = json!({"labels": {"a": "b"}, "resourceVersion": "1"});
        response(200, json!({"metadata": metadata}))
    };
    let named = |script: &str, answers: [Answer; 2]| {
        let text = |answer: &Answer| crate::trace::texts(&[stored(), answer.clone()]).remove(1);
        let mut difference = Difference::new(script, &answers[0], &answers[1]);
        difference.texts = [text(&answers[0]), text(&answers[1])];
        name(&difference)
    };
    let labels = || json!({"a": "b"});
    let empty = |revision| [stored(), object(revision, json!([]), labels())];
    assert_eq!(named("> PATCH /a", empty("1")), Some(TYPES));
    assert_eq!(named("> PATCH /a", empty("2")), Some(TYPES));
    assert_eq!(named("> GET /a", empty("1")), Some(TYPES));
    assert_eq!(named("> GET /a", empty("2")), None);
    let [real, embedded] = empty("1");
    assert_eq!(named("> PATCH /a", [embedded, real]), None);
    let full = object("1", json!([1]), labels());
    assert_eq!(named("> PATCH /a", [stored(), full]), None);
    let without_labels = response(200, json!({"metadata": {"resourceVersion": "1"}}));
    let empty_labels = object("1", json!([]), json!({}));
    let labels = [without_labels, empty_labels];
    assert_eq!(named("> PATCH /a", labels), None);
}

#[test]
fn only_rules_of_the_kind_may_be_missing() {
    let named = |real, embedded| name(&between("> POST /a", real, embedded));
    let created = || response(201, json!({}));
    assert_eq!(named(invalid(&["spec.x"]), created()), Some(RULES));
    assert_eq!(named(invalid(&["metadata.labels"]), created()), None);
    assert_eq!(
        named(invalid(&["metadata.labels", "data"]), created()),
        None
    );
    let both = invalid(&["metadata.uid", "type"]);
    assert_eq!(named(both, invalid(&["metadata.uid"])), Some(RULES));
    let both = invalid(&["metadata.uid", "type"]);
    assert_eq!(named(both, invalid(&["metadata.name"])), None);
    assert_eq!(named(created(), invalid(&["data"])), None);
    assert_eq!(named(created(), response(200, json!({}))), None);
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
}

#[test]
fn a_patch_with_a_value_of_another_type_is_named() {
    let of = |message: &str| {
        let causes = json!([{"field": "patch", "message": message}]);
        response(422, json!({"details": {"causes": causes}}))
    };
    let wrong = || of("json: cannot unmarshal string into Go struct field");
    let named = |script, embedded| name(&between(script, wrong(), embedded));
    let changed = || response(200, json!({}));
    assert_eq!(named("> PATCH /a", changed()), Some(TYPES));
    assert_eq!(named("> PATCH /a", response(400, json!({}))), Some(TYPES));
    assert_eq!(named("> PATCH /a", response(409, json!({}))), Some(TYPES));
    assert_eq!(named("> PUT /a", response(400, json!({}))), None);
    let other = of("another reason");
    assert_eq!(named("> PATCH /a", other), None);
    assert_eq!(named("> PATCH /a", invalid(&["type"])), Some(TYPES));
    assert_eq!(named("> PUT /a", invalid(&["type"])), None);
    let in_metadata = "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.a";
    assert_eq!(named("> PATCH /a", of(in_metadata)), Some(TYPES));
    let elsewhere = of("json: cannot unmarshal string into Go struct field Pod.spec");
    assert_eq!(named("> PATCH /a", elsewhere), None);
    let both = between("> PATCH /a", of(in_metadata), wrong());
    assert_eq!(name(&both), None);
    let also = "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.b";
    let both = between("> PATCH /a", of(also), of(in_metadata));
    assert_eq!(name(&both), None);
    let base64 = of("illegal base64 data at input byte 0");
    let named = name(&between("> PATCH /a", base64, changed()));
    assert_eq!(named, Some(TYPES));
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
