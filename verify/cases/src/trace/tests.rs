//! Tests of the names that replace what differs between runs.

use serde_json::json;

use super::*;
use crate::answer::Line;

fn of(body: Value) -> Answer {
    Answer::Response(Response {
        status: 200,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Content::Json(body.into()),
    })
}

fn object(name: &str, revision: u32) -> Value {
    let uid = format!("0b8f6a2e-5f0c-4a57-9d4e-00000000000{name}");
    json!({"metadata": {
        "name": name, "resourceVersion": revision.to_string(), "uid": uid,
        "creationTimestamp": "2026-01-31T12:00:00Z",
    }})
}

#[test]
fn events_of_a_handler_have_the_names_of_the_responses() {
    let line = |text: &str, objects| Line {
        text: text.to_owned(),
        objects,
    };
    let lines = vec![
        line("UPDATED", vec![object("a", 70), object("a", 900)]),
        line("SYNCED", Vec::new()),
    ];
    let end = End::Ended;
    let texts = texts(
        &[of(object("a", 900)), Answer::Lines { lines, end }],
        Owners::Omitted,
    );
    for name in ["\"r1\"", "\"r2\"", "\"<uid 1>\""] {
        assert!(texts[1].contains(name), "{name}: {}", texts[1]);
    }
    assert!(texts[1].ends_with("SYNCED\n(end)\n"), "{}", texts[1]);
}

#[test]
fn revisions_are_ranks_among_those_of_the_objects() {
    let answers = [
        of(object("b", 900)),
        of(
            json!({"items": [object("a", 70), object("b", 900)], "metadata": {"resourceVersion": "1000"}}),
        ),
        Answer::Events {
            events: vec![
                json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "80"}}})
                    .into(),
            ],
            end: End::Ended,
        },
    ];
    let texts = texts(&answers, Owners::Omitted);
    let name = |name, rank, uid| {
        format!(
            "\"metadata\": {{\n{{I}}\"creationTimestamp\": \"<time>\",\n{{I}}\"name\": \"{name}\",\n{{I}}\"resourceVersion\": \"r{rank}\",\n{{I}}\"uid\": \"<uid {uid}>\"\n"
        )
    };
    let expected = name("b", 2, 1).replace("{I}", "      ");
    assert!(texts[0].contains(&expected), "{}", texts[0]);
    assert!(
        texts[1].contains("\"metadata\": {\"resourceVersion\": \"r2+\"}"),
        "{}",
        texts[1]
    );
    assert!(
        texts[1].contains("\"resourceVersion\": \"r1\""),
        "{}",
        texts[1]
    );
    assert_eq!(
        texts[2],
        "BOOKMARK\n  {\"metadata\": {\"resourceVersion\": \"r1+\"}}\n(end)\n"
    );
}

#[test]
fn messages_and_generated_names_have_no_random_part() {
    let answers = [
        of(json!({"metadata": {"name": "a-x7f2k", "generateName": "a-"}})),
        of(json!({"kind": "Status", "message": "a-x7f2k: too old resource version: 7 (123)"})),
        of(json!({"message": r#"invalid: "{\"resourceVersion\":\"9\"}""#})),
    ];
    let texts = texts(&answers, Owners::Omitted);
    assert!(texts[0].contains("\"name\": \"a-<5>\""), "{}", texts[0]);
    let message = "a-<5>: too old resource version: <revision> (<revision>)";
    assert!(texts[1].contains(message), "{}", texts[1]);
    assert!(texts[2].contains("<revision>"), "{}", texts[2]);
}

#[test]
fn revisions_in_yaml_are_replaced() {
    let answer = Answer::Response(Response {
        status: 200,
        headers: vec![("content-type".into(), "application/yaml".into())],
        body: Content::Other(b"metadata:\n  resourceVersion: \"12\"\n".as_slice().into()),
    });
    let expected =
        "200 application/yaml\n  metadata:\n    resourceVersion: \"<revision>\"\n".to_owned();
    assert_eq!(texts(&[answer], Owners::Omitted), [expected]);
}

#[test]
fn a_body_that_is_not_text_is_named() {
    for (bytes, name) in [
        (&b"k8s\0\x01"[..], "(protobuf)"),
        (b"\x1f\x8b\x08", "(gzip)"),
    ] {
        let answer = Answer::Response(Response {
            status: 200,
            headers: vec![("content-encoding".into(), "x".into())],
            body: Content::Other(bytes.into()),
        });
        let expected = format!("200 (no content type)\ncontent-encoding: x\n  {name}\n");
        assert_eq!(texts(&[answer], Owners::Omitted), [expected]);
    }
}
